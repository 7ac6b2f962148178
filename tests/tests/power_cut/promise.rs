//! What was promised when: every state of everything written, with the moment at which the server said so.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::load::{Acknowledged, Answer};
use crate::log::{Event, Log, Moment};

/// What an image holds: each thing's state by its key.
pub type Holds = BTreeMap<String, Value>;

/// A state that a key came to.
#[derive(Clone)]
struct Promise {
    state: Value,
    /// From here on it is promised: the answer was about to be sent.
    since: Moment,
}

/// All states of all keys, each key's in their order.
#[derive(Clone, Default)]
pub struct Promises(BTreeMap<String, Vec<Promise>>);

impl Promises {
    /// Finds each acknowledged write's answer in the log.
    ///
    /// # Panics
    /// When the log lacks one: then the recorder does not see what is sent.
    pub fn find(acknowledged: &[Acknowledged], log: &Log) -> Promises {
        let (sent, marked) = (sent_answers(log), marks(log));
        let mut promises = Promises::default();
        for Acknowledged { key, state, answer } in acknowledged {
            let found = match answer {
                Answer::Names { id, rev } => sent.get(&(id.clone(), rev.clone())),
                Answer::Marked(text) => marked.get(text.as_str()),
            };
            let since = *found.unwrap_or_else(|| panic!("the log does not show {answer:?}"));
            promises.0.entry(key.clone()).or_default().push(Promise { state: state.clone(), since });
        }
        promises
    }

    /// The moments at which something was promised, in order.
    pub fn moments(&self) -> Vec<Moment> {
        let mut moments: Vec<Moment> = self.0.values().flatten().map(|promise| promise.since).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// The same, had the answer sent at `from` been sent at `to`.
    pub fn with_answer_moved(&self, from: Moment, to: Moment) -> Promises {
        let mut moved = self.clone();
        for promise in moved.0.values_mut().flatten().filter(|promise| promise.since == from) {
            promise.since = to;
        }
        moved
    }

    /// What is wrong with an image of this moment: for each key it must hold the state promised last, or one that the
    /// key came to afterwards.
    pub fn broken_by(&self, holds: &Holds, cut: Moment) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, states) in &self.0 {
            let kept = states.partition_point(|promise| promise.since < cut);
            let found = holds.get(key).unwrap_or(&Value::Null);
            let nothing_yet = kept == 0 && found.is_null();
            if !nothing_yet && !states[kept.saturating_sub(1)..].iter().any(|promise| promise.state == *found) {
                let promised = kept.checked_sub(1).map(|last| states[last].state.to_string());
                broken.push(format!("{key}: promised {promised:?}, found {found}"));
            }
        }
        let unknown = holds.keys().filter(|key| !self.0.contains_key(*key));
        broken.extend(unknown.map(|key| format!("{key}: nobody wrote it")));
        broken
    }
}

/// Document and revision of each result in each good answer, with the moment it was sent.
fn sent_answers(log: &Log) -> HashMap<(String, String), Moment> {
    let mut answers = HashMap::new();
    for record in &log.records {
        let Event::Sent { data } = &record.event else { continue };
        for result in results(data) {
            let text = |name: &str| result[name].as_str().map(str::to_owned);
            if let (Some(id), Some(rev)) = (text("id"), text("rev")) {
                answers.entry((id, rev)).or_insert(record.begin);
            }
        }
    }
    answers
}

/// The results in an answer of 200 or 201; what is no such answer has none.
fn results(sent: &[u8]) -> Vec<Value> {
    let good = sent.starts_with(b"HTTP/1.1 200") || sent.starts_with(b"HTTP/1.1 201");
    let head = sent.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(head) = head.filter(|_| good) else { return Vec::new() };
    match serde_json::from_slice(&sent[head + 4..]) {
        Ok(Value::Array(results)) => results,
        Ok(result) => vec![result],
        Err(_) => Vec::new(),
    }
}

fn marks(log: &Log) -> HashMap<&str, Moment> {
    let mut marks = HashMap::new();
    for record in &log.records {
        if let Event::Mark { text } = &record.event {
            marks.insert(text.as_str(), record.begin);
        }
    }
    marks
}
