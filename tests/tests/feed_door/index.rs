//! `/{db}/_feed_index`: made in the background, kept through a crash, and feeds that read by it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{caught_up, end, fresh, lines};
use seqtide_tests::http::escaped;
use seqtide_tests::server::assert_clean;
use seqtide_tests::{Database, Server};

/// Far longer than any index here takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// Several slices, and more than are walked past without a look at the index.
const DOCUMENTS: usize = 6_000;
/// Every so many documents have the owner that is asked for.
const EVERY: usize = 500;

async fn documents(database: &Database) {
    let document = |n: usize| {
        let owner = if n.is_multiple_of(EVERY) { "wanted" } else { "other" };
        json!({ "_id": format!("d{n:04}"), "owner": owner, "n": n })
    };
    database.bulk(&(0..DOCUMENTS).map(document).collect::<Vec<_>>()).await;
}

async fn index(database: &Database) -> Value {
    database.get("/_feed_index").expect(200).await.json()
}

/// Asks until the index is ready; it never says more than there is.
async fn until_ready(database: &Database) -> Value {
    let start = Instant::now();
    loop {
        let index = index(database).await;
        let number = |name: &str| index[name].as_u64().expect("a number");
        assert!(number("rows_done") <= number("rows_total"), "{index}");
        match index["state"].as_str() {
            Some("ready") => return index,
            Some("building") => assert!(start.elapsed() < DEADLINE, "{index}"),
            _ => panic!("{index}"),
        }
    }
}

/// What both doors find from the beginning, as ids.
async fn found(database: &Database, selector: &Value) -> Vec<String> {
    let body = json!({ "selector": selector });
    let changes = database.post("/_changes?filter=_selector").json(&body).expect(200).await.json();
    let update_seq = database.info().await["update_seq"].as_u64().expect("a number");
    assert_eq!((&changes["last_seq"], &changes["pending"]), (&json!(update_seq), &json!(0)));
    let ids = |rows: &[Value]| rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect();
    let ids: Vec<String> = ids(changes["results"].as_array().expect("rows"));
    let query = format!("since=0&live=false&selector={}", escaped(&selector.to_string()));
    let told = lines(database, &query).await;
    let (rows, ends) = told.split_at(told.len() - 2);
    assert_eq!(ends, [caught_up(update_seq), end(update_seq, "caught-up")]);
    let told: Vec<Value> = rows.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert_eq!(told.iter().map(|row| row["id"].as_str().expect("an id")).collect::<Vec<_>>(), ids);
    ids
}

