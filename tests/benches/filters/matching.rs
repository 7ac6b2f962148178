//! How many documents a second one core shows to a selector.
//!
//! The documents are about 150 bytes, as a shop's orders are. Each is opened anew for each selector, as a feed with one
//! selector would; `sixteen at once` opens it once for sixteen of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use seqtide::storage::LeafRev;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::{DocView, FieldPath, Fields, Selector};
use seqtide_tests::bench::figure::{Figure, Required};

/// Least documents a second, in millions, that each selector is shown on one core.
const MILLIONS_MIN: f64 = 1.0;

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
            r#"{{"type":"order","state":"{state}","customer":"customer-{}","total":{}.{:02},"address":{{"city":"{city}"}},"placed":"2026-11-{:02}","lines":[{{"sku":"A-{}","n":{}}}]}}"#,
            number % 977,
            number % 500,
            number % 100,
            number % 28 + 1,
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
    ("elemMatch", r#"{"lines":{"$elemMatch":{"sku":"A-7","n":{"$gt":0}}}}"#),
    ("id only", r#"{"_id":{"$gt":"o-0005"}}"#),
    ("every document", r#"{}"#),
];

/// How many million documents a second `work` takes: in the fastest of many short rounds, so that what else the
/// machine does meanwhile counts for little. `work` counts something, so that none of it is left out.
fn measure(name: &str, required: Required, documents: &[Document], work: impl Fn(&Document) -> usize) -> Figure {
    let start = Instant::now();
    let mut fastest = Duration::MAX;
    while start.elapsed() < Duration::from_secs(1) {
        let round = Instant::now();
        black_box(documents.iter().map(&work).sum::<usize>());
        fastest = fastest.min(round.elapsed());
    }
    let millions = documents.len() as f64 / fastest.as_secs_f64() / 1e6;
    Figure { what: format!("matching: {name}"), value: millions, unit: "million documents/s", required }
}

pub fn measure_all() -> Vec<Figure> {
    let documents: Vec<Document> = (0..1_000).map(Document::new).collect();
    let bytes: usize = documents.iter().map(|document| document.body.as_bytes().len()).sum();
    eprintln!("matching: {} documents of {} bytes, one core", documents.len(), bytes / documents.len());

    let compiled = SELECTORS.map(|(name, text)| (name, Selector::from_json(text).expect("a good selector")));
    let mut figures = Vec::new();
    for (name, selector) in &compiled {
        let matches = |document: &Document| usize::from(selector.matches(black_box(&document.view())));
        figures.push(measure(name, Required::AtLeast(MILLIONS_MIN), &documents, matches));
    }
    let sixteen: Vec<&Selector> = compiled.iter().map(|(_, selector)| selector).cycle().take(16).collect();
    figures.push(measure("sixteen at once", Required::Nothing, &documents, |document| {
        let view = document.view();
        sixteen.iter().filter(|selector| selector.matches(black_box(&view))).count()
    }));
    for path in ["state", "total", "address.city"] {
        let parsed = FieldPath::parse(path).expect("a good path");
        let keys = |document: &Document| document.view().scalar_keys(&parsed).count();
        figures.push(measure(&format!("keys of {path}"), Required::Nothing, &documents, keys));
    }
    let fields = Fields::from_json(r#"["_id","state","address.city"]"#).expect("good fields");
    let project = |document: &Document| usize::from(!fields.project(&document.view()).is_empty());
    figures.push(measure("projection", Required::Nothing, &documents, project));
    figures
}
