//! The command line, the environment and the configuration file.

use std::fs;
use std::time::{Duration, Instant};

use seqtide_tests::server::{Launch, seqtide_command, seqtide_command_under};
use seqtide_tests::{Database, Server};

/// Exit code, standard output and standard error of `seqtide` with these arguments.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = seqtide_command().args(args).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn version_and_help_are_answers() {
    let (code, stdout, _) = run(&["--version"]);
    assert_eq!((code, stdout.as_str()), (Some(0), concat!("seqtide ", env!("CARGO_PKG_VERSION"), "\n")));
    let (code, stdout, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("serve"), "{stdout}");
    let (code, stdout, _) = run(&["serve", "--help"]);
    assert_eq!(code, Some(0));
    for mention in ["--listen", "--data", "127.0.0.1:5984", "./seqtide-data"] {
        assert!(stdout.contains(mention), "{mention} in {stdout}");
    }
}

/// Whatever else a configuration file says, figures of this machine do not get among its server's databases.
#[test]
fn the_demo_has_a_folder_of_its_own_unless_another_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the file");
        path.display().to_string()
    };
    let (without, with) = (file("without.toml", "log = \"warn\"\n"), file("with.toml", "data = \"./mine\"\n"));
    for (args, variable, expected) in [
        (&["demo"][..], None, "./seqtide-demo"),
        (&["demo", "--config", &without], None, "./seqtide-demo"),
        (&["demo", "--config", &with], None, "./mine"),
        (&["demo", "--config", &without], Some("./variable"), "./variable"),
        (&["demo", "--config", &with, "--data", "./flag"], Some("./variable"), "./flag"),
        (&["serve", "--config", &without], None, "./seqtide-data"),
    ] {
        let mut command = seqtide_command();
        command.args(args).arg("--print-config").envs(variable.map(|folder| ("SEQTIDE_DATA", folder)));
        let printed = command.output().expect("the binary runs").stdout;
        let printed = String::from_utf8(printed).expect("text");
        assert!(printed.contains(&format!("data = \"{expected}\"")), "{args:?}, {variable:?}: {printed}");
    }
    let (_, help, _) = run(&["demo", "--help"]);
    assert!(help.contains("[default: \"./seqtide-demo\"]"), "{help}");
}

#[test]
fn wrong_usage_is_named_with_code_2() {
    for args in [&["serve", "--bogus"][..], &["bogus"], &["serve", "--listen", "nowhere"]] {
        let (code, _, stderr) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(args.last().expect("one")), "{stderr}");
    }
}

#[test]
fn an_unknown_variable_or_key_is_refused_by_name() {
    let exit = Server::launch().env("SEQTIDE_LISTENN", "127.0.0.1:0").run_to_exit();
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    assert!(exit.stderr.contains("SEQTIDE_LISTENN"), "{exit:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seqtide.toml");
    fs::write(&file, "[feeds]\nhartbeat_ms = 5\n").expect("the file");
    let exit = Server::launch().arg("--config").arg(&file).run_to_exit();
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    assert!(exit.stderr.contains("hartbeat_ms"), "{exit:?}");
}

#[test]
fn a_number_that_cannot_be_is_refused_by_its_key() {
    for args in [&["--workers", "-1"][..], &["--workers=-1"]] {
        let exit = args.iter().fold(Server::launch(), |launch, arg| launch.arg(*arg)).run_to_exit();
        assert_eq!(exit.status.code(), Some(1), "{exit:?}");
        assert!(exit.stderr.contains("`-1`, expected a whole number, 0 or more in `workers`"), "{exit:?}");
    }
}

