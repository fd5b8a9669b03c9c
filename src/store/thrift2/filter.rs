//! Filters as HBase's server reads them: protobuf in `filterBytes`. The messages are those of `proto/hbase/filter.proto`, held
//! against it by a test.

use crate::store::{Comparison, Filter, FuzzyKey};
use bytes::Bytes;
use prost::Message;

const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

/// A filter by the name of its class.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub serialized: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ByteArrayComparable {
    #[prost(bytes = "bytes", optional, tag = "1")]
    value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct BinaryComparator {
    #[prost(message, required, tag = "1")]
    comparable: ByteArrayComparable,
}

#[derive(Clone, PartialEq, Message)]
struct CompareFilter {
    #[prost(int32, required, tag = "1")]
    compare_op: i32,
    #[prost(message, optional, tag = "2")]
    comparator: Option<Named>,
}

#[derive(Clone, PartialEq, Message)]
struct RowFilter {
    #[prost(message, required, tag = "1")]
    compare_filter: CompareFilter,
}

#[derive(Clone, PartialEq, Message)]
struct SingleColumnValueFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    column_family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    column_qualifier: Option<Bytes>,
    #[prost(int32, required, tag = "3")]
    compare_op: i32,
    #[prost(message, required, tag = "4")]
    comparator: Named,
    #[prost(bool, optional, tag = "5")]
    filter_if_missing: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    latest_version_only: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct MultipleColumnPrefixFilter {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    sorted_prefixes: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ColumnPrefixFilter {
    #[prost(bytes = "bytes", required, tag = "1")]
    prefix: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct ColumnPaginationFilter {
    #[prost(int32, required, tag = "1")]
    limit: i32,
    #[prost(int32, optional, tag = "2")]
    offset: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyOnlyFilter {
    #[prost(bool, required, tag = "1")]
    len_as_val: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PageFilter {
    #[prost(int64, required, tag = "1")]
    page_size: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FilterList {
    /// 1 must pass all, 2 must pass one.
    #[prost(int32, required, tag = "1")]
    operator: i32,
    #[prost(message, repeated, tag = "2")]
    filters: Vec<Named>,
}

#[derive(Clone, PartialEq, Message)]
struct BytesBytesPair {
    #[prost(bytes = "bytes", required, tag = "1")]
    first: Bytes,
    #[prost(bytes = "bytes", required, tag = "2")]
    second: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct FuzzyRowFilter {
    #[prost(message, repeated, tag = "1")]
    fuzzy_keys_data: Vec<BytesBytesPair>,
    #[prost(bool, optional, tag = "2")]
    is_mask_v2: Option<bool>,
}

/// A filter as the server takes it.
pub(super) fn encode(filter: &Filter) -> Vec<u8> {
    named(filter).encode_to_vec()
}

fn named(filter: &Filter) -> Named {
    match filter {
        Filter::Column(f) => class(
            "SingleColumnValueFilter",
            &SingleColumnValueFilter {
                column_family: Some(f.family.clone()),
                column_qualifier: Some(f.qualifier.clone()),
                compare_op: compare_op(f.comparison),
                comparator: binary_comparator(&f.operand),
                filter_if_missing: Some(true),
                latest_version_only: Some(true),
            },
        ),
        Filter::Row { comparison, operand } => class(
            "RowFilter",
            &RowFilter {
                compare_filter: CompareFilter {
                    compare_op: compare_op(*comparison),
                    comparator: Some(binary_comparator(operand)),
                },
            },
        ),
        Filter::Fuzzy(keys) => {
            let pair = |k: &FuzzyKey| BytesBytesPair { first: k.pattern().clone(), second: k.mask().clone() };
            let fuzzy_keys_data = keys.iter().map(pair).collect();
            class("FuzzyRowFilter", &FuzzyRowFilter { fuzzy_keys_data, is_mask_v2: Some(true) })
        }
        Filter::ColumnPrefix(prefixes) => match &Filter::shortest_prefixes(prefixes)[..] {
            [prefix] => class("ColumnPrefixFilter", &ColumnPrefixFilter { prefix: prefix.clone() }),
            sorted => {
                class("MultipleColumnPrefixFilter", &MultipleColumnPrefixFilter { sorted_prefixes: sorted.to_vec() })
            }
        },
        Filter::ColumnPage { limit, offset } => {
            let bounded = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
            let message = ColumnPaginationFilter { limit: bounded(*limit), offset: Some(bounded(*offset)) };
            class("ColumnPaginationFilter", &message)
        }
        // It has no fields.
        Filter::FirstKeyOnly => Named { name: format!("{PACKAGE}FirstKeyOnlyFilter"), serialized: Some(Bytes::new()) },
        Filter::KeyOnly => class("KeyOnlyFilter", &KeyOnlyFilter { len_as_val: false }),
        Filter::Page(rows) => class("PageFilter", &PageFilter { page_size: i64::try_from(*rows).unwrap_or(i64::MAX) }),
        Filter::All(list) => filter_list(1, list),
        Filter::Any(list) => filter_list(2, list),
    }
}

fn filter_list(operator: i32, list: &[Filter]) -> Named {
    class("FilterList", &FilterList { operator, filters: list.iter().map(named).collect() })
}

fn class(name: &str, message: &impl Message) -> Named {
    Named { name: format!("{PACKAGE}{name}"), serialized: Some(message.encode_to_vec().into()) }
}

fn binary_comparator(operand: &Bytes) -> Named {
    let comparable = ByteArrayComparable { value: Some(operand.clone()) };
    class("BinaryComparator", &BinaryComparator { comparable })
}

/// `CompareType` of HBase.proto.
fn compare_op(comparison: Comparison) -> i32 {
    match comparison {
        Comparison::Less => 0,
        Comparison::LessOrEqual => 1,
        Comparison::Equal => 2,
        Comparison::NotEqual => 3,
        Comparison::GreaterOrEqual => 4,
        Comparison::Greater => 5,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use crate::store::ColumnFilter;
    use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};

    /// A message as text by the names of the schema, those inside it too; it has no fields that the schema doesn't know.
    fn show(pool: &DescriptorPool, message: &DynamicMessage) -> String {
        assert_eq!(message.unknown_fields().count(), 0);
        if message.descriptor().name() == "Named" {
            let text = |field: &str| message.get_field_by_name(field).unwrap().into_owned();
            let (Value::String(class), Value::Bytes(bytes)) = (text("name"), text("serialized")) else { panic!() };
            let name = class.strip_prefix(PACKAGE).unwrap();
            let part = pool.get_message_by_name(&format!("hbase.{name}")).unwrap();
            return format!("{name}({})", show(pool, &DynamicMessage::decode(part, bytes).unwrap()));
        }
        let value = |value: &Value| match value {
            Value::Message(inner) => show(pool, inner),
            Value::Bytes(bytes) => bytes.escape_ascii().to_string(),
            Value::EnumNumber(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::I32(number) => number.to_string(),
            Value::I64(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let fields = message.fields().flat_map(|(field, found)| {
            let values = found.as_list().map_or(vec![found.clone()], <[Value]>::to_vec);
            values.into_iter().map(move |v| format!("{}={}", field.name(), value(&v)))
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn messages_are_those_of_the_schema() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
        let files = protox::compile(["hbase/filter.proto"], [root]).unwrap();
        let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
        let column = ColumnFilter {
            family: "f".into(),
            qualifier: "q".into(),
            comparison: Comparison::GreaterOrEqual,
            operand: "v".into(),
        };
        let binary = |value| format!("BinaryComparator(comparable=value={value})");
        let expected = [
            (
                Filter::Column(column),
                format!(
                    "SingleColumnValueFilter(column_family=f column_qualifier=q compare_op=4 comparator={} \
                     filter_if_missing=true latest_version_only=true)",
                    binary("v")
                ),
            ),
            (
                Filter::Row { comparison: Comparison::NotEqual, operand: "k".into() },
                format!("RowFilter(compare_filter=compare_op=3 comparator={})", binary("k")),
            ),
            (
                Filter::Fuzzy(vec![FuzzyKey::new(b"ab", vec![FuzzyKey::FIXED, FuzzyKey::ANY]).unwrap()]),
                "FuzzyRowFilter(fuzzy_keys_data=first=a\\x00 second=\\xff\\x02 is_mask_v2=true)".to_owned(),
            ),
            (Filter::ColumnPrefix(vec!["x".into()]), "ColumnPrefixFilter(prefix=x)".to_owned()),
            (
                Filter::ColumnPrefix(vec!["y".into(), "xz".into(), "x".into()]),
                "MultipleColumnPrefixFilter(sorted_prefixes=x sorted_prefixes=y)".to_owned(),
            ),
            (Filter::ColumnPage { limit: 3, offset: 2 }, "ColumnPaginationFilter(limit=3 offset=2)".to_owned()),
            (
                Filter::All(vec![Filter::KeyOnly, Filter::Page(7)]),
                "FilterList(operator=1 filters=KeyOnlyFilter(len_as_val=false) filters=PageFilter(page_size=7))"
                    .to_owned(),
            ),
            (Filter::Any(vec![Filter::FirstKeyOnly]), "FilterList(operator=2 filters=FirstKeyOnlyFilter())".to_owned()),
        ];
        let named = pool.get_message_by_name("hbase.Named").unwrap();
        for (filter, expected) in expected {
            let message = DynamicMessage::decode(named.clone(), &encode(&filter)[..]).unwrap();
            assert_eq!(show(&pool, &message), expected);
        }
    }
}
