use super::*;
use crate::query::plan::{best, candidates, plan};
use crate::query::testing::{definitions, schema};
use crate::query::{Options, bind, parse};

fn explained(sql: &str, estimates: &[(u64, bool)], options: &Options) -> Explain {
    let schema = schema(&definitions(&["section", "depends", "size<"]));
    let query = bind(&parse(sql).unwrap(), &schema, &[]).unwrap();
    let candidates = candidates(&query, &schema);
    let estimates: Vec<Estimate> =
        estimates.iter().map(|(entries, exact)| Estimate { entries: *entries, exact: *exact }).collect();
    let choice = best(&candidates.roots, &candidates, &estimates, &query);
    explain(&plan(query, &schema, &candidates, choice.as_ref(), options), &candidates, &estimates, choice.as_ref())
}

#[test]
fn every_way_is_shown_and_the_chosen_one_marked() {
    let sql = "SELECT id FROM packages WHERE section = 'net' AND depends = 'libc6' ORDER BY weight DESC LIMIT 5";
    let shown = explained(sql, &[(1_789, true), (2_048, false)], &Options::default()).to_string();
    assert_eq!(
        shown,
        "query of packages, verified
  1. read the index by_section: section = 'net'
  2. verify each entry against its base row
  3. keep rows with depends = 'libc6'
  4. sort by weight descending, keeping 5 rows
considered
  * index by_section: section = 'net' (1,789 entries), chosen
    index by_depends: depends = 'libc6' (at least 2,048 entries)
    scan of the base table"
    );
}

#[test]
fn a_union_shows_its_parts() {
    let sql = "SELECT COUNT(*) FROM packages WHERE section = 'net' AND priority = 'p' OR id = 'x' OR size > 5";
    let options = Options { consistency: Consistency::Indexed, ..Options::default() };
    let shown = explained(sql, &[(1, true), (0, false), (7, true)], &options).to_string();
    assert_eq!(
        shown,
        "query of packages, indexed
  1. read the index by_section: section = 'net'
  2. read 1 row by key: id = 'x'
  3. read the index by_size: size > 5
  4. take each row once
  5. read the base rows, which hold what the entries lack, and verify against them
  6. keep rows with (section = 'net' AND priority = 'p') OR id = 'x' OR size > 5
  7. count rows
considered
  * union, chosen
    * index by_section: section = 'net' (1 entry), chosen
    * get: id = 'x' (1 row), chosen
    * index by_size: size > 5 (7 entries), chosen
    scan of the base table"
    );
}

#[test]
fn an_order_that_is_served_and_a_refusal() {
    let sql = "SELECT id, size FROM packages WHERE size >= 5 ORDER BY size DESC LIMIT 1";
    let options = Options { consistency: Consistency::Indexed, ..Options::default() };
    assert_eq!(
        explained(sql, &[(1, true)], &options).steps,
        [
            "read the index by_size backwards: size >= 5",
            "take each row once",
            "take undisputed entries as they are, verify disputed ones against their base rows",
            "in the order of size descending as read",
            "stop after 1 row"
        ]
    );
    let refused = explained("SELECT id FROM packages WHERE weight = 1", &[], &options);
    assert!(refused.steps.is_empty());
    assert!(refused.refused.as_deref().is_some_and(|r| r.contains("--on weight")));
    let nothing = explained("SELECT id FROM packages WHERE weight = 1 AND weight = 2", &[], &options);
    assert_eq!(nothing.steps, ["read nothing: no row can satisfy the condition"]);
}

#[test]
fn json_has_the_same_parts() {
    let sql = "SELECT id FROM packages WHERE section = 'net'";
    let explain = explained(sql, &[(3, true)], &Options::default()).with_actual(Actuals::default());
    let json = serde_json::to_value(&explain).unwrap();
    assert_eq!(json["considered"][0]["means"], "index");
    assert_eq!(json["considered"][0]["definition"], "by_section");
    assert_eq!(json["considered"][0]["entries"], 3);
    assert_eq!(json["considered"][1]["means"], "scan");
    assert_eq!(json["actual"]["elapsed_ms"], 0.0);
    assert!(explain.to_string().ends_with(
        "actual\n  0 seeks, 0 entries, 0 base rows, 0 bytes, 0 returned, 0 dropped by verification, 0.000 ms"
    ));
}
