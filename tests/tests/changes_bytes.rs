//! The bytes, headers and errors of `_changes` beside its rows.

use serde_json::json;

use seqtide_tests::changes_text::{continuous, eventsource, longpoll_that_waited, normal};
use seqtide_tests::database::fresh;
use seqtide_tests::http::{Answer, Opened};
use seqtide_tests::raw::{dechunked, exchange};
use seqtide_tests::{Database, Server};

const WAITING_FEEDS: [&str; 3] = ["longpoll", "continuous", "eventsource"];

/// Writes `{}` at this id and returns its row as text.
async fn write(database: &Database, id: &str) -> String {
    row(id, &database.put(id, &json!({})).await)
}

fn row(id: &str, written: &Answer) -> String {
    format!("{{\"seq\":{},\"id\":\"{id}\",\"changes\":[{{\"rev\":\"{}\"}}]}}", written.seq(), written.rev())
}

/// Opens a feed after everything written so far and reads until it says that it waits.
async fn waiting(database: &Database, query: &str) -> Opened {
    let mut feed = database.get(&format!("/_changes?since=now&{query}")).open().await;
    assert_eq!(feed.status(), 200, "{query}");
    feed.until(|text| text.ends_with('\n') && text != "{\"results\":[\n").await;
    feed
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_first_byte_leave_at_once_on_an_empty_database() {
    let (_server, database) = fresh().await;
    for feed in WAITING_FEEDS {
        let opened = waiting(&database, &format!("feed={feed}&timeout=60000")).await;
        let expected = if feed == "longpoll" { "{\"results\":[\n\n" } else { "\n" };
        assert_eq!(opened.so_far(), expected, "{feed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_not_buffered_and_waiting_ones_not_cached() {
    let (_server, database) = fresh().await;
    for (feed, content_type) in
        [("longpoll", "application/json"), ("continuous", "application/json"), ("eventsource", "text/event-stream")]
    {
        let answer = database.get(&format!("/_changes?feed={feed}&timeout=0")).expect(200).await;
        assert_eq!(answer.header("content-type"), Some(content_type), "{feed}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "{feed}");
        assert_eq!(answer.header("x-accel-buffering"), Some("no"), "{feed}");
        assert_eq!(answer.header("etag"), None, "{feed}");
    }
    let answer = database.get("/_changes").expect(200).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("must-revalidate"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"), "a long search shows that it is there");
    assert!(answer.header("etag").is_some(), "a normal feed has an ETag");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_get_without_a_body() {
    let (_server, database) = fresh().await;
    write(&database, "a").await;
    let get = database.get("/_changes").expect(200).await;
    let head = database.request("HEAD", "/_changes").expect(200).await;
    assert_eq!(head.text(), "");
    for name in ["content-type", "cache-control", "etag", "content-length"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_leave_in_small_portions() {
    let (server, database) = fresh().await;
    let docs: Vec<_> = (0..400).map(|number| json!({ "_id": number.to_string(), "pad": "x".repeat(1000) })).collect();
    database.bulk(&docs).await;
    for path in ["/db/_changes?include_docs=true", "/db/_feed?since=0&live=false&include_docs=true"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let body = exchange(server.address(), &request).await.body;
        let (mut largest, mut rest) = (0, body.as_str());
        while let Some((size, after)) = rest.split_once("\r\n").filter(|(size, _)| *size != "0") {
            let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
            largest = largest.max(size);
            rest = after[size..].strip_prefix("\r\n").expect("the end of a chunk");
        }
        assert!((10_000..100_000).contains(&largest), "{path}: a chunk of {largest} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_gets_the_same_bytes_without_chunks() {
    let (server, database) = fresh().await;
    write(&database, "a").await;
    let chunked = exchange(server.address(), "GET /db/_changes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    let plain = exchange(server.address(), "GET /db/_changes HTTP/1.0\r\n\r\n").await;
    let expected = database.get("/_changes").expect(200).await.text().to_owned();
    let is_chunked =
        |headers: &[String]| headers.iter().any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked"));
    assert_eq!(chunked.status_line, "HTTP/1.1 200 OK");
    let body = if is_chunked(&chunked.headers) { dechunked(&chunked.body) } else { chunked.body };
    assert_eq!(body, expected);
    assert!(plain.status_line.ends_with(" 200 OK"), "{}", plain.status_line);
    assert!(!is_chunked(&plain.headers), "{:?}", plain.headers);
    assert_eq!(plain.body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_reaches_each_waiting_feed_without_a_newline_for_the_wake_up() {
    let (_server, database) = fresh().await;
    for feed in WAITING_FEEDS {
        let options = format!("feed={feed}&limit=1&heartbeat=60000");
        let feed_body = waiting(&database, &options).await;
        let row = write(&database, feed).await;
        let seq = database.info().await["update_seq"].as_u64().expect("a number");
        let expected = match feed {
            "longpoll" => longpoll_that_waited(&[&row], seq, 0),
            "continuous" => continuous(&[&row], true, seq, 0),
            _ => eventsource(&[(&row, &seq.to_string())], true),
        };
        assert_eq!(feed_body.to_end().await.text(), expected, "{feed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_had_rows_sends_no_first_newline() {
    let (_server, database) = fresh().await;
    let first = write(&database, "a").await;
    let mut feed = database.get("/_changes?feed=continuous&heartbeat=60000").open().await;
    feed.until(|text| text.contains('\n')).await;
    let second = write(&database, "b").await;
    let text = feed.until(|text| text.matches('\n').count() >= 2).await;
    assert_eq!(text, format!("{first}\n{second}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_come_while_nothing_is_sent() {
    let (_server, database) = fresh().await;
    for (feed, before, beat) in [
        ("longpoll", "{\"results\":[\n\n", "\n"),
        ("continuous", "\n", "\n"),
        ("eventsource", "\n", "event: heartbeat\ndata: \n\n"),
    ] {
        let mut body = waiting(&database, &format!("feed={feed}&heartbeat=50&timeout=100")).await;
        let three = format!("{before}{}", beat.repeat(3));
        let text = body.until(|text| text.len() >= three.len()).await;
        // On a slow machine one is due before the first word.
        let late = format!("{beat}{before}{}", beat.repeat(2));
        assert!(text.starts_with(&three) || text.starts_with(&late), "{feed}: {text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_and_heartbeat_are_cut_to_the_configured_longest() {
    let server = Server::launch().arg("--feeds-changes-timeout-ms=200").start();
    let database = Database::create(&server, "db").await;
    let body = database.get("/_changes?feed=continuous&timeout=60000").expect(200).await;
    assert_eq!(body.text(), continuous(&[], true, 0, 0));
    for heartbeat in ["60000", "true"] {
        let mut body = waiting(&database, &format!("feed=continuous&heartbeat={heartbeat}")).await;
        let text = body.until(|text| text.len() >= 3).await;
        assert!(text.starts_with("\n\n\n"), "heartbeat={heartbeat}: {text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn longpoll_with_heartbeats_ends_with_the_first_row() {
    let (_server, database) = fresh().await;
    let mut body = waiting(&database, "feed=longpoll&heartbeat=50").await;
    body.until(|text| text.ends_with("[\n\n\n\n")).await;
    let row = write(&database, "a").await;
    let text = body.to_end().await.text().to_owned();
    let rest = text.trim_start_matches("{\"results\":[\n").trim_start_matches('\n');
    assert_eq!(format!("{{\"results\":[\n{rest}"), normal(&[&row], 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_feed_beats_under_steady_writes_that_it_rejects() {
    let (_server, database) = fresh().await;
    let doc_ids = "filter=_doc_ids&doc_ids=%5B%22wanted%22%5D";
    let mut body = waiting(&database, &format!("feed=continuous&heartbeat=100&{doc_ids}")).await;
    let writers = database.clone();
    let writing = tokio::spawn(async move {
        for number in 0_u64.. {
            write(&writers, &format!("other-{number}")).await;
        }
    });
    let text = body.until(|text| text.len() >= 5).await;
    writing.abort();
    assert_eq!(text.trim(), "", "nothing but beats");
    let row = write(&database, "wanted").await;
    assert!(body.until(|text| text.ends_with("}\n")).await.ends_with(&format!("{row}\n")));
}

/// A replicator takes a feed that is silent for dead, and begins it again from where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_without_heartbeats_shows_that_it_is_there_under_steady_writes_that_its_function_rejects() {
    let (_server, database) = fresh().await;
    let functions = json!({ "filters": { "wanted": "(doc) => doc._id === 'wanted'" } });
    database.request("PUT", "/_design/d").json(&functions).expect(201).await;
    let mut body = waiting(&database, "feed=continuous&timeout=60000&filter=d/wanted").await;
    let writers = database.clone();
    let writing = tokio::spawn(async move {
        for number in 0_u64.. {
            write(&writers, &format!("other-{number}")).await;
        }
    });
    let text = body.until(|text| text.len() >= 3).await;
    writing.abort();
    assert_eq!(text, "\n\n\n", "one as it starts to wait, the others after silence");
    let row = write(&database, "wanted").await;
    assert!(body.until(|text| text.ends_with("}\n")).await.ends_with(&format!("{row}\n")));
}

/// A replicator that is given a list of documents names all of them, and does not get past an answer of 413.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_may_name_as_many_documents_as_a_bulk_request() {
    let (_server, database) = fresh().await;
    let row = write(&database, "wanted").await;
    write(&database, "other").await;
    let among = |others: usize| {
        let others = (0..others).map(|number| format!("no-document-has-this-name-{number}"));
        json!({ "doc_ids": others.chain(["wanted".to_owned()]).collect::<Vec<_>>() })
    };
    let asked = |others| database.post("/_changes?filter=_doc_ids").json(&among(others));
    assert_eq!(asked(99_999).expect(200).await.text(), normal(&[&row], 2, 0));
    let reason = "`doc_ids` has too many ids: at most 100000 are accepted";
    asked(100_000).send().await.assert_error(413, "too_large", reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_writes_put_nothing_on_the_wire() {
    let (_server, database) = fresh().await;
    let doc_ids = "filter=_doc_ids&doc_ids=%5B%22wanted%22%5D";
    let mut body = waiting(&database, &format!("feed=continuous&heartbeat=60000&{doc_ids}")).await;
    for number in 0..50 {
        write(&database, &format!("other-{number}")).await;
    }
    let row = write(&database, "wanted").await;
    assert_eq!(body.until(|text| text.ends_with("}\n")).await, format!("\n{row}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_feed_that_rejects_all_moves_its_last_seq() {
    let (_server, database) = fresh().await;
    write(&database, "a").await;
    let doc_ids = "filter=_doc_ids&doc_ids=%5B%22wanted%22%5D";
    let body = database.get(&format!("/_changes?feed=longpoll&timeout=3000&{doc_ids}")).open().await;
    write(&database, "b").await;
    assert_eq!(body.to_end().await.text(), longpoll_that_waited(&[], 2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_end_normally_when_their_database_is_deleted() {
    for feed in WAITING_FEEDS {
        let (_server, database) = fresh().await;
        write(&database, "a").await;
        let body = waiting(&database, &format!("feed={feed}&heartbeat=60000")).await;
        database.request("DELETE", "").expect(200).await;
        assert_eq!(body.to_end().await.text(), ended_without_rows(feed, 1), "{feed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_end_normally_when_the_server_is_told_to_stop() {
    let (mut server, database) = fresh().await;
    write(&database, "a").await;
    let mut bodies = Vec::new();
    for feed in WAITING_FEEDS {
        bodies.push((feed, waiting(&database, &format!("feed={feed}&heartbeat=60000")).await));
    }
    server.terminate();
    for (feed, body) in bodies {
        // A `last_seq` tells followers that nothing comes any more, whenever they ask.
        let expected = if feed == "continuous" { "\n".to_owned() } else { ended_without_rows(feed, 1) };
        assert_eq!(body.to_end().await.text(), expected, "{feed}");
    }
    assert_eq!(server.wait().code(), Some(0));
}

fn ended_without_rows(feed: &str, last_seq: u64) -> String {
    match feed {
        "longpoll" => longpoll_that_waited(&[], last_seq, 0),
        "continuous" => continuous(&[], true, last_seq, 0),
        _ => eventsource(&[], true),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_query_are_400_on_every_kind_of_feed() {
    let (_server, database) = fresh().await;
    let feeds = "Supported `feed` types: normal, continuous, live, longpoll, eventsource";
    let since = "Malformed sequence supplied in 'since' parameter.";
    let heartbeat_value = "The heartbeat value should be a positive integer (in milliseconds).";
    let heartbeat_text = "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).";
    let doc_ids = "`doc_ids` filter parameter is not a list of doc ids.";
    let filter_form = "`filter` must be of the form `designname/filtername`";
    for (query, reason) in [
        ("feed=bogus", feeds),
        ("feed=", feeds),
        ("feed=Continuous", feeds),
        ("since=", since),
        ("since=abc", since),
        ("since=-1", since),
        ("since=5-foo", since),
        ("since=%5B1%5D", since),
        ("since=abc&feed=continuous", since),
        ("since=abc&feed=eventsource", since),
        ("since=abc&feed=longpoll", since),
        ("heartbeat=0", heartbeat_value),
        ("heartbeat=-5", heartbeat_value),
        ("heartbeat=x", heartbeat_text),
        ("heartbeat=false", heartbeat_text),
        ("heartbeat=abc&feed=longpoll", heartbeat_text),
        ("seq_interval=0", "invalid_seq_interval"),
        ("seq_interval=x", "invalid_seq_interval"),
        ("limit=x", "The limit parameter should be a non-negative integer"),
        ("timeout=x", "The timeout parameter should be a non-negative integer"),
        ("timeout=-1", "The timeout value should be a non-negative integer"),
        ("filter=_bogus", "unknown builtin filter name"),
        ("filter=_bogus&feed=bogus", "unknown builtin filter name"),
        ("filter=a", filter_form),
        ("filter=a/b/c", filter_form),
        ("filter=_doc_ids", doc_ids),
        ("filter=_doc_ids&doc_ids=%22a%22", doc_ids),
        ("filter=_doc_ids&doc_ids=%5B1%5D", doc_ids),
        ("filter=_doc_ids&doc_ids=%5B", "invalid UTF-8 JSON"),
    ] {
        database.get(&format!("/_changes?{query}")).send().await.assert_error(400, "bad_request", reason);
    }
    let style = database.get("/_changes?style=zzz").expect(400).await.json();
    assert_eq!(style["error"], json!("bad_request"));
    assert!(style["reason"].as_str().is_some_and(|reason| reason.contains("style")), "{style} should name the option");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_options_and_half_booleans_change_nothing() {
    let (_server, database) = fresh().await;
    let row = write(&database, "a").await;
    let plain = normal(&[&row], 1, 0);
    for query in
        ["unknown=1", "prefix=zzz", "live=false", "include_docs=yes", "include_docs=1", "descending=TRUE", "filter=/"]
    {
        assert_eq!(database.get(&format!("/_changes?{query}")).expect(200).await.text(), plain, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_needs_json_even_when_it_is_empty() {
    let (_server, database) = fresh().await;
    let row = write(&database, "a").await;
    let unsupported = "Content-Type must be application/json";
    for body in ["", "{}"] {
        let answer = database.post("/_changes").body(body).send().await;
        answer.assert_error(415, "bad_content_type", unsupported);
        let answer = database.post("/_changes").header("content-type", "text/plain").body(body).send().await;
        answer.assert_error(415, "bad_content_type", unsupported);
        for content_type in ["application/json", "application/json; charset=utf-8"] {
            let answer = database.post("/_changes").header("content-type", content_type).body(body).expect(200).await;
            assert_eq!(answer.text(), normal(&[&row], 1, 0), "{body:?} as {content_type}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_body_are_400() {
    let (_server, database) = fresh().await;
    let doc_ids = "`doc_ids` filter parameter is not a list of doc ids.";
    for (query, body, reason) in [
        ("", "[1]", "Request body must be a JSON object"),
        ("", "{\"a\":", "invalid UTF-8 JSON"),
        ("filter=_doc_ids", "{}", doc_ids),
        ("filter=_doc_ids", "{\"doc_ids\":\"a\"}", doc_ids),
        ("filter=_doc_ids", "{\"doc_ids\":[1]}", doc_ids),
    ] {
        let request = database.post(&format!("/_changes?{query}")).header("content-type", "application/json");
        request.body(body).send().await.assert_error(400, "bad_request", reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_is_404_on_every_feed() {
    let server = Server::start();
    let database = Database::at(&server, "nope");
    for feed in ["normal", "longpoll", "continuous", "eventsource"] {
        let answer = database.get(&format!("/_changes?feed={feed}")).send().await;
        answer.assert_error(404, "not_found", "Database does not exist.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_rows_and_documents_keep_the_member_order() {
    let (_server, database) = fresh().await;
    let first = database.put("a", &json!({})).await;
    let deleted = database.request("DELETE", &format!("/a?rev={}", first.rev())).expect(200).await;
    let live = database.request("PUT", "/b").body(r#"{"z":1,"a":2}"#).expect(201).await;
    let gone = format!(
        "{{\"seq\":2,\"id\":\"a\",\"changes\":[{{\"rev\":\"{0}\"}}],\"deleted\":true,\
         \"doc\":{{\"_id\":\"a\",\"_rev\":\"{0}\",\"_deleted\":true}}}}",
        deleted.rev()
    );
    let there = format!(
        "{{\"seq\":3,\"id\":\"b\",\"changes\":[{{\"rev\":\"{0}\"}}],\
         \"doc\":{{\"_id\":\"b\",\"_rev\":\"{0}\",\"z\":1,\"a\":2}}}}",
        live.rev()
    );
    let answer = database.get("/_changes?include_docs=true").expect(200).await;
    assert_eq!(answer.text(), normal(&[&gone, &there], 3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_reader_do_not_show() {
    let (_server, database) = fresh().await;
    let docs: Vec<_> =
        (0..4000).map(|number| json!({ "_id": format!("d{number:04}"), "pad": "x".repeat(500) })).collect();
    for batch in docs.chunks(1000) {
        database.bulk(batch).await;
    }
    let ids = |answer: &serde_json::Value| -> Vec<String> {
        let rows = answer["results"].as_array().expect("rows");
        rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    };
    let all: Vec<String> = (0..4000).map(|number| format!("d{number:04}")).collect();
    for options in ["", "include_docs=true"] {
        let answer = database.changes(options).await;
        assert_eq!(ids(&answer), all, "{options}");
        assert_eq!((&answer["last_seq"], &answer["pending"]), (&json!(4000), &json!(0)), "{options}");
    }
    let part = database.changes("since=100&limit=2345").await;
    assert_eq!(ids(&part), all[100..2445]);
    assert_eq!((&part["last_seq"], &part["pending"]), (&json!(2445), &json!(1555)));
    let down = database.changes("descending=true&limit=3000").await;
    assert_eq!(ids(&down), all[1000..].iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!((&down["last_seq"], &down["pending"]), (&json!(1001), &json!(1000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_normal_feed_shows_each_document_once_while_writes_go_on() {
    let (_server, database) = fresh().await;
    let writers = database.clone();
    let writing = tokio::spawn(async move {
        let docs: Vec<_> = (0..200).map(|number| json!({ "_id": format!("d{number}") })).collect();
        let mut revs = writers.bulk(&docs).await;
        for round in 0_u64.. {
            let docs: Vec<_> =
                (0..200).map(|n| json!({ "_id": revs[n]["id"], "_rev": revs[n]["rev"], "n": round })).collect();
            revs = writers.bulk(&docs).await;
        }
    });
    for _ in 0..30 {
        let before = database.info().await["update_seq"].as_u64().expect("a number");
        let answer = database.changes("").await;
        let after = database.info().await["update_seq"].as_u64().expect("a number");
        let rows = answer["results"].as_array().expect("rows");
        let seqs: Vec<u64> = rows.iter().map(|row| row["seq"].as_u64().expect("a number")).collect();
        let mut ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().expect("an id")).collect();
        assert!(seqs.is_sorted_by(|earlier, later| earlier < later), "sequences rise: {seqs:?}");
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|one, next| one != next), "each document once: {ids:?}");
        let last_seq = answer["last_seq"].as_u64().expect("a number");
        assert!((before..=after).contains(&last_seq), "last_seq {last_seq} is the update sequence at its start");
        assert!(seqs.last().is_none_or(|last| *last <= last_seq), "no row comes after last_seq");
    }
    writing.abort();
}
