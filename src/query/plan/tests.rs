use super::*;
use crate::query::testing::{definitions, schema};
use crate::query::{bind, parse};
use crate::schema::Lifecycle;
use crate::store::Columns;

/// Plans a query by the definitions of these names, whose paths have these estimates in the order of [`Candidates`].
fn planned(sql: &str, names: &[&str], estimates: &[u64]) -> Plan {
    planned_with(sql, names, estimates, Options { allow_scan: true, ..Options::default() })
}

fn planned_with(sql: &str, names: &[&str], estimates: &[u64], options: Options) -> Plan {
    let schema = schema(&definitions(names));
    let query = bind(&parse(sql).unwrap(), &schema, &[]).unwrap();
    let candidates = candidates(&query, &schema);
    let estimates: Vec<Estimate> = estimates.iter().map(|n| Estimate { entries: *n, exact: true }).collect();
    let choice = best(&candidates.roots, &candidates, &estimates, &query);
    plan(query, &schema, &candidates, choice.as_ref(), &options)
}

/// What is read, in short.
fn reading(plan: &Plan) -> Vec<String> {
    match &plan.reading {
        Reading::Nothing => vec!["nothing".to_owned()],
        Reading::Refused(_) => vec!["refused".to_owned()],
        Reading::Paths(paths) => paths
            .iter()
            .map(|path| match path {
                Path::Get(get) => format!("get {}", get.text),
                Path::Rows(rows) => rows.text.as_ref().map_or("scan".to_owned(), |text| format!("range {text}")),
                Path::Index(index) => format!("{}: {}", index.definition.name, index.text),
            })
            .collect(),
    }
}

#[test]
fn the_path_with_the_fewest_entries_is_read() {
    let sql = "SELECT id FROM packages WHERE depends = 'x' AND section = 'net'";
    let names = ["depends", "section"];
    assert_eq!(reading(&planned(sql, &names, &[20, 30])), ["by_depends: depends = 'x'"]);
    assert_eq!(reading(&planned(sql, &names, &[30, 20])), ["by_section: section = 'net'"]);
    // Equal: by name.
    assert_eq!(reading(&planned(sql, &["section", "depends"], &[20, 20])), ["by_depends: depends = 'x'"]);
    // A key is one row.
    let sql = "SELECT id FROM packages WHERE section = 'net' AND id IN ('a', 'b')";
    assert_eq!(reading(&planned(sql, &["section"], &[0, 3])), ["get id IN ('a', 'b')"]);
    assert_eq!(reading(&planned(sql, &["section"], &[0, 1])), ["by_section: section = 'net'"]);
}

#[test]
fn each_test_of_an_array_is_a_way_of_its_own() {
    let sql = "SELECT id FROM packages WHERE depends = 'common' AND depends = 'rare'";
    let plan = planned(sql, &["depends"], &[100, 3]);
    assert_eq!(reading(&plan), ["by_depends: depends = 'rare'"]);
    let Reading::Paths(paths) = &plan.reading else { panic!() };
    let [Path::Index(index)] = paths.as_slice() else { panic!() };
    assert_eq!(index.residual.to_string(), "depends = 'common'");
}

#[test]
fn composites_take_equalities_and_then_a_range() {
    let names = ["section+size+priority"];
    for (condition, restricted, fixed, residual) in [
        ("section = 'a'", 1, 1, "true"),
        ("section = 'a' AND size > 5 AND priority = 'p'", 2, 1, "priority = 'p'"),
        ("section = 'a' AND size = 5 AND priority = 'p'", 3, 3, "true"),
        ("section = 'a' AND priority = 'p'", 1, 1, "priority = 'p'"),
        ("section IN ('a', 'b') AND size = 5", 2, 0, "true"),
    ] {
        let plan = planned(&format!("SELECT id FROM packages WHERE {condition}"), &names, &[1]);
        let Reading::Paths(paths) = &plan.reading else { panic!("{condition}") };
        let [Path::Index(index)] = paths.as_slice() else { panic!("{condition}") };
        assert_eq!((index.restricted, index.fixed), (restricted, fixed), "{condition}");
        assert_eq!(index.residual.to_string(), residual, "{condition}");
        assert_eq!(plan.repeats, fixed < 3, "{condition}");
    }
    for condition in ["size = 5", "section > 'a'", "section != 'a'"] {
        let plan = planned(&format!("SELECT id FROM packages WHERE {condition}"), &names, &[]);
        assert_eq!(reading(&plan), ["scan"], "{condition}");
    }
}

