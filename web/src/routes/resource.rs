//! What a path names. It is taken apart here, because an escaped slash belongs to a name.

use std::borrow::Cow;

use actix_web::http::{Method, StatusCode};

use super::{listing, not_built, subscriptions};
use crate::error::ApiError;
use crate::query::decode;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Root,
    Server(String),
    /// A file of the dashboard, by its path below it.
    Dashboard(String),
    /// An open feed, by its id.
    Feed(String),
    /// A connection with many subscriptions, by its name.
    Connection(String),
    Database(String),
    Endpoint {
        db: String,
        name: String,
    },
    Document {
        db: String,
        id: String,
    },
    /// A design document with its slash escaped: to be read elsewhere.
    DesignEscaped {
        db: String,
        id: String,
    },
    Attachment {
        db: String,
        id: String,
    },
}

/// Endpoints of a database that write to it, by whatever method does not read.
const WRITES: [&str; 4] = ["_bulk_docs", "_feed_index", "_purge", "_revs_limit"];

impl Resource {
    /// Takes a path apart. Slashes at its end, and several for one, do not matter.
    ///
    /// Source: CouchDB `chttpd:handle_request_int`, which splits it so.
    ///
    /// # Errors
    /// 400 `illegal_docid` for a name that is not UTF-8.
    pub fn of(path: &str) -> Result<Resource, ApiError> {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let segments = segments.map(decode_segment).collect::<Result<Vec<_>, _>>()?;
        let segments: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
        let owned = |text: &str| text.to_owned();
        Ok(match segments[..] {
            [] => Resource::Root,
            [name, ..] if not_built::is_of_server(name) => Resource::Server(owned(name)),
            ["_dashboard", ..] => Resource::Dashboard(segments[1..].join("/")),
            ["metrics"] => Resource::Server(owned("metrics")),
            [name] if name.starts_with('_') && !is_system_database(name) => Resource::Server(owned(name)),
            ["_feed", "many"] => Resource::Server(owned(subscriptions::PATH)),
            ["_feed", connection] => Resource::Connection(owned(connection)),
            [db] => Resource::Database(owned(db)),
            ["_feeds", id] => Resource::Feed(owned(id)),
            [db, id] if id.starts_with("_design/") => Resource::DesignEscaped { db: owned(db), id: owned(id) },
            [db, name] if name.starts_with('_') && !name.contains('/') => {
                Resource::Endpoint { db: owned(db), name: owned(name) }
            }
            [db, id] => Resource::Document { db: owned(db), id: owned(id) },
            [db, kind @ ("_design" | "_local"), name] => {
                Resource::Document { db: owned(db), id: format!("{kind}/{name}") }
            }
            [db, "_design", _, endpoint, ..] if not_built::is_of_design(endpoint) => {
                Resource::Endpoint { db: owned(db), name: owned(endpoint) }
            }
            // Whatever else it is called; source for design documents: CouchDB `chttpd_db:bad_action_req`.
            [db, kind @ ("_design" | "_local"), name, ..] => {
                Resource::Attachment { db: owned(db), id: format!("{kind}/{name}") }
            }
            [db, listing, "queries"] if listing::is_listing(listing) => {
                Resource::Endpoint { db: owned(db), name: format!("{listing}/queries") }
            }
            [db, "_feed", "many"] => Resource::Endpoint { db: owned(db), name: owned(subscriptions::PATH) },
            [db, name, ..] if not_built::is_of_database(name) => {
                Resource::Endpoint { db: owned(db), name: owned(name) }
            }
            [db, "_compact", _] => Resource::Endpoint { db: owned(db), name: owned("_compact/indexes") },
            [db, id, ..] => Resource::Attachment { db: owned(db), id: owned(id) },
        })
    }

    /// Whether a WebSocket may be opened there.
    pub fn has_websocket(&self) -> bool {
        match self {
            Resource::Server(name) => name == "_feed" || name == subscriptions::PATH,
            Resource::Endpoint { name, .. } => name == "_feed",
            _ => false,
        }
    }

