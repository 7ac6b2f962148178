//! SIGKILL under load: whatever was acknowledged is there afterwards, at its revision and its sequence; and what was
//! sent with an idempotency key, acknowledged or not, is there once when it has been sent again.
//!
//! `SEQTIDE_KILLS` sets how often the server is killed, `SEQTIDE_TEST_SEED` the seed of sizes and times. The order in
//! which threads run is not the seed's.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use seqtide_tests::http::{Answer, SOON};
use seqtide_tests::server::assert_clean;
use seqtide_tests::workload::{seed, setting};
use seqtide_tests::{Database, Server};

const KILLS: u64 = 15;
const CHAIN_WRITERS: usize = 4;
const CHAINS_A_WRITER: usize = 3;
const BULK_SIZE: usize = 10;
const POSTERS: usize = 2;

/// Writes to chains that a life of the server acknowledges at least; fewer prove nothing.
const CHAINED_MIN: usize = 6;

/// What a life of the server has acknowledged.
#[derive(Default)]
struct Counts {
    chained: usize,
    in_bulk: usize,
}

/// One document, written by one writer only, each write onto the one before.
#[derive(Clone)]
struct Chain {
    id: String,
    acknowledged: Option<Acknowledged>,
    /// A write was sent and its answer never came: it may have happened.
    in_doubt: bool,
}

#[derive(Clone)]
struct Acknowledged {
    rev: String,
    seq: u64,
    n: u64,
    deleted: bool,
}

impl Chain {
    /// Writes the next revision; false when the server is gone.
    async fn write_next(&mut self, database: &Database, pad: usize) -> bool {
        let n = self.acknowledged.as_ref().map_or(0, |last| last.n + 1);
        let deleted = n % 5 == 4;
        let mut body = json!({ "n": n, "pad": "x".repeat(pad), "_deleted": deleted });
        if let Some(last) = self.acknowledged.as_ref().filter(|last| !last.deleted) {
            body["_rev"] = json!(last.rev);
        }
        self.in_doubt = true;
        let Ok(answer) = database.request("PUT", &format!("/{}", self.id)).json(&body).try_send().await else {
            return false;
        };
        answer.assert_status(if deleted { 200 } else { 201 });
        let seq = answer.seq();
        assert!(self.acknowledged.as_ref().is_none_or(|last| last.seq < seq), "{}: sequences rise", self.id);
        self.acknowledged = Some(Acknowledged { rev: answer.rev(), seq, n, deleted });
        self.in_doubt = false;
        true
    }

    /// Compares the chain with its row after a restart, and goes on from what is there.
    async fn verify(&mut self, database: &Database, row: Option<&Value>) {
        let Chain { id, .. } = self;
        let Some(row) = row else {
            assert!(self.acknowledged.is_none(), "{id}: an acknowledged write is gone");
            self.in_doubt = false;
            return;
        };
        let (rev, seq) = (row["changes"][0]["rev"].as_str().expect("a rev"), row["seq"].as_u64().expect("a number"));
        let n = row["doc"]["n"].as_u64().expect("a number");
        match &self.acknowledged {
            Some(last) if last.rev == rev => {
                assert_eq!((seq, n), (last.seq, last.n), "{id}: sequence and body of {rev}");
            }
            last => {
                let known = last.as_ref().map(|last| &last.rev);
                assert!(self.in_doubt, "{id} is at {rev}, but {known:?} was acknowledged last and nothing is in doubt");
                let expected = last.as_ref().map_or(0, |last| last.n + 1);
                assert_eq!(n, expected, "{id}: only the write in doubt may follow");
                if let Some(last) = last {
                    assert!(seq > last.seq, "{id}: {seq} after {}", last.seq);
                    assert_eq!(parent_of(database, id, rev).await, last.rev, "{id}");
                }
            }
        }
        self.acknowledged = Some(Acknowledged { rev: rev.to_owned(), seq, n, deleted: row["deleted"] == json!(true) });
        self.in_doubt = false;
    }
}

async fn parent_of(database: &Database, id: &str, rev: &str) -> String {
    let document = database.get(&format!("/{id}?rev={rev}&revs=true")).expect(200).await.json();
    let revisions = &document["_revisions"];
    format!(
        "{}-{}",
        revisions["start"].as_u64().expect("a number") - 1,
        revisions["ids"][1].as_str().expect("a parent")
    )
}