#[test]
fn ranges_of_keys_need_no_index() {
    assert_eq!(reading(&planned("SELECT id FROM packages WHERE id >= 'a'", &[], &[1])), ["range id >= 'a'"]);
    let sql = "SELECT id FROM packages WHERE id < 'b' AND section = 'net'";
    assert_eq!(reading(&planned(sql, &["section"], &[9, 3])), ["by_section: section = 'net'"]);
    assert_eq!(reading(&planned(sql, &["section"], &[3, 9])), ["range id < 'b'"]);
    for condition in ["id != 'a'", "id NOT BETWEEN 'a' AND 'b'", "id IS NOT NULL"] {
        assert_eq!(reading(&planned(&format!("SELECT id FROM packages WHERE {condition}"), &[], &[])), ["scan"]);
    }
}

#[test]
fn negations_and_nulls_are_found_where_entries_tell_them() {
    let sql = "SELECT id FROM packages WHERE section = 'a' AND size IS NULL";
    let plan = planned(sql, &["section+size"], &[1]);
    assert_eq!(reading(&plan), ["by_section_size: section = 'a' AND size IS NULL"]);
    let [Path::Index(index)] = plan.paths() else { panic!() };
    assert!(index.residual.is_true() && index.fixed == 2);
    assert_eq!(reading(&planned("SELECT id FROM packages WHERE size IS NULL", &["size<"], &[])), ["scan"]);
    // An element that differs from 5 is not enough.
    let plan = planned("SELECT id FROM packages WHERE NOT (ports = 5)", &["ports<"], &[1]);
    let [Path::Index(index)] = plan.paths() else { panic!() };
    assert_eq!(index.residual.to_string(), "NOT (ports = 5)");
    // The prefix leads, the pattern is left.
    let plan = planned("SELECT id FROM packages WHERE section LIKE 'a%b'", &["section<"], &[1]);
    let [Path::Index(index)] = plan.paths() else { panic!() };
    assert_eq!((index.text.as_str(), index.residual.to_string().as_str()), ("section LIKE 'a%'", "section LIKE 'a%b'"));
}

#[test]
fn only_an_ordered_definition_gives_ranges() {
    let sql = "SELECT id FROM packages WHERE size >= 5";
    assert_eq!(reading(&planned(sql, &["size"], &[1])), ["scan"]);
    assert_eq!(reading(&planned(sql, &["size<"], &[1])), ["by_size: size >= 5"]);
}

#[test]
fn an_or_is_a_union_if_every_arm_has_a_path() {
    let sql = "SELECT id FROM packages WHERE (section = 'a' OR size > 5 AND priority = 'p') AND essential = TRUE";
    let plan = planned(sql, &["section", "size<"], &[1, 2]);
    assert_eq!(reading(&plan), ["by_section: section = 'a'", "by_size: size > 5"]);
    assert!(plan.repeats);
    let Reading::Paths(paths) = &plan.reading else { panic!() };
    let residuals: Vec<String> =
        paths.iter().map(|p| if let Path::Index(i) = p { i.residual.to_string() } else { String::new() }).collect();
    assert_eq!(residuals, ["essential = TRUE", "essential = TRUE AND priority = 'p'"]);
    assert_eq!(reading(&planned(sql, &["section"], &[1])), ["scan"]);
    // An arm by key needs no definition; the union is weighed against the index beside it.
    let sql = "SELECT id FROM packages WHERE (section = 'a' OR id = 'x') AND depends = 'y'";
    let names = ["section", "depends"];
    assert_eq!(reading(&planned(sql, &names, &[9, 5, 0])), ["by_section: section = 'a'", "get id = 'x'"]);
}