    /// The database a request writes to, if it writes to one that is there.
    pub fn written_database(&self, method: &Method) -> Option<&str> {
        match self {
            _ if matches!(*method, Method::GET | Method::HEAD) => None,
            Resource::Database(db) => (*method == Method::POST).then_some(db),
            Resource::Endpoint { db, name } => WRITES.contains(&name.as_str()).then_some(db),
            Resource::Document { db, .. } | Resource::DesignEscaped { db, .. } | Resource::Attachment { db, .. } => {
                Some(db)
            }
            Resource::Root
            | Resource::Server(_)
            | Resource::Dashboard(_)
            | Resource::Feed(_)
            | Resource::Connection(_) => None,
        }
    }
}

fn decode_segment(segment: &str) -> Result<Cow<'_, str>, ApiError> {
    let reason = "Document id must be valid UTF-8";
    decode(segment).map_err(|_| ApiError::new(StatusCode::BAD_REQUEST, "illegal_docid", reason))
}

fn is_system_database(name: &str) -> bool {
    matches!(name, "_users" | "_replicator" | "_global_changes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources() {
        let document = |id: &str| Resource::Document { db: "db".into(), id: id.into() };
        for (path, expected) in [
            ("/", Resource::Root),
            ("/_up", Resource::Server("_up".into())),
            ("/metrics", Resource::Server("metrics".into())),
            ("/_dashboard/", Resource::Dashboard(String::new())),
            ("/_dashboard/js/app.js", Resource::Dashboard("js/app.js".into())),
            ("/_users", Resource::Database("_users".into())),
            ("/_feed/many", Resource::Server("_feed/many".into())),
            ("/_feed/7", Resource::Connection("7".into())),
            ("/_feeds", Resource::Server("_feeds".into())),
            ("/_feeds/7", Resource::Feed("7".into())),
            ("/db", Resource::Database("db".into())),
            ("/db/", Resource::Database("db".into())),
            ("//db//", Resource::Database("db".into())),
            ("/db//a", document("a")),
            ("/db//_design//x", document("_design/x")),
            ("/db/_partition/p/_all_docs", Resource::Endpoint { db: "db".into(), name: "_partition".into() }),
            ("/db/_compact/d", Resource::Endpoint { db: "db".into(), name: "_compact/indexes".into() }),
            ("/a%2Fb", Resource::Database("a/b".into())),
            ("/db/_changes", Resource::Endpoint { db: "db".into(), name: "_changes".into() }),
            ("/db/a", document("a")),
            ("/db/_all_docs/queries", Resource::Endpoint { db: "db".into(), name: "_all_docs/queries".into() }),
            ("/db/a%2Fb%20c+d", document("a/b c d")),
            ("/db/_design/x", document("_design/x")),
            ("/db/_design%2Fx", Resource::DesignEscaped { db: "db".into(), id: "_design/x".into() }),
            ("/db/_local/x", document("_local/x")),
            ("/db/_local%2Fx", document("_local/x")),
            ("/db/a/b", Resource::Attachment { db: "db".into(), id: "a".into() }),
            ("/db/_design/x/_view/y", Resource::Endpoint { db: "db".into(), name: "_view".into() }),
            ("/db/_design/x/_purge", Resource::Attachment { db: "db".into(), id: "_design/x".into() }),
            ("/db/_design/x/_feed", Resource::Attachment { db: "db".into(), id: "_design/x".into() }),
            ("/_node/_local/_config", Resource::Server("_node".into())),
            ("/_session", Resource::Server("_session".into())),
            ("/db/_design/x/y/z", Resource::Attachment { db: "db".into(), id: "_design/x".into() }),
        ] {
            assert_eq!(Resource::of(path).unwrap(), expected, "{path}");
        }
        assert!(Resource::of("/db/%ff").is_err());
    }
}
