//! `seqtide bench` through the real binary, at small numbers: what it says is there, and nothing was lost. How fast it
//! was is not looked at.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use seqtide_tests::eventually;
use seqtide_tests::server::{DEADLINE, seqtide_command, seqtide_command_behind, seqtide_command_under};
use seqtide_tests::{Api, Server};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Runs it; its JSON.
fn bench(args: &str) -> Value {
    let output = seqtide_command().arg("bench").args(args.split(' ')).arg("--json").output().expect("the binary runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{args}: {error} in {stdout}"))
}

/// A value that must be a number.
fn number(report: &Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or_else(|| panic!("{name} should be a number in {report}"))
}

fn assert_positive(report: &Value, names: &[&str]) {
    for name in names {
        assert!(number(report, name) > 0.0, "{name} in {report}");
    }
}

#[test]
fn fan_out_delivers_everything_once_and_in_order_on_each_transport() {
    for transport in ["sse", "websocket", "lines"] {
        let report =
            bench(&format!("fan-out --subscribers 20 --writers 3 --secs 0.5 --rate 200 --transport {transport}"));
        assert_eq!((&report["load"], &report["transport"]), (&json!("fan-out"), &json!(transport)));
        assert_positive(&report, &["acknowledged", "acknowledged_per_sec", "deliveries_per_sec", "secs"]);
        assert_positive(&report, &["received_p50_ms", "received_p99_ms", "received_p999_ms", "acknowledged_p99_ms"]);
        assert_positive(&report, &["server_anonymous_bytes_max"]);
        assert_eq!(number(&report, "deliveries"), 20.0 * number(&report, "acknowledged"), "{report}");
        for fault in ["lost", "doubled", "misordered", "unwritten", "feeds_ended"] {
            assert_eq!(number(&report, fault), 0.0, "{fault} in {report}");
        }
    }
}

