use super::*;
use crate::error::ErrorKind;

fn read(text: &str) -> Result<Config> {
    let mut loaded = Loaded::default();
    file::read(Path::new("/etc/si/x.toml"), text, &mut loaded)?;
    Ok(loaded.config)
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let error = read(text).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported), "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "expected {part:?} in {error}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    refused("[store]\ndat = \"x\"", &["/etc/si/x.toml:2:1", "\"store.dat\"", "did you mean \"data\"", "cache_bytes"]);
    refused("\n[stor]\n", &["x.toml:2:2", "\"stor\"", "did you mean \"store\""]);
    refused("[store]\ndata = 5", &["x.toml:2:8: store.data: expected a path, found 5"]);
    refused("[store]\ndata = \"\"", &["store.data: expected a path, found \"\""]);
    refused("[store]\ncache_bytes = \"1 KiB\"", &["2:15", "from 1 MiB to 1 TiB", "found \"1 KiB\""]);
    refused("[store]\ncache_bytes = -1", &["expected a size", "found -1"]);
    refused("[store]\ncache_bytes = \"64 Mib/s\"", &["expected a size"]);
    refused("[store]\ncache_bytes = 1.5", &["expected a size", "found 1.5"]);
    refused("[store]\ndurability = \"sync\"", &["store.durability: expected one of fsync, os, found \"sync\""]);
    refused("[query]\nallow_scan = \"true\"", &["query.allow_scan: expected true or false, found \"true\""]);
    refused("[query]\ntime_limit = 30", &["query.time_limit: expected a time", "found 30"]);
    refused("[query]\ntime_limit = \"0 s\"", &["expected a time"]);
    refused("store = 5", &["x.toml:1:9: store: expected a table, as under [store]"]);
    refused("[store]\ndata = \"a\"\ndata = \"b\"", &["x.toml:3:1", "duplicate key"]);
    refused("[store\n", &["x.toml:1:"]);
    refused("[table]\nname = \"t\"", &["table: expected tables, each under [[table]]"]);
}

#[test]
fn mistakes_in_tables_are_named_with_their_place() {
    let table = |rest: &str| format!("[[table]]\nname = \"t\"\nfamilies = [\"a\"]\n{rest}");
    let index = |rest: &str| table(&format!("[[table.index]]\nname = \"i\"\n{rest}"));
    refused("[[table]]\nfamilies = [\"a\"]", &["x.toml:1:1: table.name: missing"]);
    refused("[[table]]\nname = \"t\"", &["table.families: missing: expected a list of texts"]);
    refused("[[table]]\nname = \"t\"\nfamilies = []", &["3:12: table.families: expected a list"]);
    refused("[[table]]\nname = \"a/b\"\nfamilies = [\"a\"]", &["2:8: table.name: \"a/b\" cannot name a table"]);
    refused(&table("key = \"x\""), &["4:7: table.key:"]);
    refused(&table("versions = 0"), &["4:12: table.versions: expected a whole number from 1 to"]);
    refused(&table("[[table]]\nname = \"t\"\nfamilies = [\"a\"]"), &["5:8: table.name: table t is there already"]);
    refused(&table("[[table.attribute]]\nname = \"x\""), &["table.attribute.type: missing"]);
    refused(&table("[[table.attribute]]\nname = \"id\"\ntype = \"int\""), &["names the row key"]);
    refused(&table("[[table.attribute]]\nname = \"x\"\ntype = \"colour\""), &["6:8", "unknown attribute type"]);
    refused(
        &table("[[table.attribute]]\nname = \"x\"\ntype = \"int[]\"\nencoding = \"utf8\""),
        &["7:12: table.attribute.encoding:", "expected the encoding json"],
    );
    refused(&table("[[table.attribute]]\nname = \"x\"\ntype = \"int\"\nfamily = \"b\""), &["families a, found \"b\""]);
    refused(&index(""), &["table.index.on: missing"]);
    refused(&index("on = \"x\""), &["6:6: table.index.on: expected a list of texts"]);
    refused(&index("on = [\"upper(x)\"]"), &["6:6: table.index.on:", "upper"]);
    refused(
        &index("on = [\"x\"]\nsalts = 256"),
        &["7:9: table.index.salts: expected a whole number from 1 to 255, found 256"],
    );
    refused(&index("on = [\"x\"]\nwhere = \"x =\""), &["7:9: table.index.where:"]);
    refused(&index("on = [\"x\"]\nsalt = 1"), &["7:1: unknown key \"table.index.salt\" (did you mean \"salts\"?)"]);
}

