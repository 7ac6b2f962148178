//! Tokens: what `since` takes, and what lies behind one from a newer life of the database.

use serde_json::json;

use super::fresh;

#[tokio::test(flavor = "multi_thread")]
async fn f19_a_token_of_another_length_or_with_another_letter_is_malformed() {
    let (_server, database) = fresh().await;
    let token = "00000000000000000100000000";
    let g = token.replace("01", "0g");
    for since in [&token[1..], &format!("{token}0"), &g] {
        let refused = database.get(&format!("/_changes?since={since}")).send().await;
        refused.assert_error(400, "bad_request", "Malformed sequence supplied in 'since' parameter.");
    }
    database.get(&format!("/_changes?since={token}")).expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f20_a_token_of_a_higher_incarnation_starts_from_the_beginning() {
    let (_server, database) = fresh().await;
    for id in ["a", "b"] {
        database.put(id, &json!({})).await;
    }
    let changes = database.changes("since=01000000000000000100000000").await;
    let ids: Vec<_> = changes["results"].as_array().expect("rows").iter().map(|row| row["id"].clone()).collect();
    assert_eq!((ids, &changes["last_seq"]), (vec![json!("a"), json!("b")], &json!(2)));
}
