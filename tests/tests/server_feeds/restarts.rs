//! Tokens and updates from one life of the server to the next.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{fresh, rows};
use seqtide_tests::{Api, Database, Server};

/// The rows after a token, as `(name, type, seq)`, and the token to go on from.
async fn updates(api: &Api, since: u64) -> (Vec<(String, String, u64)>, u64) {
    let answer = api.get(&format!("/_db_updates?since={since}")).expect(200).await.json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let row = |row: &Value| (text(&row["db_name"]), text(&row["type"]), row["seq"].as_u64().expect("a number"));
    let rows = answer["results"].as_array().expect("a list").iter().map(row).collect();
    (rows, answer["last_seq"].as_u64().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_restart_changes_no_byte_and_a_feed_resumes() {
    let (mut server, api) = fresh().await;
    let before = api.get("/_db_updates").expect(200).await;
    for _twice in 0..2 {
        server.stop();
        server.restart_on_same_port_and_data();
        let after = api.get("/_db_updates").expect(200).await;
        assert_eq!((after.text(), after.header("etag")), (before.text(), before.header("etag")));
    }
    let mut feed = api.get("/_feed?since=2").open().await;
    feed.until(|text| text.contains(&rows()[2])).await;
    Database::at(&server, "b").put("y", &json!({})).await;
    feed.until(|text| text.contains("{\"db_name\":\"b\",\"type\":\"updated\",\"seq\":4}")).await;
}

/// Writes to databases in turn until the server is gone; which of them had a write acknowledged.
async fn write_until_gone(databases: Vec<Database>, life: usize) -> Vec<String> {
    let mut written = Vec::new();
    for number in 0.. {
        let database = &databases[number % databases.len()];
        let request = database.request("PUT", &format!("/{life}-{number}")).json(&json!({}));
        match request.try_send().await {
            Ok(answer) => answer.assert_status(201),
            Err(_gone) => break,
        }
        written.push(database.path().trim_start_matches('/').to_owned());
    }
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigkill_no_update_is_lost_and_no_token_turns_back() {
    let mut server = Server::start();
    let api = Api::new(&server);
    let mut databases = Vec::new();
    for name in ["a", "b", "c"] {
        databases.push(Database::create(&server, name).await);
    }
    for life in 0..4 {
        let (_, token) = updates(&api, 0).await;
        let made = format!("made-{life}");
        Database::create(&server, &made).await;
        let (told_of_made, _) = updates(&api, token).await;
        let gone = format!("gone-{life}");
        Database::create(&server, &gone).await;
        api.delete(&format!("/{gone}")).expect(200).await;
        let writing = tokio::spawn(write_until_gone(databases.clone(), life));
        // Killed once it writes.
        let mut feed = api.get(&format!("/_db_updates?feed=continuous&since={token}")).open().await;
        feed.until(|text| text.matches("\"updated\"").count() >= 20).await;
        let seen = feed.so_far();
        server.kill();
        let written = writing.await.expect("the writer ends with the server");
        let highest = seen.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let highest = highest.filter_map(|row| row["seq"].as_u64()).max().expect("rows");
        server.restart_on_same_port_and_data();

        let (rows, last) = updates(&api, token).await;
        let told: BTreeMap<(&str, &str), u64> =
            rows.iter().map(|(name, kind, seq)| ((name.as_str(), kind.as_str()), *seq)).collect();
        for name in &written {
            let announced = told.get(&(name.as_str(), "updated")).copied().unwrap_or_default();
            assert!(announced > highest, "{name} is announced anew above {highest}: {rows:?}");
        }
        assert_eq!(told.get(&(made.as_str(), "created")), Some(&told_of_made[0].2), "to the number: {rows:?}");
        assert!(told.contains_key(&(gone.as_str(), "deleted")), "{rows:?}");
        let since = highest.max(last);
        databases[0].put(&format!("after-{life}"), &json!({})).await;
        let (rows, _) = updates(&api, since).await;
        assert_eq!(rows, [("a".to_owned(), "updated".to_owned(), last + 1)], "it goes on above all that was seen");
    }
}
