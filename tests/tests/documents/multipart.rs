//! `open_revs` and `_bulk_get` as multipart.

use serde_json::json;

use super::fresh;
use seqtide_tests::http::{Answer, escaped};
use seqtide_tests::{Database, Server};

/// A document `conf` with the leaves `2-b`, `2-c` and the tombstone `3-d`.
async fn conflicted() -> (Server, Database) {
    let (server, database) = fresh().await;
    let path = |start: u64, ids: &[&str]| json!({ "start": start, "ids": ids });
    database
        .push(&[
            json!({ "_id": "conf", "_rev": "2-b", "_revisions": path(2, &["b", "a"]), "w": "b" }),
            json!({ "_id": "conf", "_rev": "2-c", "_revisions": path(2, &["c", "a"]), "w": "c" }),
            json!({ "_id": "conf", "_rev": "3-d", "_revisions": path(3, &["d", "e", "a"]), "_deleted": true }),
        ])
        .await;
    (server, database)
}

/// The boundary in an answer's type, which must be `multipart/<kind>`.
fn boundary(answer: &Answer, kind: &str) -> String {
    let content_type = answer.header("content-type").unwrap_or_default();
    let boundary = content_type.strip_prefix(&format!("multipart/{kind}; boundary=\""));
    let boundary = boundary.and_then(|rest| rest.strip_suffix('"'));
    boundary.unwrap_or_else(|| panic!("the type is {content_type:?}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn open_revs_is_multipart_byte_for_byte_as_couchdb_writes_it() {
    let (_server, database) = conflicted().await;
    let list = escaped("[\"2-b\",\"9-z\",\"3-d\"]");
    let answer = database.get(&format!("/conf?open_revs={list}")).expect(200).await;
    let boundary = boundary(&answer, "mixed");
    let expected = [
        "--BOUNDARY",
        "Content-Type: application/json\r\n",
        "{\"_id\":\"conf\",\"_rev\":\"2-b\",\"w\":\"b\"}",
        "--BOUNDARY",
        "Content-Type: application/json\r\n",
        "{\"_id\":\"conf\",\"_rev\":\"3-d\",\"_deleted\":true}",
        "--BOUNDARY",
        "Content-Type: application/json; error=\"true\"\r\n",
        "{\"missing\":\"9-z\"}",
        "--BOUNDARY--",
    ];
    assert_eq!(answer.text(), expected.join("\r\n").replace("BOUNDARY", &boundary));
    let nothing = database.get(&format!("/nope?open_revs={list}")).expect(200).await;
    assert_eq!(nothing.text().matches("{\"missing\":").count(), 3, "200 even of a document that never was");
    database.get("/nope?open_revs=all").send().await.assert_error(404, "not_found", "missing");
    let head = database.request("HEAD", "/conf?open_revs=all").expect(200).await;
    assert_eq!(head.text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_accept_header_chooses_the_form_of_open_revs() {
    let (_server, database) = conflicted().await;
    for (accept, multipart) in [
        ("*/*", true),
        ("multipart/mixed", true),
        ("multipart/*;q=0.3", true),
        ("text/html, */*;q=0.1", true),
        ("application/json", false),
        ("text/html", false),
        ("*/*, multipart/mixed;q=0", false),
    ] {
        let answer = database.get("/conf?open_revs=all").header("accept", accept).expect(200).await;
        if multipart {
            boundary(&answer, "mixed");
        } else {
            assert_eq!(answer.header("content-type"), Some("application/json"), "{accept}");
            assert_eq!(answer.json().as_array().map(Vec::len), Some(3), "{accept}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_get_is_multipart_only_where_json_is_not_taken() {
    let (_server, database) = conflicted().await;
    let docs = json!({ "docs": [{ "id": "conf" }, { "id": "conf", "rev": "9-z" }, { "id": "nope" }] });
    let ask = async |accept: &str| database.post("/_bulk_get").header("accept", accept).json(&docs).expect(200).await;
    for accept in ["*/*", "application/json", "multipart/mixed, application/json;q=0.1", "text/html"] {
        assert_eq!(ask(accept).await.json()["results"].as_array().map(Vec::len), Some(3), "{accept}");
    }
    for kind in ["mixed", "related"] {
        let answer = ask(&format!("multipart/{kind}")).await;
        let boundary = boundary(&answer, kind);
        assert!(boundary.starts_with("--"), "{boundary}");
        let document = |rev: &str, rest: &str| {
            format!(
                "\r\n--BOUNDARY\r\nX-Doc-Id: conf\r\nX-Rev-Id: {rev}\r\nContent-Type: application/json\r\n\r\n\
                 {{\"_id\":\"conf\",\"_rev\":\"{rev}\",{rest}}}"
            )
        };
        let error =
            |json: &str| format!("\r\n--BOUNDARY\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{json}");
        let expected = [
            document("2-b", "\"w\":\"b\""),
            document("2-c", "\"w\":\"c\""),
            document("3-d", "\"_deleted\":true"),
            error("{\"rev\":\"9-z\",\"error\":\"not_found\",\"reason\":\"missing\"}"),
            error("{\"id\":\"nope\",\"rev\":\"undefined\",\"error\":\"not_found\",\"reason\":\"missing\"}"),
            "\r\n--BOUNDARY--\r\n".to_owned(),
        ];
        assert_eq!(answer.text(), expected.concat().replace("BOUNDARY", &boundary));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_cannot_break_out_of_its_part_s_head() {
    let (_server, database) = fresh().await;
    database.put("a\r\nX-Evil: 1", &json!({})).await;
    let docs = json!({ "docs": [{ "id": "a\r\nX-Evil: 1" }] });
    let answer = database.post("/_bulk_get").header("accept", "multipart/mixed").json(&docs).expect(200).await;
    assert!(answer.text().contains("\r\nX-Doc-Id: a%0D%0AX-Evil: 1\r\n"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_one_page_of_revisions_is_whole() {
    let (_server, database) = fresh().await;
    let leaves: Vec<_> =
        (0..300).map(|n| json!({ "_id": "a", "_rev": format!("1-{n:04}"), "pad": "x".repeat(9000) })).collect();
    database.push(&leaves).await;
    let expected: Vec<_> = (0..300).map(|n| json!(format!("1-{n:04}"))).collect();
    let json = database.get("/a?open_revs=all").header("accept", "application/json").expect(200).await.json();
    let revs: Vec<_> = json.as_array().expect("a list").iter().map(|leaf| leaf["ok"]["_rev"].clone()).collect();
    assert_eq!(revs, expected);
    let parts = database.get("/a?open_revs=all").expect(200).await;
    let boundary = boundary(&parts, "mixed");
    assert_eq!(parts.text().matches(&format!("--{boundary}\r\n")).count(), 300);
    assert!(parts.text().ends_with(&format!("\r\n--{boundary}--")));
}
