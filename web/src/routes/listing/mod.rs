//! Documents in the order of their ids: `_all_docs`, `_design_docs`, `_local_docs`, and several such listings in one
//! answer, `/queries`.

mod keys;
mod namespace;
pub mod options;
mod range;
mod row;

use actix_web::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::future::Either;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use seqtide::storage::Snapshot;
use seqtide::{Database, Error};

use self::namespace::Namespace;
use self::options::Options;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::pages::{self, paged};
use crate::{reply, request};

/// The end of one listing.
const END: &str = "\r\n]}";

/// Whether an endpoint of a database is a listing, or several.
pub fn is_listing(endpoint: &str) -> bool {
    Namespace::of(endpoint.strip_suffix("/queries").unwrap_or(endpoint)).is_some()
}

/// Answers a listing, or several.
pub async fn answer(call: Call, db: &str, endpoint: &str) -> Answer {
    let (name, several) = endpoint.strip_suffix("/queries").map_or((endpoint, false), |name| (name, true));
    let namespace = Namespace::of(name).ok_or_else(|| ApiError::not_found("missing"))?;
    if several {
        queries(call.only("POST")?, db, namespace).await
    } else {
        one(call.only("GET,HEAD,POST")?, db, namespace).await
    }
}

async fn one(mut call: Call, db: &str, namespace: Namespace) -> Answer {
    let database = call.state.database(db)?;
    let post = call.req.method() == Method::POST;
    if post {
        request::require_json(&call.req)?;
    }
    let body = call.body().await?;
    let Call { req, query, state, .. } = call;
    let keys_max = state.config.limits.bulk_docs_max;
    let body = if post { body } else { Bytes::new() };
    let options = request::parse(body, move |body| Options::parse(&query, body, keys_max)).await?;
    let database = database.pinned().await?;
    let head = head(&database, namespace, &options).await?;
    let rows = rows(database, namespace, options, head).chain(text("\n"));
    pages::streaming(&req, reply::json(StatusCode::OK), rows).await
}

/// Source: CouchDB `chttpd_db:multi_all_docs_view`.
async fn queries(mut call: Call, db: &str, namespace: Namespace) -> Answer {
    let database = call.state.database(db)?;
    let body = call.body().await?;
    let Call { req, query, state, .. } = call;
    let keys_max = state.config.limits.bulk_docs_max;
    let queries = request::parse(body, move |body| Options::parse_queries(&query, body, keys_max)).await?;
    let database = database.pinned().await?;
    let end = if queries.is_empty() { "{\"results\":[\r\n]}\n" } else { "\r\n]}\n" };
    let listings = stream::iter(queries.into_iter().enumerate()).then(move |(at, options)| {
        let database = database.clone();
        async move {
            let mut start = if at == 0 { b"{\"results\":[\r\n".to_vec() } else { b",\r\n".to_vec() };
            start.extend(head(&database, namespace, &options).await?);
            Ok::<_, Error>(rows(database, namespace, options, start))
        }
    });
    let body = listings.try_flatten().chain(text(end));
    pages::streaming(&req, reply::json(StatusCode::OK), body).await
}

fn text(text: &'static str) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::iter([Ok(Bytes::from_static(text.as_bytes()))])
}

/// `{"total_rows":…,"offset":…,"rows":[` and the line end before the first row.
async fn head(database: &Database, namespace: Namespace, options: &Options) -> Result<Vec<u8>, Error> {
    let by_keys = options.keys.is_some();
    let (range, descending, skip) = (options.range.clone(), options.descending, options.skip);
    let read = move |snapshot: &Snapshot<'_>| {
        let total = namespace.total(snapshot)?;
        let before = if by_keys { None } else { namespace.docs_before(snapshot, &range, descending)? };
        let offset = before.map(|before| before.saturating_add(skip).min(total.unwrap_or(u64::MAX)));
        Ok((total, offset, snapshot.counters()?.update_seq))
    };
    let (total, offset, update_seq) = database.read(read).await?;
    let number = |number: Option<u64>| number.map_or("null".to_owned(), |number| number.to_string());
    let mut head = format!("{{\"total_rows\":{},\"offset\":{},", number(total), number(offset));
    if options.update_seq {
        // CouchDB names none where the rows come from many places, or are in no feed.
        let known = !by_keys && namespace != Namespace::Local;
        let format = database.seq_format().await?;
        let seq = if known { format.json(update_seq).to_string() } else { "null".to_owned() };
        head.push_str(&format!("\"update_seq\":{seq},"));
    }
    head.push_str("\"rows\":[\r\n");
    Ok(head.into_bytes())
}

/// The rows of a listing behind its head, and its end.
fn rows(
    database: Database,
    namespace: Namespace,
    mut options: Options,
    head: Vec<u8>,
) -> impl Stream<Item = Result<Bytes, Error>> {
    match options.keys.take() {
        Some(keys) => Either::Left(keys::rows(database, namespace, keys, &options, head)),
        None => Either::Right(paged(range::Listing::new(database, namespace, options, head))),
    }
}
