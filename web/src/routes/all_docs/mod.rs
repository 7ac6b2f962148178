//! Live documents in the order of their ids: `_all_docs`.

mod options;

use std::ops::Bound;

use actix_web::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::{Stream, stream};
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::{Change, Detail, Direction, LeafRev, PageLimits, ReadDocs, Snapshot, StorageError};
use seqtide::{Database, Error, RowShape, write_row_document};

use self::options::Options;
use super::{Answer, Call};
use crate::error::ApiError;
use crate::{reply, request};

/// To give an `offset`, at most this many documents are counted; beyond it is `null`.
const OFFSET_COUNT_MAX: u64 = 100_000;

pub async fn all_docs(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    let post = call.req.method() == Method::POST;
    if post {
        request::require_json(&call.req)?;
    }
    let (req, query, _, body) = call.body().await?;
    let options = Options::parse(&query, if post { &body } else { b"" })?;
    let head = head(&database, &options).await?;
    let mut answer = reply::json(StatusCode::OK);
    match &options.keys {
        Some(keys) => {
            let rows = rows_of_keys(&database, keys.clone(), &options).await?;
            Ok(answer.body([head, rows, b"\r\n]}\n".to_vec()].concat()))
        }
        None => Ok(reply::streaming(&req, answer, rows_of_range(database, options, head))),
    }
}

/// `{"total_rows":…,"offset":…,"rows":[` and the line end before the first row.
async fn head(database: &Database, options: &Options) -> Result<Vec<u8>, ApiError> {
    let (from, to, descending) = (options.from.clone(), options.to.clone(), options.descending);
    let (from_an_end, by_keys, skip) = (options.starts_at_an_end(), options.keys.is_some(), options.skip);
    let read = move |snapshot: &Snapshot<'_>| {
        let counters = snapshot.counters()?;
        let before = match (by_keys, from_an_end) {
            (true, _) => None,
            (false, true) => Some(0),
            (false, false) => docs_before(snapshot, &from, &to, descending)?,
        };
        Ok((counters, before.map(|before| (before + skip).min(counters.docs))))
    };
    let (counters, offset) = database.read(read).await?;
    let offset = offset.map_or("null".to_owned(), |offset| offset.to_string());
    let mut head = format!("{{\"total_rows\":{},\"offset\":{offset},", counters.docs);
    if options.update_seq {
        let format = database.seq_format().await?;
        head.push_str(&format!("\"update_seq\":{},", format.json(counters.update_seq)));
    }
    head.push_str("\"rows\":[\r\n");
    Ok(head.into_bytes())
}

/// How many live documents the listing passes over before its start.
fn docs_before(
    snapshot: &Snapshot<'_>,
    from: &Bound<String>,
    to: &Bound<String>,
    descending: bool,
) -> Result<Option<u64>, StorageError> {
    let outside = |bound: &Bound<String>| match bound {
        Bound::Included(id) => Bound::Excluded(id.clone()),
        Bound::Excluded(id) => Bound::Included(id.clone()),
        Bound::Unbounded => Bound::Unbounded,
    };
    if descending {
        snapshot.count_docs(&outside(to), &Bound::Unbounded, OFFSET_COUNT_MAX)
    } else {
        snapshot.count_docs(&Bound::Unbounded, &outside(from), OFFSET_COUNT_MAX)
    }
}

/// Where the next page of a listing starts, and what was sent of it.
struct Listing {
    database: Database,
    options: Options,
    first: Option<Vec<u8>>,
    rows: u64,
    done: bool,
}

