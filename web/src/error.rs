//! The one place where what went wrong becomes a status, CouchDB's word for it, and a reason.
//!
//! Source: CouchDB `chttpd:error_info`. Where CouchDB answers a client's mistake with a 500, this answers 400.

use std::borrow::Cow;
use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use seqtide::documents::NotFound;
use seqtide::functions::protocol::shortened;
use seqtide::functions::{DesignError, NoDesign, NoFunction};
use seqtide::storage::json::{DocumentError, write_json_string};
use seqtide::storage::model::db_name::DbNameError;
use seqtide::storage::model::doc_id::DocIdError;
use seqtide::storage::model::rev::RevError;
use seqtide::storage::{Refusal, RefusalKind, StorageError};
use seqtide::{FunctionError, OLDEST_SEQ, SelectorError};

use crate::reply;

/// An answer that is an error: `{"error":…,"reason":…}`.
#[derive(Debug, Clone)]
pub struct ApiError(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    status: StatusCode,
    error: Cow<'static, str>,
    reason: Cow<'static, str>,
    header: Option<(header::HeaderName, String)>,
    /// Further members, as JSON with a comma in front.
    more: String,
    /// It is refused for a bound that others need not have.
    is_of_own_bound: bool,
}

impl ApiError {
    /// An answer with this status, word and reason.
    pub fn new(
        status: StatusCode,
        error: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> ApiError {
        let (error, reason, more) = (error.into(), reason.into(), String::new());
        ApiError(Box::new(Parts { status, error, reason, header: None, more, is_of_own_bound: false }))
    }

    /// Whether what is refused may be a document elsewhere: CouchDB has another such bound, or none.
    pub fn is_of_own_bound(&self) -> bool {
        self.0.is_of_own_bound
    }

    /// The same, where that is so.
    pub fn for_own_bound(mut self, is_of_own_bound: bool) -> ApiError {
        self.0.is_of_own_bound = is_of_own_bound;
        self
    }

    /// Why a document is refused alone, whatever its database has, as it is remembered.
    pub fn into_refusal(self) -> Refusal {
        let Parts { error, reason, .. } = *self.0;
        // It may name an id, however long that is.
        Refusal { kind: RefusalKind::Unfit(error.into_owned()), reason: shortened(&reason) }
    }

    /// 400 `bad_request`.
    pub fn bad_request(reason: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// 400: what came is not JSON.
    pub fn not_json() -> ApiError {
        DocumentError::NotJson.into()
    }

    /// 400: a document's id is no string.
    pub fn id_not_string() -> ApiError {
        DocumentError::IdNotString.into()
    }

    /// The same, said of one of several things in a request.
    pub fn said_of(mut self, what: &str) -> ApiError {
        self.0.reason = format!("{what}: {}", self.0.reason).into();
        self
    }

    /// The same, but with this reason where what came is not JSON at all.
    pub fn if_not_json(mut self, reason: &str) -> ApiError {
        if self.0.reason == ApiError::not_json().0.reason {
            self.0.reason = reason.to_owned().into();
        }
        self
    }

    /// What CouchDB says where a design document or a function in it is not there: nothing of which.
    ///
    /// Source: CouchDB `couch_changes:configure_filter`.
    pub fn of_function(error: seqtide::Error) -> ApiError {
        match error {
            seqtide::Error::Function(FunctionError::NoDesign(NoDesign { why, .. })) => why.into(),
            seqtide::Error::Function(FunctionError::NoFunction(NoFunction { step, .. })) => {
                ApiError::not_found(format!("missing json key: {step}"))
            }
            other => other.into(),
        }
    }

    /// 404 with a reason.
    pub fn not_found(reason: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", reason)
    }

    /// 404: no such database.
    pub fn no_database() -> ApiError {
        seqtide::Error::NoDatabase.into()
    }

    /// 405 with the methods that are allowed.
    pub fn method_not_allowed(allowed: &'static str) -> ApiError {
        let reason = format!("Only {allowed} allowed");
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason)
            .with_header(header::ALLOW, allowed.to_owned())
    }

    /// 409: the edit goes on from a revision that is not there to go on from.
    pub fn conflict() -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", "Document update conflict.")
    }

