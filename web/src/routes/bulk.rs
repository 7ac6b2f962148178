//! Many documents in one request: `_bulk_docs`, `_bulk_get`.

use std::fmt;

use actix_web::http::StatusCode;
use seqtide::documents::{Document, Extras, Which, read_document, read_leaves, read_leaves_under};
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Edit, Outcome, Snapshot, StorageError, Write};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::update::{replicated_path, scan, write_written};
use super::{Answer, Call, document, local, server};
use crate::error::ApiError;
use crate::state::State;
use crate::{reply, request};

#[derive(Deserialize)]
struct BulkDocs<'a> {
    #[serde(borrow)]
    docs: Option<&'a RawValue>,
    #[serde(borrow)]
    new_edits: Option<&'a RawValue>,
}

/// A document of a bulk request.
struct Item {
    id: String,
    /// The revision as given, for refusals of replicated ones.
    rev: Option<RevId>,
    /// Why it is refused by itself, before anything is written.
    refused: Option<ApiError>,
}

struct Bulk {
    items: Vec<Item>,
    /// What is written: one a document that is not refused, in order.
    writes: Vec<Write>,
    replicated: bool,
}

pub async fn bulk_docs(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (_, _, state, body) = call.body().await?;
    let shared = state.clone();
    let Bulk { items, writes, replicated } = request::parse(body, move |body| Bulk::parse(body, &shared)).await?;
    let written = state.write(&database, writes).await?;
    let mut answer = reply::json(StatusCode::CREATED);
    answer.insert_header(reply::seq_header(database.seq_format().await?, written.seq));
    Ok(answer.body(results_json(&items, &written.outcomes, replicated)))
}

impl Bulk {
    fn parse(body: &[u8], state: &State) -> Result<Bulk, ApiError> {
        let request: BulkDocs<'_> = object(body)?;
        let docs = request.docs.ok_or_else(|| ApiError::bad_request("POST body must include `docs` parameter."))?;
        let not_array = || ApiError::bad_request("`docs` parameter must be an array.");
        let docs = elements(docs, state.config.limits.bulk_docs_max, not_array)?;
        let replicated = match request.new_edits.map(RawValue::get) {
            None | Some("true") => false,
            Some("false") => true,
            Some(_) => return Err(ApiError::bad_request("`new_edits` parameter must be a boolean.")),
        };
        let mut bulk =
            Bulk { items: Vec::with_capacity(docs.len()), writes: Vec::with_capacity(docs.len()), replicated };
        for doc in docs {
            bulk.add(doc.get().as_bytes(), state)?;
        }
        Ok(bulk)
    }

    /// Adds a document.
    ///
    /// # Errors
    /// What makes the whole request invalid.
    fn add(&mut self, text: &[u8], state: &State) -> Result<(), ApiError> {
        let mut document = scan(text, state)?;
        let id = document.id.take().filter(|id| !id.is_empty()).unwrap_or_else(server::new_id);
        if let Some(local_id) = LocalId::parse(&id) {
            self.writes.push(Write::Local(local::edit(local_id?, document, !self.replicated)?));
            self.items.push(Item { id, rev: None, refused: None });
            return Ok(());
        }
        let doc_id = DocId::parse(&id)?;
        let path = if self.replicated { Some(replicated_path(&document)?) } else { None };
        let rev = path.as_ref().map(|path| path.rev());
        let refused = document.attachments.is_some().then(|| ApiError::not_implemented("attachments"));
        if refused.is_none() {
            self.writes.push(Write::Edit(match path {
                Some(path) => Edit::replicated(doc_id, path, document.deleted, document.body),
                None => Edit::interactive(doc_id, document.rev, document.deleted, document.body),
            }));
        }
        self.items.push(Item { id, rev, refused });
        Ok(())
    }
}

/// Reads a JSON object that borrows from the body.
fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| ApiError::not_json())?;
    if !text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() {
        return Err(ApiError::bad_request("Request body must be a JSON object"));
    }
    serde_json::from_str(text).map_err(|_| ApiError::not_json())
}

/// The elements of a list, which are at most so many.
fn elements(list: &RawValue, most: usize, no_list: impl FnOnce() -> ApiError) -> Result<Vec<&RawValue>, ApiError> {
    let mut reader = serde_json::Deserializer::from_str(list.get());
    let elements = reader.deserialize_seq(Elements { most }).map_err(|_| no_list())?;
    if elements.len() > most {
        return Err(ApiError::too_large(format!("`docs` has too many documents: at most {most} are accepted")));
    }
    Ok(elements)
}

/// Collects the elements of a list up to one more than `most`; what follows takes no memory.
struct Elements {
    most: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            if elements.len() <= self.most {
                elements.push(element);
            }
        }
        Ok(elements)
    }
}

/// One result an item, in order; of replicated items only those that were refused.
fn results_json(items: &[Item], outcomes: &[Outcome], replicated: bool) -> Vec<u8> {
    let mut out = vec![b'['];
    let mut outcomes = outcomes.iter();
    for item in items {
        let start = out.len();
        if start > 1 {
            out.push(b',');
        }
        let refused = match &item.refused {
            Some(refused) => Some(refused.clone()),
            None => write_outcome(&mut out, item, outcomes.next(), replicated),
        };
        if let Some(refused) = refused {
            write_refusal(&mut out, item, &refused);
        } else if replicated {
            out.truncate(start);
        }
    }
    out.extend_from_slice(b"]\n");
    out
}