#[test]
fn tables_are_read_in_full() {
    let config = read(
        r#"
        [[table]]
        name = "products"
        families = ["a", "b"]
        versions = 3
        key = "brand_id=int, rest=text"

        [[table.attribute]]
        name = "brand"
        type = "text"
        encoding = "utf8"
        family = "b"
        qualifier = "br"

        [[table.attribute]]
        name = "tags"
        type = "text[]"

        [[table.index]]
        name = "by_brand"
        on = ["lower(brand)", "price desc"]
        ordered = true
        salts = 0x10
        covered = ["price"]
        where = "status = 'live'"
        value_limit = 1_024
        "#,
    )
    .unwrap();
    let expected = TableConfig {
        name: "products".to_owned(),
        families: vec!["a".to_owned(), "b".to_owned()],
        versions: 3,
        key: Some("brand_id=int, rest=text".parse().unwrap()),
        attributes: vec!["brand:text:utf8:b:br".parse().unwrap(), "tags:text[]".parse().unwrap()],
        indexes: vec![IndexConfig {
            name: "by_brand".to_owned(),
            on: vec!["lower(brand)".to_owned(), "price desc".to_owned()],
            ordered: true,
            salts: Some(16),
            covered: vec!["price".to_owned()],
            filter: Some("status = 'live'".to_owned()),
            value_limit: Some(1_024),
        }],
    };
    assert_eq!(config.tables, [expected]);
}

#[test]
fn sizes_and_times_are_read_as_people_write_them() {
    for (text, bytes) in [
        ("\"64 MiB\"", 64 << 20),
        ("\"2GiB\"", 2 << 30),
        ("\"1.5 MiB\"", 3 << 19),
        ("\"5 MB\"", 5_000_000),
        ("2_097_152", 2 << 20),
    ] {
        let config = read(&format!("[store]\ncache_bytes = {text}")).unwrap();
        assert_eq!(config.store.cache_bytes.bytes(), bytes, "{text}");
        // What is shown is read back.
        let shown = config.store.cache_bytes.shown().unwrap();
        let again = read(&format!("[store]\ncache_bytes = {shown}")).unwrap();
        assert_eq!(again.store.cache_bytes.bytes(), bytes, "{shown}");
    }
    for (text, limit) in [
        ("500 ms", Some(Duration::from_millis(500))),
        ("1s 500ms", Some(Duration::from_millis(1_500))),
        ("2 min", Some(Duration::from_secs(120))),
        ("1h", Some(Duration::from_secs(3_600))),
        ("none", None),
    ] {
        let config = read(&format!("[query]\ntime_limit = {text:?}")).unwrap();
        assert_eq!(config.query.time_limit, Limit(limit), "{text}");
        let again = read(&format!("[query]\ntime_limit = {}", config.query.time_limit.shown().unwrap())).unwrap();
        assert_eq!(again.query.time_limit, Limit(limit));
    }
}