/// Writes a writer's chains in turn until the server is gone.
async fn write_chains(
    database: Database,
    mut chains: Vec<Chain>,
    mut rng: StdRng,
    counts: watch::Sender<Counts>,
) -> Vec<Chain> {
    for turn in 0.. {
        let pad = if rng.random_bool(0.05) { 100_000 } else { rng.random_range(0..500) };
        if !chains[turn % CHAINS_A_WRITER].write_next(&database, pad).await {
            break;
        }
        counts.send_modify(|counts| counts.chained += 1);
    }
    chains
}

/// Writes new documents in bulk until the server is gone; revision and the request's sequence of each acknowledged one.
async fn write_bulk(database: Database, round: u64, counts: watch::Sender<Counts>) -> BTreeMap<String, (String, u64)> {
    let mut acknowledged = BTreeMap::new();
    for number in 0.. {
        let docs: Vec<Value> =
            (0..BULK_SIZE).map(|n| json!({ "_id": format!("bulk-{round}-{number}-{n}"), "n": n })).collect();
        let request = database.post("/_bulk_docs").json(&json!({ "docs": docs }));
        let Ok(answer) = request.try_send().await else {
            break;
        };
        answer.assert_status(201);
        for result in answer.json().as_array().expect("a list") {
            let text = |name: &str| result[name].as_str().unwrap_or_else(|| panic!("{name} in {result}")).to_owned();
            acknowledged.insert(text("id"), (text("rev"), answer.seq()));
        }
        counts.send_modify(|counts| counts.in_bulk += BULK_SIZE);
    }
    acknowledged
}

/// Posts documents without ids, each under a key of its own: only the key keeps a repetition from making another one.
struct Poster {
    number: usize,
    /// The ids of those acknowledged; the place is the document's number.
    ids: Vec<String>,
}

impl Poster {
    async fn post(&self, database: &Database, n: usize) -> Option<Answer> {
        let key = format!("poster-{}-{n}", self.number);
        let request = database.post("").header("idempotency-key", &key);
        request.json(&json!({ "poster": self.number, "n": n })).try_send().await.ok()
    }

    /// Posts until the server is gone.
    async fn run(mut self, database: Database) -> Poster {
        while let Some(answer) = self.post(&database, self.ids.len()).await {
            answer.assert_status(201);
            self.ids.push(id_of(&answer));
        }
        self
    }

    /// Sends again what was acknowledged last, and what was not: the one answers as it did, the other is made unless it
    /// was made before the crash.
    async fn repeat(&mut self, database: &Database) {
        if let (Some(id), Some(last)) = (self.ids.last(), self.ids.len().checked_sub(1)) {
            let again = self.post(database, last).await.expect("the server is there");
            again.assert_status(201);
            assert_eq!((again.header("idempotency-replayed"), &id_of(&again)), (Some("true"), id));
        }
        let in_doubt = self.post(database, self.ids.len()).await.expect("the server is there");
        in_doubt.assert_status(201);
        self.ids.push(id_of(&in_doubt));
    }

    /// Each of its documents is there once, under the id that was answered.
    fn verify(&self, rows: &BTreeMap<String, Value>) {
        let made = rows.iter().filter(|(_, row)| row["doc"]["poster"] == json!(self.number));
        let found: BTreeMap<u64, &str> =
            made.clone().map(|(id, row)| (number(&row["doc"]["n"]), id.as_str())).collect();
        assert_eq!(made.count(), found.len(), "poster {}: no document twice", self.number);
        let expected = self.ids.iter().enumerate().map(|(n, id)| (n as u64, id.as_str()));
        assert_eq!(found, expected.collect(), "poster {}", self.number);
    }
}

