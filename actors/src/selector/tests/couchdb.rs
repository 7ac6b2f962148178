//! Selectors and what a CouchDB 3.5.0 matched by them, through `_changes`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::*;

#[derive(Deserialize)]
struct Observed<'a> {
    /// Bodies by id; `gone` is a tombstone.
    #[serde(borrow)]
    documents: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    selectors: Vec<Case<'a>>,
}

#[derive(Deserialize)]
struct Case<'a> {
    #[serde(borrow)]
    selector: &'a RawValue,
    /// The ids that match, sorted.
    matches: Option<&'a str>,
    /// Why it is refused.
    reason: Option<&'a str>,
}

#[test]
fn every_observed_selector_matches_what_couchdb_matches() {
    let Observed { documents, selectors } = serde_json::from_str(include_str!("couchdb.json")).unwrap();
    let document = |(id, body): (&&str, &&RawValue)| match *id {
        "gone" => Document::tombstone(id),
        _ => Document::new(id, body.get()),
    };
    let documents: Vec<Document> = documents.iter().map(document).collect();
    assert_eq!((documents.len(), selectors.len()), (23, 86));
    let views: Vec<(&str, DocView<'_>)> = documents.iter().map(|each| (each.id.as_str(), each.view())).collect();
    for Case { selector, matches, reason } in selectors {
        let text = selector.get();
        let matched = Selector::from_json(text).map(|selector| {
            let matching = views.iter().filter(|(_, view)| selector.matches(view));
            matching.map(|(id, _)| *id).collect::<Vec<_>>().join(" ")
        });
        let observed = reason.map_or_else(|| Ok(matches.unwrap()), Err);
        assert_eq!(matched.as_deref().map_err(|error| error.to_string()), observed.map_err(String::from), "{text}");
    }
}