#[test]
fn an_order_is_served_where_entries_have_it() {
    let served = |sql: &str, names: &[&str]| planned(sql, names, &[1]).sorting;
    let sorted = |s: Sorting| s == Sorting::Sorted;
    let (back, forth) = (Sorting::Served { reversed: true }, Sorting::Served { reversed: false });
    assert_eq!(served("SELECT id FROM packages WHERE size > 5 ORDER BY size DESC LIMIT 5", &["size<"]), back);
    assert_eq!(served("SELECT id FROM packages WHERE size IN (5, 7) ORDER BY size", &["size"]), forth);
    assert_eq!(
        served("SELECT id FROM packages WHERE section = 'a' AND size > 5 ORDER BY size", &["section+size"]),
        forth
    );
    assert_eq!(served("SELECT id FROM packages WHERE section = 'a' ORDER BY id DESC", &["section"]), back);
    assert_eq!(served("SELECT id FROM packages WHERE id IN ('a', 'b') ORDER BY id", &[]), forth);
    assert_eq!(served("SELECT id FROM packages WHERE priority = 'a' ORDER BY id", &[]), forth);
    // Several keys, those that have one value left out; all forwards, or all backwards.
    let several = |order: &str, name: &str| {
        served(&format!("SELECT id FROM packages WHERE section = 'a' AND size > 5 ORDER BY {order}"), &[name])
    };
    assert_eq!(several("size, weight NULLS FIRST", "section+size+weight"), forth);
    assert_eq!(several("section DESC, size DESC, weight DESC NULLS LAST, id DESC", "section+size+weight"), back);
    assert_eq!(several("size", "section+size+priority"), forth);
    // Of long texts the entries have a part; what follows them has to be sorted in any case.
    let near = |reversed, keys| Sorting::Near { reversed, keys, limit: 256 };
    assert_eq!(several("size, priority NULLS FIRST", "section+size+priority"), near(false, 2));
    assert_eq!(
        served("SELECT id FROM packages WHERE section > 'a' ORDER BY section DESC, weight", &["section<"]),
        near(true, 1)
    );
    assert_eq!(served("SELECT id FROM packages WHERE id > 'a' ORDER BY id DESC", &[]), back);
    for (sql, names) in [
        // Rows without a size have entries below all others, and are to be sorted above them.
        ("SELECT id FROM packages WHERE section = 'a' ORDER BY size", "section+size"),
        ("SELECT id FROM packages WHERE section IN ('a', 'b') AND size > 5 ORDER BY size", "section+size"),
        ("SELECT id FROM packages WHERE size > 5 ORDER BY size, id", "size+priority<"),
        ("SELECT id FROM packages WHERE size > 5 ORDER BY size, weight NULLS FIRST, priority", "size+weight<"),
        ("SELECT id FROM packages WHERE size > 5 ORDER BY size DESC, weight NULLS FIRST", "size+weight<"),
        ("SELECT id FROM packages WHERE size > 5 ORDER BY weight", "size<"),
        ("SELECT id FROM packages WHERE size > 5 ORDER BY id", "size<"),
    ] {
        assert!(sorted(served(sql, &[names])), "{sql}");
    }
}

#[test]
fn a_limit_bounds_what_a_path_costs() {
    // Five entries of by_size in order are the answer.
    let sql = "SELECT id FROM packages WHERE size > 5 AND (section = 'a' OR section = 'b') ORDER BY size LIMIT 5";
    assert_eq!(
        reading(&planned(sql, &["size<", "section"], &[1_000, 20])),
        ["by_section: (section = 'a' OR section = 'b')"]
    );
    let sql = "SELECT id FROM packages WHERE section = 'a' AND priority = 'p' LIMIT 5";
    let names = ["section+priority", "section"];
    assert_eq!(
        reading(&planned(sql, &names, &[1_000, 20]))[0],
        "by_section_priority: section = 'a' AND priority = 'p'"
    );
}

#[test]
fn only_text_in_utf8_is_compared_by_the_store() {
    let filter =
        |condition: &str| match planned(&format!("SELECT id FROM packages WHERE {condition}"), &[], &[]).paths() {
            [Path::Rows(scan)] => scan.filter.clone().map(|f| (f.qualifier, f.operand)),
            other => panic!("{other:?}"),
        };
    assert_eq!(filter("size = 5 AND section = 'a\0b'"), Some(("section".into(), "a\0b".into())));
    for condition in
        ["size = 5", "weight = 5", "essential = TRUE", "depends = 'a'", "section > 'a'", "section = 'a' OR size = 5"]
    {
        assert_eq!(filter(condition), None, "{condition}");
    }
}

#[test]
fn a_scan_is_bounded_by_the_key_and_misses_no_row() {
    let scan = |condition: &str| match planned(&format!("SELECT id FROM packages WHERE {condition}"), &[], &[]).paths()
    {
        [Path::Rows(scan)] => scan.clone(),
        other => panic!("{other:?}"),
    };
    let bounded = scan("id > 'a' AND id <= 'b'");
    assert_eq!(bounded.ranges, [(Some("a\0".into()), Some("b\0".into()))]);
    let several = scan("id LIKE 'a%' OR id IN ('x', 'y')");
    assert_eq!(several.ranges.len(), 3);
    assert_eq!(several.ranges[0], (Some("a".into()), Some("b".into())));
    // A row may satisfy this by its key alone, whatever columns it has.
    assert_eq!(scan("id > 'a' OR size = 5").columns, Columns::All);
    assert_eq!(scan("size IS NULL").columns, Columns::All);
    assert_eq!(scan("id > 'a' AND size = 5").columns, Columns::Exact(vec![("a".into(), "size".into())]));
}

