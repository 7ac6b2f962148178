//! How many documents a second one core shows to a selector: `cargo bench -p seqtide --bench selectors`.
//!
//! The documents are about 200 bytes, as a shop's orders are. Each is opened anew for each selector, as a feed with one
//! selector would; `sixteen at once` opens it once for sixteen of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use seqtide::storage::LeafRev;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::{DocView, FieldPath, Fields, Selector};

struct Document {
    id: DocId,
    leaf: LeafRev,
    body: Body,
}

impl Document {
    fn new(number: usize) -> Document {
        let state = ["paid", "pending", "shipped", "cancelled"][number % 4];
        let city = ["Berlin", "Zürich", "Łódź", "Porto"][number / 4 % 4];
        let body = format!(
            r#"{{"type":"order","state":"{state}","customer":"customer-{}","total":{}.{:02},"address":{{"city":"{city}","zip":"{:05}"}},"placed":"2026-11-{:02}T10:15:{:02}Z","lines":[{{"sku":"A-{}","n":{}}},{{"sku":"B-7","n":1}}]}}"#,
            number % 977,
            number % 500,
            number % 100,
            number % 99_999,
            number % 28 + 1,
            number % 60,
            number % 50,
            number % 5,
        );
        Document {
            id: DocId::parse(&format!("o-{number:06}")).expect("a good id"),
            leaf: LeafRev {
                rev: RevId::parse("1-967a00dff5e02add41819138abb3284d").expect("a good rev"),
                deleted: false,
            },
            body: Body::from_stored(body.into()),
        }
    }

    fn view(&self) -> DocView<'_> {
        DocView::new(&self.id, &self.leaf, &self.body)
    }
}

const SELECTORS: [(&str, &str); 11] = [
    ("equality, equality, range", r#"{"type":"order","state":"paid","total":{"$gt":100}}"#),
    ("equality that fails", r#"{"type":"invoice"}"#),
    ("range of numbers", r#"{"total":{"$gte":100,"$lt":200}}"#),
    ("range of strings", r#"{"placed":{"$gte":"2026-11-10","$lt":"2026-11-20"}}"#),
    ("equality beyond ASCII", r#"{"address.city":"Zürich"}"#),
    ("range beyond ASCII", r#"{"address.city":{"$gt":"Łask"}}"#),
    ("in", r#"{"customer":{"$in":["customer-1","customer-2","customer-3","customer-4","customer-5"]}}"#),
    ("regex", r#"{"customer":{"$regex":"-1[0-9]$"}}"#),
    ("elemMatch", r#"{"lines":{"$elemMatch":{"sku":"B-7","n":{"$gt":0}}}}"#),
    ("id only", r#"{"_id":{"$gt":"o-0005"}}"#),
    ("every document", r#"{}"#),
];

/// Prints how many documents a second `work` takes: in the fastest of many short rounds, so that what else the machine
/// does meanwhile counts for little.
fn measure(name: &str, documents: &[Document], mut work: impl FnMut(&Document) -> usize) {
    let start = Instant::now();
    let mut fastest = Duration::MAX;
    let mut counted = 0;
    while start.elapsed() < Duration::from_secs(1) {
        let round = Instant::now();
        counted = documents.iter().map(&mut work).sum::<usize>();
        fastest = fastest.min(round.elapsed());
    }
    let shown = documents.len() as f64;
    let millions = shown / fastest.as_secs_f64() / 1e6;
    println!("{name:<28} {millions:>7.2} million a second, {:>5.1} % counted", 100.0 * counted as f64 / shown);
}

fn main() {
    let documents: Vec<Document> = (0..1_000).map(Document::new).collect();
    let bytes: usize = documents.iter().map(|document| document.body.as_bytes().len()).sum();
    println!("{} documents of {} bytes", documents.len(), bytes / documents.len());

    let compiled = SELECTORS.map(|(name, text)| (name, Selector::from_json(text).expect("a good selector")));
    for (name, selector) in &compiled {
        measure(name, &documents, |document| usize::from(selector.matches(black_box(&document.view()))));
    }
    let sixteen: Vec<&Selector> = compiled.iter().map(|(_, selector)| selector).cycle().take(16).collect();
    measure("sixteen at once", &documents, |document| {
        let view = document.view();
        sixteen.iter().filter(|selector| selector.matches(black_box(&view))).count()
    });
    for path in ["state", "total", "address.city"] {
        let path = FieldPath::parse(path).expect("a good path");
        measure(&format!("keys of {path}"), &documents, |document| document.view().scalar_keys(&path).count());
    }
    let fields = Fields::from_json(r#"["_id","state","address.city"]"#).expect("good fields");
    measure("projection", &documents, |document| usize::from(!fields.project(&document.view()).is_empty()));
}
