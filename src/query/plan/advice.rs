//! What to say of a query that no index answers.

use crate::query::bind::{BoundQuery, Column, Predicate, Slot, Test};
use crate::query::explain::clipped;
use crate::schema::TableSchema;

/// Says why a query is refused, and what would help.
pub(super) fn refusal(query: &BoundQuery, schema: &TableSchema) -> String {
    let table = &query.table;
    if query.predicate.is_true() {
        return format!(
            "a query without WHERE reads the whole table {table}: add a WHERE, or allow it with --allow-scan"
        );
    }
    let mut needed = Vec::new();
    collect(&query.predicate, query, schema, &mut needed);
    let mut message =
        format!("no index of table {table} finds the rows with {}", clipped(&query.predicate.to_string()));
    if needed.is_empty() {
        if let Some(key) = schema.key().filter(|_| query.slots.iter().any(|s| s.attribute.key_part.is_some())) {
            message.push_str(&format!("; tests of the leading parts of the row key do: {key}"));
        }
        message.push_str("; allow a scan of the whole table with --allow-scan");
        return message;
    }
    let commands: Vec<String> = needed.iter().map(|n| n.text(table, schema)).collect();
    message.push_str(&format!(
        "; {} would help; or allow a scan of the whole table with --allow-scan",
        commands.join(" and ")
    ));
    message
}

/// A definition that is missing.
#[derive(PartialEq, Eq)]
struct Needed<'a> {
    slot: &'a Slot,
    ordered: bool,
}

impl Needed<'_> {
    fn text(&self, table: &str, schema: &TableSchema) -> String {
        let Slot { attribute, functions } = self.slot;
        // A name may hold no parentheses.
        let name = functions.iter().fold(attribute.name.clone(), |name, f| format!("{f}_{name}"));
        let fits = |d: &&crate::schema::Definition| {
            d.terms.first().is_some_and(|t| t.operand == self.slot.operand()) && (d.ordered || !self.ordered)
        };
        if let Some(building) = schema.definitions().iter().find(fits) {
            return format!(
                "waiting until the definition {} is active (`index status` shows how far it is)",
                building.name
            );
        }
        // Definitions share one name space; one of the obvious name may be there without being of use.
        let mut definition = format!("by_{name}{}", if self.ordered { "_ordered" } else { "" });
        if self.ordered && schema.definition(&format!("by_{name}")).is_none() {
            definition = format!("by_{name}");
        }
        let ordered = if self.ordered { " --ordered" } else { "" };
        let on = self.slot.name();
        let on = if functions.is_empty() { on } else { format!("'{on}'") };
        format!("`index create {table} {definition} --on {on}{ordered}`")
    }
}

/// The definitions that would lead to the rows: one for an AND, one for every arm of an OR that has none.
fn collect<'a>(
    predicate: &Predicate,
    query: &'a BoundQuery,
    schema: &TableSchema,
    needed: &mut Vec<Needed<'a>>,
) -> bool {
    match predicate {
        Predicate::Test(test) => match need(test, query) {
            Some(need) => {
                if !needed.contains(&need) {
                    needed.push(need);
                }
                true
            }
            None => false,
        },
        Predicate::And(parts) => {
            // An equality leads to the fewest rows; failing that, a range; failing that, an OR all of whose arms can be helped.
            let rank = |p: &&Predicate| match p {
                Predicate::Test(test) => match need(test, query) {
                    Some(n) => u8::from(n.ordered),
                    None => 3,
                },
                _ => 2,
            };
            let mut parts: Vec<&Predicate> = parts.iter().collect();
            parts.sort_by_key(rank);
            parts.into_iter().any(|part| collect(part, query, schema, needed))
        }
        Predicate::Or(arms) => {
            let before = needed.len();
            let all = arms.iter().all(|arm| has_path(arm, query, schema) || collect(arm, query, schema, needed));
            if !all {
                needed.truncate(before);
            }
            all
        }
    }
}

fn need<'a>(test: &Test, query: &'a BoundQuery) -> Option<Needed<'a>> {
    match test.column {
        Column::RowKey => None,
        Column::Attribute(slot) if query.slots[slot].attribute.key_part.is_some() => None,
        Column::Attribute(slot) => {
            Some(Needed { slot: &query.slots[slot], ordered: test.within()?.points().is_none() })
        }
    }
}

fn has_path(arm: &Predicate, query: &BoundQuery, schema: &TableSchema) -> bool {
    let alone = BoundQuery { predicate: arm.clone(), ..query.clone() };
    !super::candidates(&alone, schema).roots.is_empty()
}