/// Writes what became of an item, or gives why it was refused.
fn write_outcome(out: &mut Vec<u8>, item: &Item, outcome: Option<&Outcome>, replicated: bool) -> Option<ApiError> {
    match outcome {
        Some(Outcome::Written { rev, .. } | Outcome::Known { rev }) if !replicated => {
            write_written(out, &item.id, &rev.to_string());
        }
        Some(Outcome::Local { revision }) if !replicated => write_written(out, &item.id, &format!("0-{revision}")),
        Some(Outcome::Written { .. } | Outcome::Known { .. } | Outcome::Local { .. } | Outcome::Done) => {}
        Some(Outcome::Missing) => return Some(ApiError::not_found("missing")),
        Some(Outcome::Conflict) | None => return Some(ApiError::conflict()),
    }
    None
}

fn write_refusal(out: &mut Vec<u8>, item: &Item, refused: &ApiError) {
    out.extend_from_slice(b"{\"id\":");
    write_json_string(out, &item.id);
    if let Some(rev) = &item.rev {
        out.extend_from_slice(b",\"rev\":");
        write_json_string(out, &rev.to_string());
    }
    out.push(b',');
    refused.write_members(out);
    out.push(b'}');
}

#[derive(Deserialize)]
struct BulkGet<'a> {
    #[serde(borrow)]
    docs: Option<&'a RawValue>,
}

/// A revision asked for by `_bulk_get`.
#[derive(Deserialize)]
struct Wanted {
    id: Option<serde_json::Value>,
    rev: Option<serde_json::Value>,
}

pub async fn bulk_get(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    for forbidden in ["open_revs", "new_edits", "w", "rev", "atts_since"] {
        if call.query.get(forbidden).is_some() {
            return Err(ApiError::bad_request(format!("\"{forbidden}\" query parameter is not acceptable")));
        }
    }
    let (_, query, state, body) = call.body().await?;
    let docs_max = state.config.limits.bulk_docs_max;
    let wanted = request::parse(body, move |body| wanted(body, docs_max)).await?;
    let (extras, latest) = (document::extras(&query), query.flag("latest"));
    let mut out = b"{\"results\":[".to_vec();
    // Page by page, so that no snapshot is held for long.
    for (page, wanted) in wanted.chunks(100).enumerate() {
        let wanted = wanted.to_vec();
        let read = move |snapshot: &Snapshot<'_>| {
            let mut out = Vec::new();
            for (at, wanted) in wanted.iter().enumerate() {
                if page > 0 || at > 0 {
                    out.push(b',');
                }
                write_bulk_get_item(&mut out, snapshot, wanted, latest, extras)?;
            }
            Ok(out)
        };
        out.extend_from_slice(&database.read(read).await?);
    }
    out.extend_from_slice(b"]}");
    Ok(reply::json_body(StatusCode::OK, out))
}

/// The JSON text of each item of `docs`.
fn wanted(body: &[u8], most: usize) -> Result<Vec<String>, ApiError> {
    let missing = || ApiError::bad_request("Missing JSON list of 'docs'.");
    let request: BulkGet<'_> = object(body)?;
    let docs = elements(request.docs.ok_or_else(missing)?, most, missing)?;
    Ok(docs.iter().map(|doc| doc.get().to_owned()).collect())
}

/// Source: CouchDB `chttpd_db:bulk_get_ret_json`.
fn write_bulk_get_item(
    out: &mut Vec<u8>,
    snapshot: &Snapshot<'_>,
    wanted: &str,
    latest: bool,
    extras: Extras,
) -> Result<(), StorageError> {
    let refuse = |out: &mut Vec<u8>, id: &serde_json::Value, rev: &serde_json::Value, why: ApiError| {
        out.extend_from_slice(format!("{{\"id\":{id},\"docs\":[{{\"error\":{{\"id\":{id},\"rev\":{rev},").as_bytes());
        why.write_members(out);
        out.extend_from_slice(b"}}]}");
    };
    let null = serde_json::Value::Null;
    let Ok(Wanted { id, rev }) = serde_json::from_str(wanted) else {
        refuse(out, &null, &null, ApiError::bad_request("document must be a JSON object"));
        return Ok(());
    };
    let (Some(id_given), rev_given) = (id, rev.unwrap_or(null.clone())) else {
        refuse(out, &null, &null, ApiError::bad_request("document id missed"));
        return Ok(());
    };
    let id = match id_given.as_str().map(DocId::parse) {
        Some(Ok(id)) => id,
        _ if id_given.as_str().is_some_and(|id| LocalId::parse(id).is_some()) => {
            refuse(out, &id_given, &rev_given, ApiError::not_found("missing"));
            return Ok(());
        }
        Some(Err(error)) => {
            refuse(out, &id_given, &rev_given, error.into());
            return Ok(());
        }
        None => {
            let why = ApiError::new(StatusCode::BAD_REQUEST, "illegal_docid", "Document id must be a string");
            refuse(out, &id_given, &rev_given, why);
            return Ok(());
        }
    };
    let found = match (rev_given.as_str().map(RevId::parse), rev_given.is_null()) {
        (Some(Ok(rev)), _) if latest => read_leaves_under(snapshot, &id, &rev, extras)?,
        (Some(Ok(rev)), _) => {
            read_document(snapshot, &id, &Which::Rev(rev), extras)?.into_iter().collect::<Vec<Document>>()
        }
        (None, true) => read_leaves(snapshot, &id, extras)?,
        _ => {
            refuse(out, &id_given, &rev_given, ApiError::bad_request("Invalid rev format"));
            return Ok(());
        }
    };
    if found.is_empty() {
        let rev = if rev_given.is_null() { serde_json::Value::from("undefined") } else { rev_given };
        refuse(out, &id_given, &rev, ApiError::not_found("missing"));
        return Ok(());
    }
    out.extend_from_slice(format!("{{\"id\":{id_given},\"docs\":[").as_bytes());
    for (at, document) in found.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b",{\"ok\":" } else { b"{\"ok\":" });
        document.write_json(out);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    Ok(())
}
