//! `/_dbs_info` and `/_active_tasks`.

use serde_json::{Value, json};

use super::fresh;
use seqtide_tests::{Api, Database, Server};

/// A database as it is listed, with what `GET /{db}` says.
async fn element(api: &Api, name: &str) -> Value {
    json!({ "key": name, "info": api.get(&format!("/{name}")).expect(200).await.json() })
}

fn missing(name: &str) -> Value {
    json!({ "key": name, "error": "not_found" })
}

#[tokio::test(flavor = "multi_thread")]
async fn dbs_info_lists_databases_as_all_dbs_does() {
    let (server, api) = fresh().await;
    Database::create(&server, "c").await;
    let (a, b, c) = (element(&api, "a").await, element(&api, "b").await, element(&api, "c").await);
    for (query, expected) in [
        ("", json!([a, b, c])),
        ("?descending=true", json!([c, b, a])),
        ("?limit=1&skip=1", json!([b])),
        ("?startkey=%22b%22", json!([b, c])),
        ("?start_key=%22a%22&end_key=%22b%22", json!([a, b])),
        ("?startkey=%22x%22", json!([])),
    ] {
        let answer = api.get(&format!("/_dbs_info{query}")).expect(200).await;
        assert_eq!(answer.json(), expected, "{query}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    api.get("/_dbs_info?limit=x").expect(400).await;
    assert_eq!(api.request("HEAD", "/_dbs_info").expect(200).await.text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn dbs_info_answers_for_each_key_in_the_order_asked_for() {
    let (_server, api) = fresh().await;
    let keys = json!({ "keys": ["b", "nope", "a", "b", "Not A Name", "_users"] });
    let (a, b) = (element(&api, "a").await, element(&api, "b").await);
    let expected = json!([b, missing("nope"), a, b, missing("Not A Name"), missing("_users")]);
    assert_eq!(api.post("/_dbs_info").json(&keys).expect(200).await.json(), expected);
    assert_eq!(api.post("/_dbs_info").json(&json!({ "keys": [] })).expect(200).await.json(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn dbs_info_opens_more_databases_than_may_be_open() {
    let server = Server::launch().arg("--limits-databases-open-max=2").start();
    let names: Vec<String> = (0..12).map(|number| format!("db{number:02}")).collect();
    for name in &names {
        Database::create(&server, name).await;
    }
    let infos = Api::new(&server).get("/_dbs_info").expect(200).await.json();
    let found: Vec<&str> =
        infos.as_array().expect("a list").iter().filter_map(|one| one["info"]["db_name"].as_str()).collect();
    assert_eq!(found, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_dbs_info_are_named() {
    let server = Server::launch().arg("--limits-dbs-info-max=2").start();
    let api = Api::new(&server);
    for (body, reason) in [
        (json!({}), "`keys` member must exist."),
        (json!({ "keys": "a" }), "`keys` member must be an array of names of databases."),
        (json!({ "keys": [1] }), "`keys` member must be an array of names of databases."),
        (json!({ "keys": ["a", "b", "c"] }), "too_many_keys: at most 2 are accepted"),
        (json!([1]), "Request body must be a JSON object"),
    ] {
        api.post("/_dbs_info").json(&body).send().await.assert_error(400, "bad_request", reason);
    }
    api.post("/_dbs_info").json(&json!({ "keys": ["a", "b"] })).expect(200).await;
    let twice = api.post("/_dbs_info").header("content-type", "application/json").body("{\"keys\":1,\"keys\":[]}");
    assert_eq!(twice.expect(200).await.json(), json!([]), "the last counts");
    api.post("/_dbs_info").body("{\"keys\":[]}").expect(415).await;
    assert_eq!(api.put("/_dbs_info").expect(405).await.header("allow"), Some("GET,HEAD,POST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn active_tasks_is_a_list() {
    let (_server, api) = fresh().await;
    assert_eq!(api.get("/_active_tasks").expect(200).await.json(), json!([]));
    assert_eq!(api.post("/_active_tasks").expect(405).await.header("allow"), Some("GET,HEAD"));
}

/// Garbage is made faster than it is freed, until the sweep is seen.
#[tokio::test(flavor = "multi_thread")]
async fn active_tasks_shows_a_sweep_that_goes_on() {
    let launch = Server::launch().arg("--storage-reclaim-garbage-percent=1").arg("--storage-reclaim-floor-bytes=0");
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    let writing = tokio::spawn({
        let database = database.clone();
        async move {
            for round in 0.. {
                let docs: Vec<Value> =
                    (0..500).map(|n| json!({ "_id": format!("{round}-{n}"), "_deleted": false, "pad": "x" })).collect();
                for doc in database.bulk(&docs).await.as_array().expect("a list").chunks(500) {
                    let gone = |doc: &Value| json!({ "_id": doc["id"], "_rev": doc["rev"], "_deleted": true });
                    database.bulk(&doc.iter().map(gone).collect::<Vec<_>>()).await;
                }
            }
        }
    });
    let deadline = tokio::time::Instant::now() + seqtide_tests::server::DEADLINE;
    let task = loop {
        let tasks = database.api.get("/_active_tasks").expect(200).await.json();
        if let Some(task) = tasks.as_array().expect("a list").first() {
            break task.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "a sweep should have been seen");
    };
    writing.abort();
    assert_eq!((&task["type"], &task["database"]), (&json!("database_compaction"), &json!("db")), "{task}");
    assert!(task["progress"].as_u64().is_some_and(|percent| percent <= 100), "{task}");
    let (started, updated) = (task["started_on"].as_u64(), task["updated_on"].as_u64());
    assert!(started.is_some_and(|secs| secs > 1_600_000_000) && updated >= started, "{task}");
}