fn wanted(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|n| format!("d{n:04}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_made_through_a_crash_and_feeds_find_what_they_would_without() {
    let (mut server, database) = fresh().await;
    documents(&database).await;
    let selector = json!({ "owner": "wanted" });
    let all = found(&database, &selector).await;
    assert_eq!(all, wanted((0..DOCUMENTS).step_by(EVERY)));

    let answer = database.request("PUT", "/_feed_index").json(&json!({ "fields": ["owner", "n"] })).expect(202).await;
    assert_eq!((answer.text(), answer.seq()), ("{\"ok\":true}\n", DOCUMENTS as u64));
    server.kill();
    server.restart_on_same_port_and_data();
    let ready = until_ready(&database).await;
    let rows = json!(DOCUMENTS);
    assert_eq!(ready, json!({ "fields": ["owner", "n"], "state": "ready", "rows_done": rows, "rows_total": rows }));
    assert_eq!(found(&database, &selector).await, all);

    // The first of them is given away, deleted is the second, and another one is taken.
    let rev = async |id: &str| database.get(&format!("/{id}")).expect(200).await.json()["_rev"].clone();
    let (first, second, third) = (rev("d0000").await, rev("d0500").await, rev("d0001").await);
    database.put("d0000", &json!({ "_rev": first, "owner": "other" })).await;
    database.request("DELETE", &format!("/d0500?rev={}", second.as_str().expect("a rev"))).expect(200).await;
    database.put("d0001", &json!({ "_rev": third, "owner": ["x", "wanted"] })).await;
    let in_list = json!({ "owner": { "$in": ["wanted", "nobody"] } });
    let expected = [wanted((1_000..DOCUMENTS).step_by(EVERY)), wanted(1..2)].concat();
    assert_eq!(found(&database, &in_list).await, expected);
    server.stop();
    assert_clean(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_a_setting_that_is_asked_for_changed_and_removed() {
    let (_server, database) = fresh().await;
    let none = json!({ "fields": [], "state": "none", "rows_done": 0, "rows_total": 0 });
    assert_eq!(index(&database).await, none);
    database.put("a", &json!({ "type": "order" })).await;
    let put = |fields: Value| database.request("PUT", "/_feed_index").json(&json!({ "fields": fields }));
    put(json!(["type", "address.city"])).expect(202).await;
    until_ready(&database).await;
    put(json!(["address.city", "type", "type"])).expect(200).await;
    assert_eq!(index(&database).await["fields"], json!(["type", "address.city"]));
    put(json!(["type", "owner"])).expect(202).await;
    assert_eq!(until_ready(&database).await["fields"], json!(["type", "owner"]));
    assert_eq!(database.request("DELETE", "/_feed_index").expect(200).await.text(), "{\"ok\":true}\n");
    database.request("DELETE", "/_feed_index").expect(200).await;
    assert_eq!(index(&database).await, none);
    put(json!(["type"])).expect(202).await;
    put(json!([])).expect(200).await;
    assert_eq!(index(&database).await, none);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_index_is_named() {
    let (server, database) = fresh().await;
    let put = |body: &'static str| database.request("PUT", "/_feed_index").body(body);
    let many = json!({ "fields": (0..17).map(|n| format!("f{n}")).collect::<Vec<_>>() });
    let many = database.request("PUT", "/_feed_index").json(&many).send().await;
    many.assert_error(400, "bad_request", "there are too many fields: an index has at most 16");
    for (body, named) in [
        (r#"{"fields":["a"],"field":1}"#, "\"field\" is no member"),
        (r#"{"fields":"a"}"#, "`fields` must be a list of paths"),
        (r#"{"fields":["a..b"]}"#, "a..b"),
        ("{}", "should be like"),
    ] {
        let answer = put(body).expect(400).await.json();
        assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains(named)), "{answer}");
    }
    let wrong = database.post("/_feed_index").expect(405).await;
    assert_eq!(wrong.header("allow"), Some("DELETE,GET,HEAD,PUT"));
    let nowhere = Database::at(&server, "nope");
    for method in ["GET", "PUT", "DELETE"] {
        nowhere.request(method, "/_feed_index").expect(404).await;
    }
}

/// Waits until the index is among the tasks; it may be ready before the first look, and is then made anew.
async fn until_among_tasks(server: &Server, database: &Database) -> Value {
    let api = seqtide_tests::http::Api::new(server);
    let start = Instant::now();
    loop {
        database.request("DELETE", "/_feed_index").expect(200).await;
        database.request("PUT", "/_feed_index").json(&json!({ "fields": ["owner"] })).expect(202).await;
        let tasks = api.get("/_active_tasks").expect(200).await.json();
        if let Some(task) = tasks.as_array().and_then(|tasks| tasks.iter().find(|task| task["type"] == "indexer")) {
            return task.clone();
        }
        assert!(start.elapsed() < DEADLINE, "it is never seen");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_made_is_among_the_tasks() {
    let (server, database) = fresh().await;
    documents(&database).await;
    let task = until_among_tasks(&server, &database).await;
    assert_eq!(task["database"], json!("db"));
    assert!(task["progress"].as_u64().is_some_and(|progress| progress <= 100), "{task}");
    until_ready(&database).await;
}