#[test]
fn the_environment_is_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.toml");
    std::fs::write(&path, "[store]\ndata = \"data\"\ndurability = \"os\"\n[output]\nformat = \"json\"\n").unwrap();
    let environment = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let file = path.to_str().unwrap();
    let pairs = environment(&[
        ("SIDEINDEX_CONFIG", file),
        ("SIDEINDEX_OUTPUT_FORMAT", "csv"),
        ("SIDEINDEX_QUERY_ALLOW_SCAN", "true"),
        ("SIDEINDEX_LOG", "debug"),
        ("HOME", "/root"),
    ]);
    let mut loaded = Loaded::read(None, pairs).unwrap();
    loaded.take_flag("query.allow_scan", "--allow-scan", Some(false), |c, v| c.query.allow_scan = v);
    assert_eq!(loaded.config.store.data, Some(dir.path().join("data")), "relative to the file");
    assert_eq!((loaded.config.output.format, loaded.config.query.allow_scan), (Format::Csv, false));
    let origins: Vec<Origin> = SETTINGS.iter().map(|s| loaded.origin(s)).collect();
    let variable = Origin::Environment("SIDEINDEX_OUTPUT_FORMAT".to_owned());
    for (setting, origin) in SETTINGS.iter().zip(&origins) {
        match setting.key {
            "store.data" => assert_eq!(*origin, Origin::File(path.clone(), 2)),
            "store.durability" => assert_eq!(*origin, Origin::File(path.clone(), 3)),
            "output.format" | "query.allow_scan" => {}
            key => assert_eq!(*origin, Origin::Default, "{key}"),
        }
    }
    assert!(origins.contains(&variable) && origins.contains(&Origin::Flag("--allow-scan")), "{origins:?}");

    for (name, text, part) in [
        ("SIDEINDEX_STORE_DAT", "x", "did you mean \"SIDEINDEX_STORE_DATA\""),
        ("SIDEINDEX_QUERY_ALLOW_SCAN", "yes", "SIDEINDEX_QUERY_ALLOW_SCAN: expected true or false, found \"yes\""),
        ("SIDEINDEX_STORE_CACHE_BYTES", "much", "expected a size"),
    ] {
        let error = Loaded::read(None, environment(&[(name, text)])).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = Loaded::read(Some(Path::new("/nowhere.toml")), []).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn every_setting_is_read_from_both_and_shown_as_it_was_given() {
    let given = |key: &str| match key {
        "store.kind" => "\"thrift1\"",
        "store.data" => "\"/var/lib/x\"",
        "store.durability" => "\"os\"",
        "store.cache_bytes" => "\"3 MiB\"",
        "store.memtable_bytes" => "\"5 MiB\"",
        "store.log_bytes" => "\"7 MiB\"",
        "hbase.gateways" => "[\"a:1\", \"b:2\"]",
        "hbase.transport" => "\"framed\"",
        "hbase.connections" => "3",
        "hbase.connect_timeout" => "\"2s\"",
        "hbase.answer_timeout" => "\"11s\"",
        "hbase.deadline" => "\"13s\"",
        "output.format" => "\"csv\"",
        "query.consistency" => "\"indexed\"",
        "query.allow_scan" => "true",
        "query.memory_limit" => "\"9 MiB\"",
        "query.time_limit" => "\"7s\"",
        other => panic!("give {other} a value here that is not its default"),
    };
    for setting in SETTINGS {
        let value = given(setting.key);
        let before = setting.slot(&mut Config::default()).shown();
        assert_ne!(before.as_deref(), Some(value), "{}", setting.key);
        let mut config = read(&format!("[{}]\n{} = {value}", setting.section(), setting.name())).unwrap();
        assert_eq!(setting.slot(&mut config).shown().as_deref(), Some(value), "{}", setting.key);
        // Lists are given with commas only.
        let environment = [(setting.variable(), value.replace(['"', '[', ']'], ""))];
        let mut loaded = Loaded::read(None, environment).unwrap();
        assert_eq!(setting.slot(&mut loaded.config).shown().as_deref(), Some(value), "{}", setting.key);
    }
}

#[cfg(unix)]
#[test]
fn secrets_are_for_their_owner_alone_and_are_never_printed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    let write = |text: &[u8], mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut slot: Option<Secret> = None;
    write(b"hunter2\r\n", 0o600);
    slot.set(&Given::Text(path.to_str().unwrap())).unwrap();
    let secret = slot.clone().unwrap();
    assert_eq!(secret.reveal(), "hunter2");
    let printed = format!("{secret} {secret:?} {:?} {} {:?}", slot, serde_json::json!(secret), slot.shown());
    assert!(!printed.contains("hunter2"), "{printed}");

    for (text, mode, part) in [
        (&b"hunter2"[..], 0o640, "found mode 640; `chmod 600` it"),
        (b"hunter2", 0o604, "mode 604"),
        (b"\n", 0o400, "empty"),
        (b"hunter\xff", 0o600, "UTF-8"),
        (&[b'x'; 70_000], 0o600, "at most 65536 bytes"),
    ] {
        let _ = std::fs::remove_file(&path);
        write(text, mode);
        let error = Secret::read(&path).unwrap_err();
        assert!(error.to_string().contains(part) && !format!("{error:?}").contains("hunter"), "{error:?}");
    }
    // A secret in the place of its path is not repeated.
    let value = toml::de::DeValue::parse("5").unwrap();
    let error = slot.set(&Given::Toml(value.get_ref(), Path::new(""))).unwrap_err();
    assert!(error.to_string().ends_with("expected the path of a file that holds the secret"), "{error}");
    assert_eq!(Secret::read(Path::new("/nowhere")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn fuzz_configurations() {
    let words = [
        "[store]\n",
        "[query]\n",
        "[output]\n",
        "[[table]]\n",
        "[[table.index]]\n",
        "name = ",
        "key = ",
        "on = [",
        "\"",
        "'''",
        "\"\"\"",
        "]",
        "= ",
        "\n",
        "\" MiB\"",
        "\" s\"",
        "true",
        "{",
        "}",
        "0x",
        "1979-05-27",
        "nan",
        "é",
    ];
    crate::fuzz::run("configurations", &words, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return String::new() };
        let mut loaded = Loaded::default();
        let taken = file::read(Path::new("/etc/si/x.toml"), text, &mut loaded);
        match &taken {
            Ok(()) => {
                // What is shown of the settings, read as a file, is shown the same.
                let shown = as_file(&mut loaded.config);
                let mut again = read(&shown).unwrap_or_else(|e| panic!("{e}\n{shown}"));
                assert_eq!(as_file(&mut again), shown);
                format!("{} tables", loaded.config.tables.len())
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported), "{error:?}");
                let shown = error.to_string();
                let place = shown.strip_prefix("/etc/si/x.toml:").unwrap_or_else(|| panic!("no place: {shown}"));
                let mut place = place.splitn(3, ':').map(|n| n.trim().parse::<usize>().unwrap_or(0));
                let (line, column) = (place.next().unwrap(), place.next().unwrap());
                // A place is a character of the file, or just after a line.
                let found = text.split('\n').nth(line - 1).unwrap_or_else(|| panic!("no line {line}: {shown}"));
                assert!((1..=found.chars().count() + 1).contains(&column), "{shown}");
                crate::fuzz::outcome(&taken)
            }
        }
    });
}

fn as_file(config: &mut Config) -> String {
    let line = |setting: &Setting| {
        let value = setting.slot(config).shown()?;
        Some(format!("{}.{} = {value}\n", setting.section(), setting.name()))
    };
    SETTINGS.iter().filter_map(line).collect()
}
