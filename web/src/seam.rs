//! What a request says, without a server: how fuzzing reaches the parsers.

use std::time::Duration;

use actix_web::ResponseError;
use actix_web::test::TestRequest;
use seqtide::{Database, FeedKind};

use crate::error::ApiError;
use crate::feed_options::couchdb::{Asked, AskedFilter};
use crate::feed_options::native::{Followed as _, Options};
use crate::query::Query;
use crate::routes;

/// An answer that refuses a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status.
    pub status: u16,
    /// The reason.
    pub reason: String,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Refused {
        Refused { status: error.status_code().as_u16(), reason: error.reason().to_owned() }
    }
}

/// Takes a path apart.
///
/// # Errors
/// What the client would be answered.
pub fn path(path: &str) -> Result<(), Refused> {
    routes::Resource::of(path)?;
    Ok(())
}

/// The keys and values of a query, in order.
///
/// # Errors
/// What the client would be answered.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, Refused> {
    Ok(Query::parse(query)?.into_pairs())
}

/// Reads a query and a body as each endpoint that has options does, by its name.
pub fn options(query: &str, body: &[u8]) -> [(&'static str, Result<(), Refused>); 4] {
    let longest = Duration::from_secs(60);
    let query = Query::parse(query);
    let read = |parse: &dyn Fn(&Query) -> Result<(), ApiError>| match &query {
        Ok(query) => parse(query).map_err(Refused::from),
        // That the query does not decode is `pairs`' finding.
        Err(_) => Ok(()),
    };
    let changes = |body| {
        move |query: &Query| {
            let request = TestRequest::default().to_http_request();
            let filter = AskedFilter::parse(query, body, usize::MAX)?;
            Asked::parse(&request, query, filter, longest).map(drop)
        }
    };
    let feed = |query: &Query| {
        let known = Database::KNOWN;
        let mut options = Options::of_query(query, known)?;
        options.take_body(body, known)?;
        Database::parse(&options, FeedKind::Lines, longest).map(drop)
    };
    let all_docs = |query: &Query| routes::listing::options::Options::parse(query, body, usize::MAX).map(drop);
    [
        ("_changes", read(&changes(None))),
        ("_changes by POST", read(&changes(Some(body)))),
        ("_feed", read(&feed)),
        ("_all_docs", read(&all_docs)),
    ]
}
