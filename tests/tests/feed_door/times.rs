//! `since=` a time.

use std::time::{Duration, SystemTime};

use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::sleep;

use super::{caught_up, end, fresh, lines, write};
use seqtide_tests::http::escaped;

fn now_secs() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_secs()
}

/// Seconds as a time of RFC 3339.
fn time(secs: u64) -> String {
    let moment = OffsetDateTime::from(SystemTime::UNIX_EPOCH + Duration::from_secs(secs));
    moment.format(&Rfc3339).expect("a time")
}

#[tokio::test(flavor = "multi_thread")]
async fn since_a_time_is_behind_what_was_written_before() {
    let (_server, database) = fresh().await;
    let before = write(&database, &["a", "b"]).await;
    let written = now_secs();
    while now_secs() < written + 2 {
        sleep(Duration::from_millis(20)).await;
    }
    let time_between = time(written + 1);
    let after = write(&database, &["c"]).await;
    let whole: Vec<String> = before.iter().chain(&after).cloned().collect();
    let ends = [caught_up(3), end(3, "caught-up")];
    for (since, expected) in [
        (time_between.as_str(), &after[..]),
        ("1970-01-01T00:00:00Z", &whole),
        ("2000-02-29T23:59:59.25%2B02:00", &whole),
        ("2970-01-01T00:00:00Z", &[]),
    ] {
        let found = lines(&database, &format!("live=false&since={since}")).await;
        assert_eq!(found, [expected, &ends].concat(), "since={since}");
    }
    let posted = database.post("/_feed").json(&json!({ "live": false, "since": time_between })).expect(200).await;
    assert!(posted.text().contains(&after[0]) && !posted.text().contains(&before[1]), "{:?}", posted.text());
}

/// Its token told no more than a place: that its reader may have what has left since was forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_began_at_a_time_does_so_when_it_is_resumed_with_the_time_still_there() {
    let (_server, database) = fresh().await;
    let order = database.put("o-1", &json!({ "status": "open" })).await.rev();
    database.put("o-1", &json!({ "_rev": order, "status": "done" })).await;
    let selector = escaped(&json!({ "status": "open" }).to_string());
    let told = async |since: &str| {
        let found = lines(&database, &format!("live=false&leave=true&selector={selector}&{since}")).await;
        found.iter().any(|line| line.contains(r#""left":true"#))
    };
    let time = "since=2000-01-01T00:00:00Z";
    assert!(told(time).await);
    assert!(told(&format!("{time}&last-event-id=0")).await);
    assert!(!told("since=0").await && !told("since=0&last-event-id=0").await, "who begins has nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_time_is_refused_and_so_is_any_in_a_feed_of_databases() {
    let (_server, database) = fresh().await;
    for since in ["2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "yesterday"] {
        let reason = database.get(&format!("/_feed?since={since}")).expect(400).await.json()["reason"].to_string();
        assert!(reason.contains("`since` is a sequence") && reason.contains(since), "{reason}");
    }
    let refused = database.api.get("/_feed?since=2026-01-01T00:00:00Z").expect(400).await.json();
    assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains("feed of databases")), "{refused}");
    // CouchDB's door knows none of it.
    database.get("/_changes?since=2026-01-01T00:00:00Z").expect(400).await;
}