    /// 413 `document_too_large`.
    pub fn document_too_large(reason: String) -> ApiError {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "document_too_large", reason)
    }

    /// 413 `too_large`.
    pub fn too_large(reason: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// 409: a repetition asks for another number of writes than are remembered of its request.
    pub fn other_writes() -> ApiError {
        let reason = "The request was carried out before by a version that did not remember what became of each of its \
                      documents: look at them, and take another key.";
        ApiError::new(StatusCode::CONFLICT, "idempotency_outcome_unknown", reason)
    }

    /// 501: part of CouchDB's interface that is not built yet.
    pub fn not_implemented(what: &'static str) -> ApiError {
        ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", format!("{what} are not supported yet"))
    }

    /// 503: to be tried again after so many seconds.
    pub fn unavailable(reason: String, seconds: &str) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service unavailable", reason)
            .with_header(header::RETRY_AFTER, seconds.to_owned())
    }

    /// The same with another status.
    pub fn with_status(mut self, status: StatusCode) -> ApiError {
        self.0.status = status;
        self
    }

    /// The same with a header.
    pub fn with_header(mut self, name: header::HeaderName, value: String) -> ApiError {
        self.0.header = Some((name, value));
        self
    }

    /// The same with further members: JSON with a comma in front.
    pub fn with_members(mut self, more: String) -> ApiError {
        self.0.more = more;
        self
    }

    /// Whether the same may be granted later.
    pub fn is_passing(&self) -> bool {
        self.0.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// The reason, for people.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// `"error":…,"reason":…` without braces, as text.
    pub fn members(&self) -> String {
        let mut out = Vec::new();
        self.write_members(&mut out);
        // What is written is UTF-8.
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends `"error":…,"reason":…` without braces.
    pub fn write_members(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"error\":");
        write_json_string(out, &self.0.error);
        out.extend_from_slice(b",\"reason\":");
        write_json_string(out, &self.0.reason);
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.error, self.0.reason)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut body = vec![b'{'];
        self.write_members(&mut body);
        body.extend_from_slice(self.0.more.as_bytes());
        body.extend_from_slice(b"}\n");
        let mut answer = reply::json(self.0.status);
        if let Some((name, value)) = &self.0.header {
            answer.insert_header((name.clone(), value.as_str()));
        }
        answer.body(body)
    }
}

impl From<seqtide::Error> for ApiError {
    fn from(error: seqtide::Error) -> ApiError {
        use seqtide::Error;
        let reason = error.to_string();
        let try_again = |seconds: &str| ApiError::unavailable(reason.clone(), seconds);
        match error {
            Error::BadName(error) => error.into(),
            Error::NoDatabase => ApiError::not_found(reason),
            Error::DatabaseExists => ApiError::new(StatusCode::PRECONDITION_FAILED, "file_exists", reason),
            Error::BadDesign { source, .. } => source.into(),
            Error::KeyReused => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", reason),
            Error::Ahead { update_seq, format } => {
                let (oldest, update) = (format.json(OLDEST_SEQ), format.json(update_seq));
                ApiError::new(StatusCode::GONE, "gone", reason)
                    .with_members(format!(",\"oldest_seq\":{oldest},\"update_seq\":{update}"))
            }
            Error::WriteQueueFull { .. } | Error::Moved => try_again("1"),
            Error::Function(error) => error.into(),
            Error::Draining { retry } => try_again(&retry.as_secs_f64().ceil().to_string()),
            Error::TooManyFeeds { .. }
            | Error::TooManyListedIds { .. }
            | Error::SelectorsTooLarge { .. }
            | Error::TooManyDatabases { .. }
            | Error::Stopped => try_again("5"),
            Error::Storage(error) => ApiError::from(&*error),
        }
    }
}

impl From<DesignError> for ApiError {
    fn from(error: DesignError) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_design_doc", error.to_string())
    }
}

impl From<FunctionError> for ApiError {
    fn from(error: FunctionError) -> ApiError {
        let reason = error.to_string();
        match error {
            FunctionError::NoDesign(_) | FunctionError::NoFunction(_) => ApiError::not_found(reason),
            FunctionError::Language { .. } => ApiError::bad_request(reason),
            FunctionError::NoWorkers => ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", reason),
            FunctionError::Busy { .. } => ApiError::unavailable(reason, "1"),
            FunctionError::EngineStopped => ApiError::unavailable(reason, "5"),
            FunctionError::TooLarge { .. } | FunctionError::Broken { .. } | FunctionError::Failed { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "function_failed", reason)
            }
            FunctionError::Stopped { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "function_stopped", reason)
            }
        }
    }
}