fn id_of(answer: &Answer) -> String {
    answer.json()["id"].as_str().expect("an id").to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// The rows by document, after checking that the feed and the documents tell the same.
async fn rows_that_agree(database: &Database) -> BTreeMap<String, Value> {
    let answer = database.changes("include_docs=true").await;
    let rows = answer["results"].as_array().expect("rows");
    let info = database.info().await;
    let counted = info["doc_count"].as_u64().expect("a number") + info["doc_del_count"].as_u64().expect("a number");
    assert_eq!(counted, rows.len() as u64, "a row for each document and each deleted one");
    let all_docs = database.get("/_all_docs").expect(200).await.json();
    let listed = all_docs["rows"].as_array().expect("rows").iter();
    let mut live: BTreeMap<&str, &Value> =
        listed.map(|row| (row["id"].as_str().expect("an id"), &row["value"]["rev"])).collect();
    let mut last = 0;
    let mut by_id = BTreeMap::new();
    for row in rows {
        let (id, seq) = (row["id"].as_str().expect("an id"), row["seq"].as_u64().expect("a number"));
        assert!(seq > last, "{seq} after {last}");
        last = seq;
        let rev = &row["changes"][0]["rev"];
        assert_eq!(&row["doc"]["_rev"], rev, "{id}: the body is the winner's");
        let expected = if row["deleted"] == json!(true) { None } else { Some(rev) };
        assert_eq!(live.remove(id), expected, "{id}: the feed and the documents differ");
        assert!(by_id.insert(id.to_owned(), row.clone()).is_none(), "{id} has two rows");
    }
    assert!(live.is_empty(), "documents without a row: {live:?}");
    assert!(info["update_seq"].as_u64().expect("a number") >= last);
    by_id
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_sigkill() {
    let mut rng = StdRng::seed_from_u64(seed());
    let kills = setting("SEQTIDE_KILLS").unwrap_or(KILLS);
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    // Its rows are looked at by the check after each kill.
    database.request("PUT", "/_feed_index").json(&json!({ "fields": ["n", "_deleted"] })).expect(202).await;
    let mut writers: Vec<Vec<Chain>> = (0..CHAIN_WRITERS)
        .map(|writer| {
            let chain = |number| Chain { id: format!("chain-{writer}-{number}"), acknowledged: None, in_doubt: false };
            (0..CHAINS_A_WRITER).map(chain).collect()
        })
        .collect();
    let mut bulk = BTreeMap::new();
    let mut posters: Vec<Poster> = (0..POSTERS).map(|number| Poster { number, ids: Vec::new() }).collect();
    for round in 0..kills {
        println!("kill {round} of {kills}");
        let (counting, mut counts) = watch::channel(Counts::default());
        let running: Vec<_> = std::mem::take(&mut writers)
            .into_iter()
            .map(|chains| {
                let rng = StdRng::from_rng(&mut rng);
                tokio::spawn(write_chains(database.clone(), chains, rng, counting.clone()))
            })
            .collect();
        let bulk_writer = tokio::spawn(write_bulk(database.clone(), round, counting));
        let posting: Vec<_> = posters.drain(..).map(|poster| tokio::spawn(poster.run(database.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..300))).await;
        let enough = counts.wait_for(|counts| counts.chained >= CHAINED_MIN && counts.in_bulk > 0);
        timeout(SOON, enough).await.expect("writes in time").expect("writers that go on");
        server.kill();
        assert_clean(server.data_dir());
        for writer in running {
            writers.push(writer.await.expect("a writer"));
        }
        bulk.extend(bulk_writer.await.expect("the bulk writer"));
        for poster in posting {
            posters.push(poster.await.expect("a poster"));
        }
        let before =
            writers.iter().flatten().filter_map(|chain| chain.acknowledged.as_ref()).map(|last| last.seq).max();

        server.restart_on_same_port_and_data();
        let rows = rows_that_agree(&database).await;
        for chain in writers.iter_mut().flatten() {
            let row = rows.get(&chain.id).cloned();
            chain.verify(&database, row.as_ref()).await;
        }
        for (id, (rev, seq)) in &bulk {
            let row = rows.get(id).unwrap_or_else(|| panic!("{id}: an acknowledged write is gone"));
            assert_eq!(row["changes"][0]["rev"].as_str(), Some(rev.as_str()), "{id}");
            assert!(row["seq"].as_u64().is_some_and(|found| found <= *seq), "{id}: {} after {seq}", row["seq"]);
        }
        for poster in &mut posters {
            poster.repeat(&database).await;
        }
        let rows = rows_that_agree(&database).await;
        posters.iter().for_each(|poster| poster.verify(&rows));
        let next = database.put(&format!("after-{round}"), &json!({})).await.seq();
        assert!(before.is_none_or(|before| next > before), "{next} after {before:?}: sequences go on after a crash");
    }
    let written: u64 =
        writers.iter().flatten().filter_map(|chain| chain.acknowledged.as_ref()).map(|last| last.n + 1).sum();
    assert!(written >= CHAINED_MIN as u64 * kills, "too few writes to prove anything: {written}");
}