/// It said that it listens, and then a worker that had no file left broke off.
#[test]
fn a_server_that_may_open_too_few_files_does_not_start_and_says_what_to_raise() {
    let data = tempfile::tempdir().expect("a folder");
    let mut server = seqtide_command_under("-n 40");
    let output = server.args(["--listen", "127.0.0.1:0", "--data"]).arg(data.path()).output().expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("allows 40 open files") && stderr.contains("ulimit -n"), "{stderr}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// How long a longpoll without `timeout` waits on a server started so.
async fn longpoll_takes(launch: Launch) -> Duration {
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    let start = Instant::now();
    database.get("/_changes?feed=longpoll").expect(200).await;
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_variable_and_file_set_the_same_option_in_this_order() {
    let short = Duration::from_millis(200);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seqtide.toml");
    fs::write(&file, "[feeds]\nchanges_timeout_ms = 200\n").expect("the file");
    let variable = "SEQTIDE_FEEDS_CHANGES_TIMEOUT_MS";
    let long_file = folder.path().join("long.toml");
    fs::write(&long_file, "[feeds]\nchanges_timeout_ms = 60000\n").expect("the file");
    for launch in [
        Server::launch().arg("--config").arg(&file),
        Server::launch().arg("--config").arg(&long_file).env(variable, "200"),
        Server::launch().env(variable, "60000").arg("--feeds-changes-timeout-ms").arg("200"),
    ] {
        let took = longpoll_takes(launch).await;
        assert!(took >= short && took < Duration::from_secs(20), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_looks_at_a_live_server_s_folder_and_names_damage() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    database.put("a", &serde_json::json!({ "text": "unmistakable" })).await;
    let data = server.data_dir().to_owned();
    let folder = data.to_str().expect("text");
    let (code, stdout, stderr) = run(&["check", folder]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.starts_with("db: ok (1 documents, 0 deleted, 1 rows, 1 bodies"), "{stdout}");

    // An orderly end: LMDB has everything then.
    server.stop();
    let file = data.join("databases/db/data.mdb");
    let mut bytes = fs::read(&file).expect("the file");
    let text = b"unmistakable\"}";
    let places: Vec<usize> = (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty(), "the body is in the file");
    for place in places {
        bytes[place + text.len() - 1] = b'x';
    }
    fs::write(&file, bytes).expect("the file");
    let (code, stdout, _) = run(&["check", folder]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("table bodies"), "{stdout}");

    fs::write(data.join("catalogue.json"), "{").expect("the catalogue");
    let (code, stdout, _) = run(&["check", folder]);
    assert!(code == Some(1) && stdout.contains("catalogue.json: ") && stdout.contains("no server starts"), "{stdout}");

    let (code, _, stderr) = run(&["check", "/nowhere/at/all"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("/nowhere/at/all is no data folder"), "{stderr}");
}

/// All was well with it, and a server then made an empty database.
#[tokio::test(flavor = "multi_thread")]
async fn check_names_a_database_whose_files_are_gone() {
    let mut server = Server::start();
    for name in ["kept", "orders"] {
        Database::create(&server, name).await.put("a", &serde_json::json!({})).await;
    }
    server.stop();
    let data = server.data_dir().to_owned();
    let check = |folder: &std::path::Path| {
        let (code, stdout, stderr) = run(&["check", folder.to_str().expect("text")]);
        (code, stdout + &stderr)
    };
    let (databases, orders) = (data.join("databases"), data.join("databases/orders"));
    let tables = orders.join("data.mdb");
    let gone = |what: &str| {
        let tables = tables.display();
        format!(
            "orders: it is in the catalogue, but {tables} {what} and there is no log: a server makes an empty database of it"
        )
    };
    for (folder, what) in [(&data, gone("is empty")), (&orders, format!("{} is empty", tables.display()))] {
        fs::write(&tables, []).expect("an empty file");
        let (code, report) = check(folder);
        assert!(code == Some(1) && report.contains(&what), "{folder:?}: {report}");
    }
    fs::remove_file(&tables).expect("it is there");
    for _folder_is_there in [true, false] {
        let (code, report) = check(&data);
        let lines: Vec<&str> = report.lines().collect();
        assert!(
            code == Some(1) && lines[0].starts_with("kept: ok") && lines[1..] == [gone("is not there")],
            "{report}"
        );
        let _ = fs::remove_dir_all(&orders);
    }

    fs::create_dir(databases.join("empty")).expect("a folder");
    let (code, report) = check(&data);
    let line = report.lines().find(|line| line.starts_with("empty: ")).unwrap_or_default();
    assert!(code == Some(1) && line.ends_with("a server takes the folder in as an empty database"), "{report}");

    // As where the disk that it is on was not mounted.
    fs::remove_dir_all(&databases).expect("a folder");
    for is_there in [false, true] {
        if is_there {
            fs::create_dir(&databases).expect("a folder");
        }
        let (code, report) = check(&data);
        let said: Vec<bool> = report.lines().map(|line| line.contains("it is in the catalogue, but ")).collect();
        assert_eq!((code, said), (Some(1), vec![true, true]), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_nothing_wrong_with_a_database_that_was_made_and_never_written() {
    for durability in ["full", "relaxed"] {
        let mut server = Server::launch().arg("--durability").arg(durability).start();
        Database::create(&server, "db").await;
        server.kill();
        let (code, stdout, stderr) = run(&["check", server.data_dir().to_str().expect("text")]);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(stdout.starts_with("db: ok (0 documents"), "{stdout}");
    }
}
