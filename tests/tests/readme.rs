//! The README's curl and JavaScript are run as they stand there, against a server of the test. Its Rust is a doctest of
//! the crate `seqtide`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use seqtide_tests::Server;

const README: &str = include_str!("../../README.md");

/// Where the README's server listens.
const ADDRESS: &str = "http://127.0.0.1:5984";

/// Ends what should have ended by itself.
const SECONDS_MAX: u32 = 60;

/// What stands between the first line that is `open` and the next fence.
fn block(open: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("\n{open}\n")).unwrap_or_else(|| panic!("the README has no {open}"));
    rest.split("```").next().unwrap_or_default()
}

/// The README's example in a language, for this server.
fn example(language: &str, server: &Server) -> String {
    let text = block(&format!("```{language} example"));
    assert!(text.contains(ADDRESS), "{text}");
    text.replace(ADDRESS, &server.url())
}

/// The standard output of a command that must succeed.
fn text_of(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} failed ({status}):\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn run_curl_example(server: &Server) -> String {
    let settings = tempfile::tempdir().expect("a folder");
    let curlrc = format!("silent\nshow-error\nfail\nmax-time = {SECONDS_MAX}\n");
    fs::write(settings.path().join(".curlrc"), curlrc).expect("curl's settings");
    text_of(Command::new("bash").args(["-e", "-c", &example("sh", server)]).env("CURL_HOME", settings.path()))
}

#[test]
fn the_curl_example_follows_a_feed_and_resumes_it() {
    let printed = run_curl_example(&Server::start());
    let shown = block("```text");
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("data: {\"seq\":")).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    for line in rows.iter().chain(&["id: 1", "id: 2", "event: end"]) {
        assert!(printed.lines().any(|printed| printed == *line), "{line} in\n{printed}");
    }
    let (_, resumed) = printed.split_once("\"reason\":\"limit\"").expect("the first feed ends");
    assert!(resumed.contains("data: {\"seq\":2,\"id\":\"o-2\",\"changes\":"), "{resumed}");
    assert!(!resumed.contains("\"seq\":1,"), "what was seen does not come again: {resumed}");
}

#[test]
fn the_browser_example_shows_changes_and_signs_of_life() {
    let server = Server::launch().arg("--feeds-heartbeat-ms").arg("200").start();
    run_curl_example(&server);
    let script = format!(
        "import {{ EventSource }} from 'eventsource';\n{}\n\
         feed.addEventListener('heartbeat', () => feed.close());\n\
         setTimeout(() => process.exit(1), {SECONDS_MAX}000).unref();",
        example("js", &server)
    );
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    let mut node = Command::new("node");
    let printed = text_of(node.args(["--input-type=module", "-e", &script]).current_dir(clients));
    for shown in ["1 o-1 {", "total: 12.5", "2 o-2 {", "caught up at 2", "alive, still to come: 0"] {
        assert!(printed.contains(shown), "{shown} in\n{printed}");
    }
}
