//! Filters in the language of Thrift 1 gateways: HBase's `ParseFilter`.

use crate::store::{Comparison, Filter};
use bytes::Bytes;

/// Whether a filter can be told in the language. It has no fuzzy filter; a quote is doubled in it, and an empty text is written
/// like a doubled quote, so both are left to this side.
pub(super) fn can_be_told(filter: &Filter) -> bool {
    let plain = |text: &Bytes| !text.is_empty() && !text.contains(&b'\'');
    match filter {
        Filter::Fuzzy(_) => false,
        Filter::Column(f) => plain(&f.family) && plain(&f.qualifier) && plain(&f.operand),
        Filter::Row { operand, .. } => plain(operand),
        Filter::ColumnPrefix(prefixes) => prefixes.iter().all(plain),
        _ => true,
    }
}

/// A filter as the gateway reads it.
pub(super) fn tell(filter: &Filter) -> Vec<u8> {
    match filter {
        Filter::Column(f) => {
            let columns = [b"SingleColumnValueFilter(", &quoted(&f.family)[..], b",", &quoted(&f.qualifier), b","];
            // Rows without the column are dropped, and the newest version counts.
            [&columns.concat(), &compared(f.comparison, &f.operand)[..], b",true,true)"].concat()
        }
        Filter::Row { comparison, operand } => [b"RowFilter(", &compared(*comparison, operand)[..], b")"].concat(),
        Filter::ColumnPrefix(prefixes) => {
            let prefixes: Vec<Vec<u8>> = Filter::shortest_prefixes(prefixes).iter().map(quoted).collect();
            [b"MultipleColumnPrefixFilter(", &prefixes.join(&b","[..])[..], b")"].concat()
        }
        Filter::ColumnPage { limit, offset } => {
            let bounded = |n: &usize| i32::try_from(*n).unwrap_or(i32::MAX);
            format!("ColumnPaginationFilter({},{})", bounded(limit), bounded(offset)).into_bytes()
        }
        Filter::FirstKeyOnly => b"FirstKeyOnlyFilter()".to_vec(),
        Filter::KeyOnly => b"KeyOnlyFilter()".to_vec(),
        Filter::Page(rows) => format!("PageFilter({})", i64::try_from(*rows).unwrap_or(i64::MAX)).into_bytes(),
        Filter::All(list) => joined(list, b" AND "),
        Filter::Any(list) => joined(list, b" OR "),
        // Never sent: `can_be_told`.
        Filter::Fuzzy(_) => Vec::new(),
    }
}

fn joined(list: &[Filter], operator: &[u8]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = list.iter().map(tell).collect();
    match &parts[..] {
        [one] => one.clone(),
        _ => [b"(", &parts.join(operator)[..], b")"].concat(),
    }
}

fn compared(comparison: Comparison, operand: &Bytes) -> Vec<u8> {
    [comparison.symbol().as_bytes(), b",'binary:", operand, b"'"].concat()
}

fn quoted(text: &Bytes) -> Vec<u8> {
    [b"'", &text[..], b"'"].concat()
}
