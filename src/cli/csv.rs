//! Comma-separated values, RFC 4180. NULL is nothing, an empty text is `""`, arrays are JSON: readers can tell all apart.

use serde_json::Value;

/// One record, line break included.
pub fn record<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let cells: Vec<String> = values.into_iter().map(cell).collect();
    cells.join(",") + "\r\n"
}

/// The record of column names.
pub fn header<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<Value> = names.into_iter().map(Value::from).collect();
    record(&names)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\r', '\n']) || text.starts_with(' ') || text.ends_with(' ') {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn null_and_the_empty_text_differ() {
        let values = [json!(null), json!(""), json!(["a, b", "c"]), json!("say \"hi\""), json!(1.5), json!(true)];
        assert_eq!(record(&values), ",\"\",\"[\"\"a, b\"\",\"\"c\"\"]\",\"say \"\"hi\"\"\",1.5,true\r\n");
    }

    proptest! {
        /// What is written is read back by another's reader.
        #[test]
        fn records_are_read_back(rows in vec(vec("[a\", \r\n]{0,5}|\\PC{0,4}", 3), 1..5)) {
            let lines: String = rows.iter().map(|row| {
                let values: Vec<Value> = row.iter().map(|t| Value::from(t.as_str())).collect();
                record(&values)
            }).collect();
            let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(lines.as_bytes());
            let found: Vec<Vec<String>> =
                reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect();
            prop_assert_eq!(found, rows);
        }
    }
}
