//! Databases: made, described, named, removed.

use serde_json::json;

use super::fresh;
use seqtide_tests::http::escaped;
use seqtide_tests::{Api, Database, Server};

const NO_DATABASE: &str = "Database does not exist.";

#[tokio::test(flavor = "multi_thread")]
async fn made_once_and_removed_once() {
    let server = Server::start();
    let api = Api::new(&server);
    let made = api.put("/db").expect(201).await;
    assert_eq!(
        (made.text(), made.header("location")),
        ("{\"ok\":true}\n", Some(format!("{}/db", server.url()).as_str()))
    );
    let reason = "The database could not be created, the file already exists.";
    api.put("/db").send().await.assert_error(412, "file_exists", reason);
    api.request("HEAD", "/db").expect(200).await;
    api.delete("/db?rev=1-x").send().await.assert_status(400);
    assert_eq!(api.delete("/db").expect(200).await.text(), "{\"ok\":true}\n");
    for method in ["GET", "DELETE"] {
        api.request(method, "/db").send().await.assert_error(404, "not_found", NO_DATABASE);
    }
    assert_eq!(api.request("HEAD", "/db").expect(404).await.text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_announces_the_length_of_get() {
    let (_server, database) = fresh().await;
    let (get, head) = (database.get("").expect(200).await, database.request("HEAD", "").expect(200).await);
    assert_eq!(head.text(), "");
    assert_eq!(head.header("content-length"), get.header("content-length"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_is_said_before_anything_else() {
    let server = Server::start();
    let database = Database::at(&server, "nope");
    for (method, rest) in
        [("GET", "/a"), ("PUT", "/a"), ("DELETE", "/a?rev=1-x"), ("GET", "/_all_docs"), ("GET", "/_local/a")]
    {
        let answer = database.request(method, rest).json(&json!({})).send().await;
        answer.assert_error(404, "not_found", NO_DATABASE);
    }
    for rest in ["/_bulk_docs", "/_bulk_get", "/_revs_diff", ""] {
        let answer = database.post(rest).json(&json!({ "docs": [] })).send().await;
        answer.assert_error(404, "not_found", NO_DATABASE);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn info_has_what_clients_read() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    database.put("b", &json!({})).await;
    database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await;
    let info = database.info().await;
    assert_eq!(info["db_name"], json!("db"));
    assert_eq!((&info["doc_count"], &info["doc_del_count"], &info["update_seq"]), (&json!(1), &json!(1), &json!(3)));
    assert!(info["instance_start_time"].is_string(), "{info}");
    for size in ["file", "external", "active"] {
        assert!(info["sizes"][size].is_u64(), "sizes.{size} in {info}");
    }
    assert_eq!(info["compact_running"], json!(false));
    assert_eq!(info["props"], json!({"seq_format": "integer"}));
    for name in ["purge_seq", "disk_format_version"] {
        assert!(info.get(name).is_some(), "{name} in {info}");
    }
    for name in ["q", "n", "w", "r"] {
        assert_eq!(info["cluster"][name], json!(1), "cluster.{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trailing_slash_is_the_same_database() {
    let server = Server::start();
    let api = Api::new(&server);
    api.put("/db/").expect(201).await;
    api.post("/db/").json(&json!({ "_id": "a" })).expect(201).await;
    assert_eq!(api.get("/db/").expect(200).await.json()["doc_count"], json!(1));
    api.request("HEAD", "/db/").expect(200).await;
    api.delete("/db/").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_follow_couchdb_s_rule() {
    let server = Server::start();
    let api = Api::new(&server);
    // As `couch_peruser` names the database of a user.
    let of_user = ["userdb-", &"6e".repeat(115)].concat();
    for name in ["a", "a-b_c$d(e)+f/g", "x9", "_users", "_replicator", "_global_changes", &of_user] {
        let path = format!("/{}", escaped(name));
        api.put(&path).expect(201).await;
        assert_eq!(api.get(&path).expect(200).await.json()["db_name"], json!(name));
    }
    for name in ["A", "1a", "_x", "a.b", "é", "a b", "a!"] {
        let reason = format!(
            "Name: '{name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters \
             _, $, (, ), +, -, and / are allowed. Must begin with a letter."
        );
        api.put(&format!("/{}", escaped(name))).send().await.assert_error(400, "illegal_database_name", &reason);
    }
    let long = "a".repeat(300);
    let answer = api.put(&format!("/{long}")).send().await;
    answer.assert_error(
        400,
        "database_name_too_long",
        &format!(
            "At least one path segment of `{long}` is too long: a name has at most 238 bytes, and 255 where each of $ ( ) + / \
             counts as 3."
        ),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sharding_options_are_accepted_and_partitions_refused() {
    let server = Server::start();
    let api = Api::new(&server);
    api.put("/a?q=8&n=3&partitioned=false").expect(201).await;
    api.put("/b?partitioned=true").send().await.assert_status(400);
    api.put("/c?seq_format=roman").send().await.assert_status(400);
    assert_eq!(api.get("/_all_dbs").expect(200).await.json(), json!(["a"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_dbs_are_listed_in_order_and_after_a_restart() {
    let mut server = Server::start();
    let api = Api::new(&server);
    for name in ["b", "a%2Fc", "a"] {
        api.put(&format!("/{name}")).expect(201).await;
    }
    let expected = json!(["a", "a/c", "b"]);
    assert_eq!(api.get("/_all_dbs").expect(200).await.json(), expected);
    for (query, expected) in [
        ("key=%22b%22", json!(["b"])),
        ("startkey=%22a%22&endkey=%22b%22&inclusive_end=false", json!(["a", "a/c"])),
        ("startkey=%22b%22&endkey=%22a%22&inclusive_end=false&descending=true", json!(["b", "a/c"])),
    ] {
        assert_eq!(api.get(&format!("/_all_dbs?{query}")).expect(200).await.json(), expected, "{query}");
    }
    server.stop();
    server.restart_on_same_port_and_data();
    assert_eq!(api.get("/_all_dbs").expect(200).await.json(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_database_is_empty_and_counts_on() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    database.request("PUT", "/_local/l").json(&json!({})).expect(201).await;
    let old = database.info().await["update_seq"].as_u64().expect("a number");
    database.request("DELETE", "").expect(200).await;
    database.request("PUT", "").expect(201).await;
    database.get("/a").expect(404).await;
    database.get("/_local/l").expect(404).await;
    assert_eq!(database.info().await["doc_count"], json!(0));
    assert!(database.put("a", &json!({})).await.seq() > old);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_endpoints_and_methods_are_refused() {
    let (_server, database) = fresh().await;
    database.get("/_nothing").send().await.assert_error(404, "not_found", "missing");
    for (method, rest) in
        [("PATCH", ""), ("PATCH", "/a"), ("PUT", "/_bulk_docs"), ("DELETE", "/_all_docs"), ("PUT", "/_revs_diff")]
    {
        let answer = database.request(method, rest).send().await;
        answer.assert_status(405);
        let allow = answer.header("allow").unwrap_or_else(|| panic!("{method} {rest} without Allow")).to_owned();
        assert_eq!(answer.json(), json!({ "error": "method_not_allowed", "reason": format!("Only {allow} allowed") }));
    }
}

/// Its second half was of the other database, and it ended as if it were whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_pages_is_not_continued_with_another_database_of_the_name() {
    let (_server, database) = fresh().await;
    let text = "x".repeat(500_000);
    for part in 0..4 {
        let docs: Vec<_> = (0..10).map(|number| json!({ "_id": format!("d{part}{number}"), "text": text })).collect();
        database.bulk(&docs).await;
    }
    // More than a connection holds of what its client has not read.
    let whole = database.get("/_all_docs?include_docs=true").open().await;
    database.request("DELETE", "").expect(200).await;
    database.request("PUT", "").expect(201).await;
    database.put("zzz", &json!({})).await;
    assert!(whole.try_to_end().await.is_err(), "it is cut short");
}