#[test]
fn a_refusal_says_what_would_help() {
    let refusal =
        |sql: &str, names: &[&str]| planned_with(sql, names, &[], Options::default()).refusal().expect(sql).to_string();
    assert_eq!(
        refusal("SELECT id FROM packages WHERE section = 'net' AND size > 5", &[]),
        "no index of table packages finds the rows with section = 'net' AND size > 5; \
         `index create packages by_section --on section` would help; or allow a scan of the whole table with --allow-scan"
    );
    assert!(
        refusal("SELECT id FROM packages WHERE size > 5", &["size"])
            .contains("`index create packages by_size_ordered --on size --ordered` would help")
    );
    assert!(
        refusal("SELECT id FROM packages WHERE section = 'a' OR size = 5 OR priority = 'p'", &["section"]).contains(
            "`index create packages by_size --on size` and `index create packages by_priority --on priority`"
        )
    );
    assert!(refusal("SELECT COUNT(*) FROM packages", &[]).contains("without WHERE reads the whole table"));
    let by_key = refusal("SELECT id FROM packages WHERE id != 'a'", &[]);
    assert!(by_key.ends_with("id != 'a'; allow a scan of the whole table with --allow-scan"), "{by_key}");
    assert!(
        refusal("SELECT id FROM packages WHERE lower(section) = 'a'", &["section"])
            .contains("`index create packages by_lower_section --on 'lower(section)'` would help")
    );
}

#[test]
fn a_definition_that_is_not_active_is_waited_for() {
    let mut building = definitions(&["section"]);
    building[0].state = Lifecycle::Building;
    let schema = schema(&building);
    let query = bind(&parse("SELECT id FROM packages WHERE section = 'net'").unwrap(), &schema, &[]).unwrap();
    let candidates = candidates(&query, &schema);
    let refusal = plan(query, &schema, &candidates, None, &Options::default()).refusal().unwrap();
    assert_eq!(refusal.kind(), ErrorKind::TooCostly);
    assert!(refusal.to_string().contains("waiting until the definition by_section is active"), "{refusal}");
}

#[test]
fn entries_answer_alone_where_they_hold_everything() {
    let alone = |sql: &str, names: &[&str]| {
        let options = Options { consistency: Consistency::Indexed, ..Options::default() };
        let plan = planned_with(sql, names, &[1], options);
        let Reading::Paths(paths) = &plan.reading else { panic!("{sql}") };
        let [Path::Index(index)] = paths.as_slice() else { panic!("{sql}") };
        plan.answers_from_entries(index)
    };
    assert!(alone("SELECT COUNT(*) FROM packages WHERE depends = 'x'", &["depends"]));
    assert!(alone("SELECT id, size FROM packages WHERE size > 5 ORDER BY size", &["size<"]));
    assert!(alone("SELECT size FROM packages WHERE section = 'a' AND size != 5", &["section+size"]));
    assert!(alone("SELECT id FROM packages WHERE section = 'a' AND (size > 5 OR id = 'x')", &["section+size"]));
    // The entry has one element of the array.
    assert!(!alone("SELECT depends FROM packages WHERE depends = 'x'", &["depends"]));
    assert!(!alone("SELECT id FROM packages WHERE depends = 'x' AND depends > 'y'", &["depends"]));
    assert!(!alone("SELECT id FROM packages WHERE section = 'a' ORDER BY size", &["section"]));
}

#[test]
fn a_long_query_is_planned_in_time() {
    let names = ["section", "priority", "size<", "weight<", "depends", "ports<", "section+size", "depends+section"];
    let arm = |i: usize| format!("(section = 'a{i}' AND depends = 'b' OR ports = {i} AND size > 3)");
    let condition: Vec<String> = (0..300).map(arm).collect();
    let started = std::time::Instant::now();
    let plan = planned(&format!("SELECT id FROM packages WHERE {}", condition.join(" AND ")), &names, &[]);
    assert!(matches!(plan.reading, Reading::Paths(_)));
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
    // Every arm has to be read.
    let plan = planned(&format!("SELECT id FROM packages WHERE {}", condition.join(" OR ")), &names, &[]);
    assert_eq!(reading(&plan).len(), 600);
}
