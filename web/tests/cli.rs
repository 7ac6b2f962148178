//! The command line of the binary `seqtide`, as far as it answers without serving.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The binary with these arguments, in an environment without variables of ours.
fn seqtide(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seqtide"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEQTIDE_")) {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// The standard output of a run that succeeds.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of a run that is refused before it serves.
#[track_caller]
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.starts_with("seqtide: ") && line.trim_end().lines().count() == 1, "{line}");
    assert!(output.stdout.is_empty());
    line
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A configuration file with this text; it lives as long as the folder.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seqtide.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

#[track_caller]
fn assert_sets(printed: &str, line: &str) {
    assert!(printed.lines().any(|printed| printed == line), "no line {line:?} in\n{printed}");
}

#[test]
fn version_names_the_program_and_its_version() {
    assert_eq!(printed(&mut seqtide(&["--version"])), format!("seqtide {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_names_the_command() {
    let help = printed(&mut seqtide(&["--help"]));
    assert!(help.contains("serve") && help.contains("--version"), "{help}");
    assert!(!help.contains("--limits-"), "the options belong to the command's help:\n{help}");
}

#[test]
fn help_of_serve_names_flags_variables_and_defaults() {
    let help = printed(&mut seqtide(&["serve", "--help"]));
    for line in ["--listen <ADDRESS:PORT>", "--data <FOLDER>", "--config <FILE>", "--print-config"] {
        assert!(help.contains(line), "no {line} in\n{help}");
    }
    for line in ["--limits-document-bytes-max <BYTES>", "[env: SEQTIDE_LIMITS_DOCUMENT_BYTES_MAX]", "127.0.0.1:5984"] {
        assert!(help.contains(line), "no {line} in\n{help}");
    }
}

#[test]
fn help_of_serve_does_not_show_values_of_the_environment() {
    let help = printed(seqtide(&["serve", "--help"]).env("SEQTIDE_DATA", "/a/secret/place"));
    assert!(!help.contains("secret"), "{help}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [&["serve", "--lisen", "127.0.0.1:0"][..], &["sevre"], &["serve", "--listen", "here"]] {
        let output = seqtide(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
    }
}

#[test]
fn without_a_command_it_takes_the_options_of_serve() {
    let options = ["--workers", "3", "--print-config"];
    let bare = printed(seqtide(&options).env("SEQTIDE_LISTEN", "127.0.0.1:1"));
    let serve = printed(seqtide(&["serve"]).args(options).env("SEQTIDE_LISTEN", "127.0.0.1:1"));
    assert_eq!(bare, serve);
    assert_sets(&bare, "workers = 3");
}

#[test]
fn without_anything_it_serves() {
    // An address that serving refuses shows that it would have served.
    let line = refused(seqtide(&[]).env("SEQTIDE_LISTEN", "0.0.0.0:5984"));
    assert!(line.contains("listen: 0.0.0.0:5984"), "{line}");
}

#[test]
fn an_address_others_can_reach_is_refused_with_the_reason() {
    let line = refused(&mut seqtide(&["serve", "--listen", "0.0.0.0:5984"]));
    assert!(line.contains("listen: 0.0.0.0:5984 is not a loopback address"), "{line}");
    assert!(line.contains("no authentication yet"), "{line}");
}

#[test]
fn the_defaults_are_loopback_5984_and_a_folder_here() {
    let config = printed(&mut seqtide(&["serve", "--print-config"]));
    assert_sets(&config, r#"listen = "127.0.0.1:5984""#);
    assert_sets(&config, r#"data = "./seqtide-data""#);
    assert_sets(&config, r#"durability = "full""#);
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let (_folder, path) = file("workers = 1\n[limits]\nnesting_max = 1\nuuids_max = 1\n");
    let mut command = seqtide(&["serve", "--print-config", "--workers", "3"]);
    command.arg("--config").arg(&path).env("SEQTIDE_WORKERS", "2").env("SEQTIDE_LIMITS_NESTING_MAX", "2");
    let config = printed(&mut command);
    assert_sets(&config, "workers = 3");
    assert_sets(&config, "nesting_max = 2");
    assert_sets(&config, "uuids_max = 1");
    assert_sets(&config, "feeds_max = 20000");
}

#[test]
fn the_file_can_be_named_by_a_variable() {
    let (_folder, path) = file("workers = 7");
    assert_sets(&printed(seqtide(&["--print-config"]).env("SEQTIDE_CONFIG", &path)), "workers = 7");
}

#[test]
fn the_printed_configuration_reads_back_as_itself() {
    let mut command = seqtide(&["serve", "--print-config", "--data", "a \"quoted\" \\ folder", "--log-format", "json"]);
    command.args(["--cors-origins", "https://a.example,http://b.example:81", "--feeds-heartbeat-ms", "1234"]);
    command.args(["--listen", "[::1]:0", "--durability", "relaxed", "--storage-readers-max", "9"]);
    let first = printed(&mut command);
    for line in [r#"cors_origins = ["https://a.example", "http://b.example:81"]"#, "heartbeat_ms = 1234"] {
        assert_sets(&first, line);
    }
    let (_folder, path) = file(&first);
    assert_eq!(printed(seqtide(&["serve", "--print-config", "--config"]).arg(path)), first);
}

#[test]
fn an_empty_flag_clears_a_list_of_the_file() {
    let (_folder, path) = file("cors_origins = ['https://a.example']");
    let config = printed(seqtide(&["--print-config", "--cors-origins", "", "--config"]).arg(path));
    assert_sets(&config, "cors_origins = []");
}

#[test]
fn an_unknown_key_is_refused_with_its_file() {
    let (_folder, path) = file("[limits]\ndocument_byte_max = 1\n");
    let line = refused(seqtide(&["serve", "--config"]).arg(&path));
    for part in [path.to_str().unwrap(), "\"limits.document_byte_max\"", "\"limits.document_bytes_max\""] {
        assert!(line.contains(part), "no {part} in {line}");
    }
}

#[test]
fn an_unknown_variable_is_refused_with_the_nearest_known_one() {
    let line = refused(seqtide(&["serve"]).env("SEQTIDE_LISEN", "127.0.0.1:0"));
    assert!(line.contains("unknown variable SEQTIDE_LISEN, the nearest known one is SEQTIDE_LISTEN"), "{line}");
}

#[test]
fn a_file_that_is_missing_or_not_toml_is_named() {
    let (folder, path) = file("workers = 1\nlisten = = 2\n");
    let line = refused(seqtide(&["serve", "--config"]).arg(&path));
    assert!(line.contains("seqtide.toml, line 2: "), "{line}");
    let line = refused(seqtide(&["serve", "--config"]).arg(folder.path().join("none.toml")));
    assert!(line.contains("none.toml: No such file"), "{line}");
}

#[test]
fn a_wrong_type_in_the_file_names_file_and_key() {
    let (_folder, path) = file("[feeds]\nheartbeat_ms = 'often'\n");
    let line = refused(seqtide(&["serve", "--config"]).arg(&path));
    assert!(line.contains("seqtide.toml: ") && line.contains("`feeds.heartbeat_ms`"), "{line}");
}

#[test]
fn a_wrong_value_of_a_variable_names_the_key() {
    let line = refused(seqtide(&["serve"]).env("SEQTIDE_LIMITS_FEEDS_MAX", "0"));
    assert!(line.contains("limits.feeds_max: must be at least 1, is 0"), "{line}");
    let line = refused(seqtide(&["serve"]).env("SEQTIDE_STORAGE_REVS_LIMIT", "-1"));
    assert!(line.contains("`storage.revs_limit`"), "{line}");
}

#[test]
fn a_wrong_log_filter_is_a_start_error() {
    let line = refused(&mut seqtide(&["serve", "--log", "info,seqtide=loud"]));
    assert!(line.contains("log: \"info,seqtide=loud\" is not a filter"), "{line}");
}

#[test]
fn a_variable_that_makes_no_sense_is_named_and_a_flag_as_a_flag() {
    for (variable, value, right) in [
        ("SEQTIDE_WORKERS", "x", "digit"),
        ("SEQTIDE_LISTEN", "localhost:x", "127.0.0.1:5984"),
        ("SEQTIDE_DURABILITY", "", "relaxed"),
    ] {
        let line = refused(seqtide(&["serve"]).env(variable, value));
        assert!(line.contains(variable) && line.contains(&format!("{value:?}")) && line.contains(right), "{line}");
    }
    let line = refused(seqtide(&["serve"]).env("SEQTIDE_CONFIG", ""));
    assert!(line.trim_end().ends_with("SEQTIDE_CONFIG is empty: give it a value, or unset it"), "{line}");
    let nothing = tempfile::tempdir().unwrap();
    std::fs::create_dir(nothing.path().join("databases")).unwrap();
    let checked = printed(seqtide(&["check"]).arg(nothing.path()).env("SEQTIDE_WORKERS", "x"));
    assert_eq!(checked, "no databases\n", "what another command does it is not asked for");
    let typed = seqtide(&["serve", "--workers=x"]).env("SEQTIDE_WORKERS", "y").output().unwrap();
    assert_eq!(typed.status.code(), Some(2), "{}", stderr(&typed));
    assert!(stderr(&typed).contains("--workers"), "{}", stderr(&typed));
}

#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let broken = OsStr::from_bytes(b"br\xffken");
    for variable in ["SEQTIDE_DATA", "SEQTIDE_LOG", "SEQTIDE_WORKERS"] {
        let line = refused(seqtide(&["serve"]).env(variable, broken));
        assert!(line.contains(variable) && line.trim_end().ends_with("it is no text in UTF-8"), "{line}");
    }
    let typed = seqtide(&["serve", "--data"]).arg(broken).output().unwrap();
    assert_eq!(typed.status.code(), Some(2), "{}", stderr(&typed));
}

#[test]
fn a_number_above_the_largest_is_refused_with_that() {
    for (variable, value, most) in [
        ("SEQTIDE_STORAGE_REVS_LIMIT", "5000000000", "storage.revs_limit: must be at most 4294967295, is 5000000000"),
        ("SEQTIDE_STORAGE_READERS_MAX", "5000000000", "storage.readers_max: must be at most 10000, is 5000000000"),
        ("SEQTIDE_STORAGE_COMMITTERS", "100000", "storage.committers: must be at most 512, is 100000"),
    ] {
        let line = refused(seqtide(&["serve"]).env(variable, value));
        assert!(line.trim_end().ends_with(most), "{line}");
    }
    let line = refused(&mut seqtide(&["serve", "--storage-reclaim-garbage-percent", "300"]));
    assert!(line.trim_end().ends_with("storage.reclaim_garbage_percent: must be at most 100, is 300"), "{line}");
}

#[test]
fn a_file_is_no_data_folder() {
    let (_folder, path) = file("");
    for data in [path.clone(), path.join("below")] {
        let line = refused(seqtide(&["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data));
        assert!(line.trim_end().ends_with(&format!("{}: it is a file and not a folder", path.display())), "{line}");
    }
}
