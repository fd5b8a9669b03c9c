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