/// Source: CouchDB `chttpd:error_info` of what a validation function throws.
impl From<&Refusal> for ApiError {
    fn from(refusal: &Refusal) -> ApiError {
        let (status, error) = match &refusal.kind {
            RefusalKind::Forbidden => (StatusCode::FORBIDDEN, "forbidden".into()),
            RefusalKind::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized".into()),
            RefusalKind::Undecided => (StatusCode::INTERNAL_SERVER_ERROR, "unknown_error".into()),
            RefusalKind::Unfit(error) => (StatusCode::BAD_REQUEST, Cow::Owned(error.clone())),
        };
        ApiError::new(status, error, refusal.reason.clone())
    }
}

impl From<&StorageError> for ApiError {
    fn from(error: &StorageError) -> ApiError {
        let reason = error.to_string();
        match error {
            StorageError::DiskFull { .. } | StorageError::MapFull { .. } => {
                ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "insufficient_storage", reason)
            }
            StorageError::DiskFailed { .. } | StorageError::Closed => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "disk_failed", reason)
            }
            StorageError::InDoubt { .. } => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "outcome_unknown", reason),
            StorageError::Damaged { .. } | StorageError::Missing { .. } | StorageError::DamagedFile { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged_database", reason)
            }
            // Not 403: a replicator takes that for the document's fault and leaves it out.
            StorageError::ReadOnly { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "read_only_database", reason)
            }
            StorageError::NewerFormat { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "newer_file_format", reason)
            }
            StorageError::FolderInUse { .. }
            | StorageError::Panicked { .. }
            | StorageError::BrokenOff { .. }
            | StorageError::Lmdb(_)
            | StorageError::Io { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
            }
        }
    }
}

impl From<DbNameError> for ApiError {
    fn from(error: DbNameError) -> ApiError {
        let word = match error {
            DbNameError::Illegal { .. } => "illegal_database_name",
            DbNameError::TooLong { .. } => "database_name_too_long",
        };
        ApiError::new(StatusCode::BAD_REQUEST, word, error.to_string())
    }
}

impl From<DocIdError> for ApiError {
    fn from(error: DocIdError) -> ApiError {
        let is_of_own_bound = matches!(error, DocIdError::TooLong { .. });
        ApiError::new(StatusCode::BAD_REQUEST, "illegal_docid", error.to_string()).for_own_bound(is_of_own_bound)
    }
}

impl From<RevError> for ApiError {
    fn from(error: RevError) -> ApiError {
        ApiError::bad_request(error.to_string())
    }
}

impl From<SelectorError> for ApiError {
    fn from(error: SelectorError) -> ApiError {
        match error {
            SelectorError::Json(error) => error.into(),
            error => ApiError::bad_request(error.to_string()),
        }
    }
}

impl From<DocumentError> for ApiError {
    fn from(error: DocumentError) -> ApiError {
        use DocumentError as E;
        let is_of_own_bound =
            matches!(error, E::NestedTooDeep { .. } | E::Rev(RevError::TooLong) | E::RevisionsIdTooLong);
        let word = match error {
            E::TooMany { .. } => return ApiError::document_too_large(error.to_string()),
            E::NotJson | E::NotAnObject | E::NestedTooDeep { .. } | E::Rev(_) => "bad_request",
            E::IdNotString => "illegal_docid",
            E::BadSpecialMember { .. }
            | E::RevisionsStartNotInteger
            | E::RevisionsStartOutOfRange
            | E::RevisionsIdsNotArray
            | E::RevisionsIdsEmpty
            | E::RevisionsIdNotString
            | E::RevisionsIdNotHex
            | E::RevisionsIdTooLong => "doc_validation",
        };
        ApiError::new(StatusCode::BAD_REQUEST, word, error.to_string()).for_own_bound(is_of_own_bound)
    }
}

impl From<NotFound> for ApiError {
    fn from(error: NotFound) -> ApiError {
        ApiError::not_found(error.to_string())
    }
}