#[test]
fn a_soft_limit_on_open_files_is_raised_for_the_load_and_its_server() {
    let load = "bench fan-out --subscribers 400 --writers 2 --secs 0.2 --rate 20 --json";
    let output = seqtide_command_under("-Sn 256").args(load.split(' ')).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn writes_come_one_by_one_or_many_a_request() {
    for (batch, per_request) in [("1", 1.0), ("50", 50.0)] {
        let report = bench(&format!("writes --connections 4 --secs 0.3 --batch {batch}"));
        assert_positive(&report, &["requests", "acknowledged_p50_ms", "acknowledged_p99_ms", "acknowledged_p999_ms"]);
        let (documents, requests) = (number(&report, "documents_per_sec"), number(&report, "requests_per_sec"));
        assert!((documents / requests - per_request).abs() < 1e-6, "{report}");
    }
}

#[test]
fn backfill_reads_every_row_of_a_server_that_is_there_and_leaves_nothing_behind() {
    let server = Server::start();
    let report = bench(&format!("backfill --documents 2500 --rounds 2 --address {}", server.address()));
    for way in ["changes", "with_docs"] {
        assert_eq!(number(&report, &format!("{way}_rows")), 2500.0, "{report}");
        for fault in ["lost", "surplus", "misordered"] {
            assert_eq!(number(&report, &format!("{way}_{fault}")), 0.0, "{report}");
        }
        assert_positive(&report, &[&format!("{way}_rows_per_sec"), &format!("{way}_bytes_per_sec")]);
    }
    let bytes_a_row = number(&report, "with_docs_bytes_per_sec") / number(&report, "with_docs_rows_per_sec");
    assert!(bytes_a_row > 300.0, "documents of 200 bytes in rows: {report}");
    let databases = std::fs::read_dir(server.data_dir().join("databases")).expect("the folder").count();
    assert_eq!(databases, 0, "its database is deleted");
}

#[test]
fn idle_subscribers_get_heartbeats_and_what_they_cost_is_measured() {
    for transport in ["sse", "websocket", "lines"] {
        let report = bench(&format!("idle --subscribers 50 --heartbeat-ms 100 --secs 2 --transport {transport}"));
        assert!(number(&report, "heartbeats") >= 50.0, "{report}");
        assert_eq!(number(&report, "feeds_ended"), 0.0, "{report}");
        assert!(number(&report, "server_anonymous_bytes_each") >= 0.0, "{report}");
        assert!(number(&report, "server_cpu_percent_of_a_core") >= 0.0, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_is_interrupted_leaves_nothing_behind() {
    let server = Server::start();
    let api = Api::new(&server);
    let mut command = seqtide_command();
    command.args(["bench", "writes", "--secs", "60", "--address", &server.address().to_string()]);
    let mut bench = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
    let deadline = Instant::now() + DEADLINE;
    while api.get("/seqtide-bench").send().await.status != 200 || writes(&api).await == 0 {
        assert!(Instant::now() < deadline, "it should write");
        sleep(Duration::from_millis(10)).await;
    }
    kill_process(Pid::from_child(&bench), Signal::INT).expect("it runs");
    let output = tokio::task::spawn_blocking(move || {
        let status = bench.wait().expect("its status");
        let mut said = String::new();
        bench.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (status.code(), said)
    });
    let (code, said) = timeout(DEADLINE, output).await.expect("it should end").expect("no panic");
    assert_eq!((code, said.contains("interrupted")), (Some(1), true), "{said}");
    api.get("/seqtide-bench").expect(404).await;
}

/// The head of the request that comes over a connection; what has come of it, where that ends.
fn request(socket: &mut TcpStream) -> String {
    socket.set_nonblocking(false).expect("a setting");
    socket.set_read_timeout(Some(DEADLINE)).expect("a setting");
    let lines = BufReader::new(socket).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Interrupts a process, and waits until it has noticed.
fn interrupt(process: &Child) {
    kill_process(Pid::from_child(process), Signal::INT).expect("it is not waited for yet");
    eventually("the signal should come", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("its status");
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).expect("what is pending");
        pending.trim().chars().all(|digit| digit == '0').then_some(())
    });
}

/// A server that takes its time has made the database by the time at which nobody might wait for its answer any more.
#[test]
fn a_load_that_is_interrupted_while_its_database_is_made_or_deleted_leaves_nothing_behind() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a setting");
    let mut command = seqtide_command();
    command.args(["bench", "writes", "--secs", "60", "--address"]);
    command.arg(listener.local_addr().expect("its address").to_string());
    let mut bench = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
    let (mut is_deleted, mut held) = (false, Vec::new());
    while !is_deleted {
        let (mut socket, _) = eventually("it should delete its database", || listener.accept().ok());
        let asked = request(&mut socket);
        is_deleted = asked.starts_with("DELETE /seqtide-bench ");
        if is_deleted || asked.starts_with("PUT /seqtide-bench?") {
            interrupt(&bench);
            // It may have gone.
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}");
        }
        // A load that has begun all the same is to end by the signal, and not for want of a connection.
        held.push(socket);
    }
    let status = eventually("it should end", || bench.try_wait().expect("its status"));
    let mut said = String::new();
    bench.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let (first, second) = said.split_once('\n').expect("a line");
    assert_eq!((status.code(), first), (Some(1), "seqtide: interrupted: nothing was measured"));
    // The answer may have come before the second signal was heard.
    assert!(second.is_empty() || second.contains("DELETE /seqtide-bench HTTP/1.1, which may be done"), "{said}");
}

/// A server that answers each write, and the deletion of the database with this, or not at all; where it listens, and
/// what is set once it is asked to delete.
fn takes_all_and_deletes(answer: Option<&'static str>) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let is_asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_asked);
    let serve = move |mut socket: TcpStream, told: &AtomicBool| {
        let mut request = [0; 4096];
        while let Ok(length @ 1..) = socket.read(&mut request) {
            let is_deletion = request[..length].starts_with(b"DELETE ");
            let status = if is_deletion { answer } else { Some("201 Created") };
            if let Some(status) = status {
                let _ = write!(socket, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
            }
            told.fetch_or(is_deletion, Ordering::Relaxed);
        }
    };
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let told = Arc::clone(&told);
            std::thread::spawn(move || serve(socket, &told));
        }
    });
    (address, is_asked)
}

/// A short load on a server that is there.
fn short_load(address: SocketAddr) -> Command {
    let mut command = seqtide_command();
    command.args(["bench", "writes", "--secs", "0.5", "--connections", "1", "--json", "--address"]);
    command.arg(address.to_string());
    command
}

fn assert_measured(stdout: &[u8]) {
    let report: Value = serde_json::from_slice(stdout).expect("a report");
    assert_positive(&report, &["requests", "requests_per_sec"]);
}

#[test]
fn a_report_is_given_though_the_database_is_not_deleted() {
    let (address, _) = takes_all_and_deletes(Some("500 No"));
    let output = short_load(address).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*said),
        (Some(1), "seqtide: DELETE /seqtide-bench HTTP/1.1 was answered with 500: {}\n")
    );
    assert_measured(&output.stdout);
}

#[test]
fn a_database_that_is_left_behind_is_told_of_where_the_load_failed_too() {
    let (address, _) = takes_all_and_deletes(Some("500 No"));
    let mut bench = seqtide_command();
    bench.args(["bench", "fan-out", "--transport", "websocket", "--address", &address.to_string()]);
    let output = bench.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((output.status.code(), lines.len()), (Some(1), 2), "{said}");
    assert!(lines[0].contains("101"), "{said}");
    assert_eq!(lines[1], "seqtide: DELETE /seqtide-bench HTTP/1.1 was answered with 500: {}");
}

