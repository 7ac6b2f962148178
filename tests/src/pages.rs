//! Pages of documentation whose examples are run as they stand there, against a server of the test.

use std::fs;
use std::process::{Command, Output};

use crate::Server;

/// Where the pages' server listens.
const ADDRESS: &str = "http://127.0.0.1:5984";

/// Ends a request that should have ended by itself.
const SECONDS_MAX: u32 = 60;

/// A page's text.
pub struct Page(pub &'static str);

impl Page {
    /// What stands between the first line that is `open` and the next fence.
    ///
    /// # Panics
    /// When there is none.
    pub fn block(&self, open: &str) -> &'static str {
        let (_, rest) = self.0.split_once(&format!("\n{open}\n")).unwrap_or_else(|| panic!("the page has no {open}"));
        rest.split("```").next().unwrap_or_default()
    }

    /// The page's example in a language, for this server.
    ///
    /// # Panics
    /// When there is none, or it speaks to no server.
    pub fn example(&self, language: &str, server: &Server) -> String {
        let text = self.block(&format!("```{language} example"));
        assert!(text.contains(ADDRESS), "{text}");
        text.replace(ADDRESS, &server.url())
    }
}

/// Runs each of a page's named examples (` ```sh name`, whose output is shown as ` ```text name`) on a server of its
/// own that the page's example has set up, with the names of that one's first line, in a folder of its own. What is
/// printed and shown is compared as `alike` has it. Gives how many there were.
///
/// # Panics
/// When one prints something else.
pub fn run_examples(page: &Page, alike: impl Fn(&str) -> String) -> usize {
    let fences = page.0.lines().filter_map(|line| line.strip_prefix("```sh "));
    let names: Vec<&str> = fences.filter(|name| *name != "example").collect();
    for name in &names {
        let server = Server::start();
        let setup = page.example("sh", &server);
        run_shell(&setup);
        let (variables, _) = setup.split_once('\n').expect("a line of names");
        let commands = page.block(&format!("```sh {name}")).replace(ADDRESS, &server.url());
        let folder = tempfile::tempdir().expect("a folder");
        let printed = run_shell(&format!("{variables}\ncd {}\n{commands}", folder.path().display()));
        let shown = page.block(&format!("```text {name}"));
        assert_eq!(alike(printed.trim_end()), alike(shown.trim_end()), "{name}");
    }
    names.len()
}

/// The standard output of a shell script, whose curl is silent and gives up by itself.
///
/// # Panics
/// When it fails.
pub fn run_shell(script: &str) -> String {
    let settings = tempfile::tempdir().expect("a folder");
    let curlrc = format!("silent\nshow-error\nfail\nmax-time = {SECONDS_MAX}\n");
    fs::write(settings.path().join(".curlrc"), curlrc).expect("curl's settings");
    text_of(Command::new("bash").args(["-e", "-c", script]).env("CURL_HOME", settings.path()))
}

/// The standard output of a module of JavaScript, which may use the packages of `tests/clients`, and which is ended
/// when it does not end by itself.
///
/// # Panics
/// When it fails.
pub fn run_module(module: &str) -> String {
    let script = format!("{module}\nsetTimeout(() => process.exit(1), {SECONDS_MAX}000).unref();");
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
    text_of(Command::new("node").args(["--input-type=module", "-e", &script]).current_dir(clients))
}

fn text_of(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} failed ({status}):\n{stdout}\n{stderr}");
    stdout.into_owned()
}
