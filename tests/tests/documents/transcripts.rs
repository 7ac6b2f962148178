//! What CouchDB 3.5.0 was recorded to answer: `data/couchdb-transcripts.json`, replayed in order.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use seqtide_tests::http::Answer;
use seqtide_tests::{Api, Server};

#[derive(Deserialize)]
struct Transcripts {
    areas: BTreeMap<String, Vec<Exchange>>,
}

#[derive(Deserialize)]
struct Exchange {
    name: String,
    request: Recorded,
    expect: Expected,
}

#[derive(Deserialize)]
struct Recorded {
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Expected {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    #[serde(default)]
    empty: bool,
}

impl Exchange {
    async fn replay(&self, api: &Api) -> Answer {
        let Recorded { method, path, headers, text } = &self.request;
        let request =
            headers.iter().fold(api.request(method, path), |request, (name, value)| request.header(name, value));
        match text {
            Some(text) => request.body(text.clone()).send().await,
            None => request.send().await,
        }
    }

    /// What is wrong with the answer.
    fn faults(&self, answer: &Answer, host: &str) -> Vec<String> {
        let expect = &self.expect;
        let mut faults = Vec::new();
        if answer.status != expect.status {
            faults.push(format!("status {} is not {}", answer.status, expect.status));
        }
        for (name, value) in &expect.headers {
            let expected = value.replace("HOST", host);
            if expected != "*" && answer.header(name) != Some(expected.as_str()) {
                faults.push(format!("{name}: {:?} is not {expected:?}", answer.header(name)));
            }
        }
        if let Some(body) = &expect.body {
            let found = serde_json::from_str(answer.text()).unwrap_or(Value::Null);
            if !matches(&found, body) || !answer.text().ends_with('\n') {
                faults.push(format!("body {:?}\n     is not {body}", answer.text()));
            }
        }
        if expect.empty && !answer.text().is_empty() {
            faults.push(format!("body {:?} should be empty", answer.text()));
        }
        faults
    }
}

/// Equality, where `"*"` in what is expected stands for anything. Numbers compare by value: Seqtide keeps the text
/// they were written in.
fn matches(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (_, Value::String(any)) if any == "*" => !found.is_null(),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| matches(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            let same = |name: &String| found.get(name).is_some_and(|value| matches(value, &expected[name]));
            found.len() == expected.len() && expected.keys().all(same)
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_couchdb_answers_are_given_again() {
    let text = include_str!("../../data/couchdb-transcripts.json");
    let transcripts: Transcripts = serde_json::from_str(text).expect("the transcripts parse");
    let server = Server::start();
    let api = Api::new(&server);
    let host = server.address().to_string();
    let mut failures = Vec::new();
    for (area, exchanges) in &transcripts.areas {
        for exchange in exchanges {
            let faults = exchange.faults(&exchange.replay(&api).await, &host);
            let Recorded { method, path, .. } = &exchange.request;
            failures.extend(faults.iter().map(|fault| format!("{area}/{}: {method} {path}: {fault}", exchange.name)));
        }
    }
    assert!(failures.is_empty(), "{} faults:\n{}", failures.len(), failures.join("\n"));
}
