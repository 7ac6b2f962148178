//! Every refusal of a value that makes no sense, and what a value comes to.

use super::*;

/// The defaults with one TOML text laid over them, checked.
fn checked(text: &str) -> Result<Config, String> {
    let mut table = defaults::table().clone();
    layers::overlay(&mut table, toml::from_str(text).unwrap());
    let config = Config::from_table(table)?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

#[track_caller]
fn assert_refused(text: &str, needle: &str) {
    let error = checked(text).expect_err(text);
    assert!(error.contains(needle) && !error.contains('\n'), "{text}: {error}");
}

#[test]
fn a_value_of_another_kind_is_told_of_in_words_of_the_file() {
    for (text, said) in [
        ("workers = 'x'", "invalid type: string \"x\", expected a whole number, 0 or more in `workers`"),
        ("feeds.heartbeat_ms = '5s'", "expected a whole number, 0 or more in `feeds.heartbeat_ms`"),
        ("limits.nesting_max = -1", "invalid value: integer `-1`, expected a whole number, 0 or more"),
        ("storage.map_bytes_max = 1e9", "invalid type: number `1000000000.0`, expected a whole number"),
        ("durability = 'fast'", "no such value: `fast`, expected `full` or `relaxed` in `durability`"),
        ("data = 5", "expected a path in quotes in `data`"),
        ("log = 5", "expected a text in quotes in `log`"),
        ("cors_origins = 'x'", "expected a list, such as [\"a\", \"b\"] in `cors_origins`"),
    ] {
        assert_refused(text, said);
    }
}

#[test]
fn the_defaults_are_valid() {
    assert_eq!(checked(""), Ok(Config::default()));
}

#[test]
fn a_number_that_must_not_be_zero_is_refused_by_its_key() {
    let zero_makes_sense = [
        "workers",
        "shutdown_timeout_ms",
        "feeds.drain_ms",
        "feeds.round_ms",
        "storage.reclaim_floor_bytes",
        "storage.committers",
        "storage.awake_processors_max",
        "storage.verify_at_open_bytes_max",
    ]
    .map(str::to_owned);
    let mut numbers = 0;
    for option in cli::options() {
        let key = option.get_id().to_string();
        let Some(value) = layers::value_at(defaults::table(), &key) else {
            continue;
        };
        if !value.is_integer() {
            continue;
        }
        numbers += 1;
        match checked(&format!("{key} = 0")) {
            Ok(_) => assert!(zero_makes_sense.contains(&key), "{key} = 0 was accepted"),
            Err(error) => assert!(error.starts_with(&format!("{key}: must be at least ")), "{error}"),
        }
    }
    assert_eq!(numbers, 38);
}

#[test]
fn only_loopback_addresses_may_be_listened_on() {
    for address in ["localhost:5984", "127.0.0.1:0", "127.3.2.1:80", "[::1]:5984", "[::ffff:127.0.0.1]:5984"] {
        checked(&format!("listen = '{address}'")).unwrap();
    }
    for address in ["0.0.0.0:5984", "[::]:5984", "192.168.1.7:5984", "[::ffff:10.0.0.1]:5984"] {
        assert_refused(&format!("listen = '{address}'"), "there is no authentication yet");
    }
    for address in ["localhost", "localhost:65536", "example.org:5984", "5984", ""] {
        assert_refused(&format!("listen = '{address}'"), "or localhost, and a port, such as 127.0.0.1:5984");
    }
}

#[test]
fn a_wrong_type_or_range_names_its_key() {
    assert_refused("limits.nesting_max = -1", "`limits.nesting_max`");
    assert_refused("feeds.heartbeat_ms = 'often'", "`feeds.heartbeat_ms`");
    assert_refused("durability = 'none'", "`durability`");
    assert_refused("limits = 5", "`limits`");
}

#[test]
fn a_wildcard_origin_is_refused_with_the_reason() {
    assert_refused("cors_origins = ['*']", "credentials");
    assert_refused("cors_origins = ['https://example.org', 'example.org']", "`cors_origins`");
}

#[test]
fn a_log_filter_must_be_one() {
    assert_refused("log = 'info,seqtide=loud'", "log: \"info,seqtide=loud\" is not a filter");
}

#[test]
fn a_map_is_whole_pages_and_all_maps_fit_the_address_space() {
    assert_refused("storage.map_bytes = 1048577", "storage.map_bytes: must be a multiple of 4096");
    assert_refused("storage.map_bytes_max = 4194305", "storage.map_bytes_max: must be a multiple of 4096");
    assert_refused("limits.databases_open_max = 1025", "limits.databases_open_max (1025)");
    checked("limits.databases_open_max = 1024").unwrap();
}

#[test]
fn a_request_holds_the_largest_document() {
    assert_refused("limits.request_bytes_max = 7999999", "limits.request_bytes_max: 7999999");
    checked("limits.request_bytes_max = 8000000").unwrap();
}

#[test]
fn the_largest_request_fits_zipped_and_unzipped() {
    assert_refused("limits.bodies_bytes_max = 127999999", "limits.bodies_bytes_max: 127999999 is less than twice");
    checked("limits.bodies_bytes_max = 128000000").unwrap();
}

#[test]
fn ceilings_are_inclusive() {
    checked("storage.reclaim_garbage_percent = 100").unwrap();
    assert_refused("storage.reclaim_garbage_percent = 101", "must be at most 100");
    checked("storage.revs_limit = 4294967295").unwrap();
    checked("storage.committers = 512").unwrap();
    for (key, value, most) in [
        ("storage.reclaim_garbage_percent", "300", "100"),
        ("storage.revs_limit", "5000000000", "4294967295"),
        ("storage.readers_max", "5000000000", "10000"),
        ("storage.committers", "100000", "512"),
        ("workers", "9223372036854775807", "512"),
    ] {
        assert_refused(&format!("{key} = {value}"), &format!("{key}: must be at most {most}, is {value}"));
    }
    assert_refused("workers = 513", "must be at most 512");
    assert_refused("log = \"verbose\"", "\"verbose\" is no level");
    assert_refused("log = \"info,seqtide\"", "\"seqtide\" is no level");
    assert_refused("storage.readers_max = 10001", "must be at most 10000");
    assert_refused("storage.map_bytes_max = 70368744181760", "must be at most 70368744177664");
    assert_refused("limits.document_bytes_max = 4000000001", "must be at most 4000000000");
}

#[test]
fn a_folder_must_be_named() {
    assert_refused("data = ''", "data: names no folder");
}

#[test]
fn web_threads_are_as_many_as_named_and_else_one_a_core() {
    let of = |workers| Config { workers, ..Config::default() }.web_threads();
    assert_eq!([1, 3, WORKERS_MAX].map(of), [1, 3, WORKERS_MAX]);
    assert!((1..=WORKERS_MAX).contains(&of(0)));
}
