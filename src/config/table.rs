//! `[[table]]`: tables, their attributes and their indexes, as they are to be.

use super::file::Fields;
use super::slot::Whole;
use crate::error::{Error, Result};
use crate::query;
use crate::schema::{AttributeSpec, Key, TermSpec, check_attributes, check_name};

/// The keys of `[[table]]`.
pub const TABLE_KEYS: &[&str] = &["name", "families", "versions", "key", "attribute", "index"];
/// The keys of `[[table.attribute]]`.
pub const ATTRIBUTE_KEYS: &[&str] = &["name", "type", "encoding", "family", "qualifier"];
/// The keys of `[[table.index]]`.
pub const INDEX_KEYS: &[&str] = &["name", "on", "ordered", "salts", "covered", "where", "value_limit"];

/// The most versions a family can keep.
const MAX_VERSIONS: u64 = i32::MAX as u64;

/// A base table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    /// Its name.
    pub name: String,
    /// Its column families; attributes live in the first unless they say otherwise.
    pub families: Vec<String>,
    /// Versions of a cell that can be read.
    pub versions: u32,
    /// What its row keys are made of, if they are declared.
    pub key: Option<Key>,
    /// Attributes that are declared.
    pub attributes: Vec<AttributeSpec>,
    /// Its indexes.
    pub indexes: Vec<IndexConfig>,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    /// Its name.
    pub name: String,
    /// Its terms: `brand`, `lower(brand)`, `price desc`.
    pub on: Vec<String>,
    /// Whether it serves ranges and ORDER BY.
    pub ordered: bool,
    /// Key ranges the entries are spread over.
    pub salts: Option<u8>,
    /// Attributes whose values are kept in the entries.
    pub covered: Vec<String>,
    /// Only rows for which it is true have entries: a WHERE clause.
    pub filter: Option<String>,
    /// Longest text that stands whole in a key, in bytes.
    pub value_limit: Option<u32>,
}

/// All tables of a file.
pub(super) fn read(root: &Fields<'_>) -> Result<Vec<TableConfig>> {
    let mut tables: Vec<TableConfig> = Vec::new();
    for fields in root.each("table", TABLE_KEYS)? {
        let table = table(&fields)?;
        refuse_twice(&fields, "table", &table.name, tables.iter().map(|t| &t.name))?;
        tables.push(table);
    }
    Ok(tables)
}

fn table(fields: &Fields<'_>) -> Result<TableConfig> {
    let name = name(fields, "a table")?;
    let mut families = Vec::new();
    fields.require("families", &mut families)?;
    for family in &families {
        check_name("a column family", family).map_err(|e| fields.error("families", e))?;
    }
    let mut versions = Whole { value: None, least: 1, most: MAX_VERSIONS };
    fields.fill("versions", &mut versions)?;
    let mut key: Option<String> = None;
    fields.fill("key", &mut key)?;
    let key: Option<Key> = key.map(|text| text.parse()).transpose().map_err(|e| fields.error("key", e))?;
    let mut attributes: Vec<AttributeSpec> = Vec::new();
    for fields in fields.each("attribute", ATTRIBUTE_KEYS)? {
        let attribute = attribute(&fields, &families)?;
        refuse_twice(&fields, "attribute", &attribute.name, attributes.iter().map(|a| &a.name))?;
        attributes.push(attribute);
    }
    let mut indexes: Vec<IndexConfig> = Vec::new();
    for fields in fields.each("index", INDEX_KEYS)? {
        let index = index(&fields)?;
        refuse_twice(&fields, "index", &index.name, indexes.iter().map(|i| &i.name))?;
        indexes.push(index);
    }
    let versions = versions.value.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    Ok(TableConfig { name, families, versions, key, attributes, indexes })
}

fn attribute(fields: &Fields<'_>, families: &[String]) -> Result<AttributeSpec> {
    let name = name(fields, "an attribute")?;
    let (mut kind, mut encoding): (Option<String>, Option<String>) = (None, None);
    fields.require("type", &mut kind)?;
    let mut spec = AttributeSpec::new(name, kind.unwrap_or_default().parse().map_err(|e| fields.error("type", e))?);
    check_attributes(std::slice::from_ref(&spec)).map_err(|e| fields.error("name", e))?;
    fields.fill("encoding", &mut encoding)?;
    spec.encoding = encoding.map(|text| text.parse()).transpose().map_err(|e| fields.error("encoding", e))?;
    fields.fill("family", &mut spec.family)?;
    if let Some(family) = spec.family.as_ref().filter(|family| !families.contains(family)) {
        let known = families.join(", ");
        let e = Error::invalid(format!("expected one of the table's families {known}, found {family:?}"));
        return Err(fields.error("family", e));
    }
    fields.fill("qualifier", &mut spec.qualifier)?;
    spec.resolve("", 0).map_err(|e| fields.error("encoding", e))?;
    Ok(spec)
}

fn index(fields: &Fields<'_>) -> Result<IndexConfig> {
    let name = name(fields, "an index")?;
    let mut on: Vec<String> = Vec::new();
    fields.require("on", &mut on)?;
    for term in &on {
        term.parse::<TermSpec>().map_err(|e| fields.error("on", e))?;
    }
    let mut ordered = false;
    fields.fill("ordered", &mut ordered)?;
    let mut salts = Whole { value: None, least: 1, most: u64::from(u8::MAX) };
    fields.fill("salts", &mut salts)?;
    let mut covered: Vec<String> = Vec::new();
    fields.fill("covered", &mut covered)?;
    let mut filter: Option<String> = None;
    fields.fill("where", &mut filter)?;
    if let Some(filter) = &filter {
        query::parse(&format!("SELECT id FROM t WHERE {filter}")).map_err(|e| fields.error("where", e))?;
    }
    let mut value_limit = Whole { value: None, least: 0, most: 16_384 };
    fields.fill("value_limit", &mut value_limit)?;
    if let Some(limit @ 1..16) = value_limit.value {
        let e = Error::invalid(format!("expected 0, which cuts none, or 16 bytes and more, found {limit}"));
        return Err(fields.error("value_limit", e));
    }
    Ok(IndexConfig {
        name,
        on,
        ordered,
        salts: salts.value.and_then(|n| u8::try_from(n).ok()),
        covered,
        filter,
        value_limit: value_limit.value.and_then(|n| u32::try_from(n).ok()),
    })
}

fn name(fields: &Fields<'_>, what: &str) -> Result<String> {
    let mut name: Option<String> = None;
    fields.require("name", &mut name)?;
    let name = name.unwrap_or_default();
    check_name(what, &name).map_err(|e| fields.error("name", e))?;
    Ok(name)
}

fn refuse_twice<'a>(
    fields: &Fields<'_>,
    what: &str,
    name: &String,
    mut earlier: impl Iterator<Item = &'a String>,
) -> Result<()> {
    if earlier.any(|n| n == name) {
        return Err(fields.error("name", Error::invalid(format!("{what} {name} is there already; each stands once"))));
    }
    Ok(())
}