fn rows_of_range(database: Database, options: Options, head: Vec<u8>) -> impl Stream<Item = Result<Bytes, Error>> {
    let listing = Listing { database, options, first: Some(head), rows: 0, done: false };
    stream::unfold(Some(listing), |listing| async move {
        let mut listing = listing?;
        match listing.next_page().await {
            Ok(page) => Some((Ok(Bytes::from(page)), (!listing.done).then_some(listing))),
            // The chunked body ends without its last chunk: the client knows that it is incomplete.
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl Listing {
    async fn next_page(&mut self) -> Result<Vec<u8>, Error> {
        let mut out = self.first.take().unwrap_or_default();
        let wanted = self.options.limit.saturating_add(self.options.skip);
        let rows_max = usize::try_from(wanted).unwrap_or(usize::MAX).min(1000);
        let read = ReadDocs {
            from: self.options.from.clone(),
            to: self.options.to.clone(),
            direction: if self.options.descending { Direction::Backward } else { Direction::Forward },
            detail: self.options.detail(),
            limits: PageLimits { rows_max, ..PageLimits::default() },
        };
        let page = if wanted == 0 { None } else { Some(self.database.read(move |s| s.docs(&read)).await?) };
        let mut next_after = None;
        for doc in page.iter().flat_map(|page| &page.docs) {
            if self.options.skip > 0 {
                self.options.skip -= 1;
            } else if self.options.limit > 0 {
                self.options.limit -= 1;
                self.separate(&mut out);
                write_doc_row(&mut out, doc, self.options.shape);
            }
        }
        if let Some(page) = page {
            next_after = page.next_after.filter(|_| self.options.limit > 0);
        }
        match next_after {
            Some(id) if self.options.descending => self.options.to = Bound::Excluded(id),
            Some(id) => self.options.from = Bound::Excluded(id),
            None => {
                self.done = true;
                out.extend_from_slice(b"\r\n]}\n");
            }
        }
        Ok(out)
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        if self.rows > 0 {
            out.extend_from_slice(b",\r\n");
        }
        self.rows += 1;
    }
}

async fn rows_of_keys(database: &Database, keys: Vec<String>, options: &Options) -> Result<Vec<u8>, ApiError> {
    let (shape, detail) = (options.shape, options.detail());
    let skip = usize::try_from(options.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let mut keys: Vec<String> = keys.into_iter().skip(skip).take(limit).collect();
    if options.descending {
        keys.reverse();
    }
    let mut out = Vec::new();
    for keys in keys.chunks(200) {
        let keys = keys.to_vec();
        let first = out.is_empty();
        let read = move |snapshot: &Snapshot<'_>| {
            let mut out = Vec::new();
            for (at, key) in keys.iter().enumerate() {
                if !first || at > 0 {
                    out.extend_from_slice(b",\r\n");
                }
                write_key_row(&mut out, snapshot, key, shape, detail)?;
            }
            Ok(out)
        };
        out.extend_from_slice(&database.read(read).await?);
    }
    Ok(out)
}

fn write_key_row(
    out: &mut Vec<u8>,
    snapshot: &Snapshot<'_>,
    key: &str,
    shape: RowShape,
    detail: Detail,
) -> Result<(), StorageError> {
    let doc = match DocId::parse(key) {
        Ok(id) => snapshot.document_change(&id, detail)?,
        Err(_) => None,
    };
    match doc {
        Some(doc) => write_doc_row(out, &doc, shape),
        None => {
            out.extend_from_slice(b"{\"key\":");
            write_json_string(out, key);
            out.extend_from_slice(b",\"error\":\"not_found\"}");
        }
    }
    Ok(())
}

fn write_doc_row(out: &mut Vec<u8>, doc: &Change, shape: RowShape) {
    let LeafRev { rev, deleted } = doc.winner();
    out.extend_from_slice(b"{\"id\":");
    write_json_string(out, doc.id.as_str());
    out.extend_from_slice(b",\"key\":");
    write_json_string(out, doc.id.as_str());
    out.extend_from_slice(format!(",\"value\":{{\"rev\":\"{rev}\"").as_bytes());
    out.extend_from_slice(if *deleted { b",\"deleted\":true}" } else { b"}" });
    if shape.doc && *deleted {
        out.extend_from_slice(b",\"doc\":null");
    } else if shape.doc {
        out.extend_from_slice(b",\"doc\":");
        write_row_document(out, doc, shape);
    }
    out.push(b'}');
}