#[test]
fn a_signal_ends_the_wait_for_a_server_that_does_not_delete() {
    let (address, is_asked) = takes_all_and_deletes(None);
    let mut bench = short_load(address);
    let bench = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    eventually("it should delete its database", || is_asked.load(Ordering::Relaxed).then_some(()));
    kill_process(Pid::from_child(&bench), Signal::INT).expect("it is not waited for yet");
    let output = bench.wait_with_output().expect("its output");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.starts_with("seqtide: interrupted: DELETE /seqtide-bench"),
        "{said}"
    );
    assert_measured(&output.stdout);
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_unless_its_reader_has_gone() {
    let (address, _) = takes_all_and_deletes(Some("200 OK"));
    let full = File::create("/dev/full").expect("a device");
    let output = short_load(address).stdout(full).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("the report could not be written: "), "{said}");

    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = short_load(address).stdout(writer).output().expect("the binary runs");
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
}

/// A load on a server of its own, in this folder, once it has its database there; signals are what they are by default.
fn bench_at_work(folder: &Path) -> Child {
    let mut bench = seqtide_command_behind("env", &["--default-signal=HUP,INT,TERM"]);
    bench.args(["bench", "writes", "--secs", "3600", "--connections", "1"]).env("TMPDIR", folder);
    let bench = bench.stderr(Stdio::piped()).spawn().expect("the binary runs");
    eventually("it should have its database", || {
        Some(data_of(folder)?.join("databases/seqtide-bench")).filter(|it| it.exists())
    });
    bench
}

/// The data folder of the load's own server.
fn data_of(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder).expect("the folder").find_map(|entry| entry.ok().map(|entry| entry.path()))
}

#[test]
fn a_load_that_is_asked_to_end_ends_its_own_server_and_removes_its_data() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bench = bench_at_work(folder.path());
        kill_process(Pid::from_child(&bench), signal).expect("it runs");
        let status = eventually("it should end", || bench.try_wait().expect("its status"));
        // Before it is read, as its server may hold standard error.
        assert_eq!(status.code(), Some(1), "{signal:?}: {status}");
        let mut said = String::new();
        bench.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(said.contains("interrupted"), "{signal:?}: {said}");
        assert_eq!(data_of(folder.path()), None, "{signal:?}");
    }
}

#[test]
fn a_load_that_is_asked_to_end_again_does_not_wait_for_its_own_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = bench_at_work(folder.path());
    let id = bench.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("its children");
    let server = children.trim().parse().ok().and_then(Pid::from_raw).expect("its server alone");
    kill_process(server, Signal::STOP).expect("it runs");
    let status = eventually("it should end", || {
        kill_process(Pid::from_child(&bench), Signal::INT).expect("it is not waited for yet");
        bench.try_wait().expect("its status")
    });
    assert_eq!(status.code(), Some(1), "{status}");
    assert_eq!(data_of(folder.path()), None);
    assert!(test_kill_process(server).is_err(), "its server has ended");
}

#[test]
fn a_load_s_own_server_does_not_outlive_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = bench_at_work(folder.path());
    let lock = File::open(data_of(folder.path()).expect("its data").join("lock")).expect("its lock");
    assert!(lock.try_lock().is_err(), "the server has it");
    bench.kill().expect("it runs");
    bench.wait().expect("its status");
    eventually("its server should end", || lock.try_lock().ok());
}

/// How many documents the load's database has.
async fn writes(api: &Api) -> u64 {
    api.get("/seqtide-bench").expect(200).await.json()["doc_count"].as_u64().expect("a number")
}

#[test]
fn without_json_it_is_a_table_and_what_cannot_be_done_is_said() {
    let output = seqtide_command().args(["bench", "writes", "--secs", "0.1"]).output().expect("the binary runs");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && table.lines().any(|line| line.starts_with("requests_per_sec ")), "{table}");

    let server = Server::start();
    let address = server.address().to_string();
    for (args, code, said) in [
        (&["idle", "--address", &address][..], 1, "--pid"),
        (&["writes", "--pid", "1"], 2, "--address"),
        (&["fan-out", "--rate", "0"], 2, "above 0"),
        (&["writes", "--address", &address, "--secs", "0.0000000001"], 1, "nothing was measured"),
        (
            &["fan-out", "--address", &address, "--subscribers", "1", "--secs", "0.0000000001"],
            1,
            "nothing was measured",
        ),
        (&["writes", "--address", "127.0.0.1:1"], 1, "is a server listening there?"),
        (&["writes", "--address", &address, "--database", "_no"], 1, "illegal_database_name"),
    ] {
        let output = seqtide_command().arg("bench").args(args).output().expect("the binary runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
}
