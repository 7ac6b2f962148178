//! The catalogue of errors: one request for each status, name and reason that can come about.
//!
//! What CouchDB also has, and cannot come about here yet: 401 and 403 (there are no users and no validation functions);
//! 404 `missing json key` (no configuration over HTTP); 406 (show functions alone answer it); 409 `missing_rev`, 412
//! `missing_stub`, 413 `attachment_too_large` and 416 (attachments); `invalid_design_doc` and `compilation_error`
//! (design documents are kept, not run). What cannot be brought about by a request alone has tests of its own: 500 (a
//! damaged database), 503 by a full queue of writes, 507 (a full disk).

use serde_json::{Value, json};

use seqtide_tests::{Api, Database, Server};

/// A request, and the error it is answered with; a reason that ends in `…` may go on.
struct Case {
    method: &'static str,
    path: &'static str,
    header: Option<(&'static str, String)>,
    body: Option<Value>,
    status: u16,
    error: &'static str,
    reason: &'static str,
}

fn case(method: &'static str, path: &'static str, status: u16, error: &'static str, reason: &'static str) -> Case {
    Case { method, path, header: None, body: None, status, error, reason }
}

impl Case {
    fn body(mut self, body: Value) -> Case {
        self.body = Some(body);
        self
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Case {
        self.header = Some((name, value.into()));
        self
    }

    /// What is wrong with the answer.
    async fn faults(&self, api: &Api) -> Option<String> {
        let mut request = api.request(self.method, self.path);
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        request = match &self.body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await;
        let body: Value = serde_json::from_str(answer.text()).unwrap_or_default();
        let reason = body["reason"].as_str().unwrap_or_default();
        let reason_is = match self.reason.strip_suffix('…') {
            Some(start) => reason.starts_with(start),
            None => reason == self.reason,
        };
        let fine = answer.status == self.status && body["error"] == json!(self.error) && reason_is;
        let is_json = answer.header("content-type") == Some("application/json") && answer.text().ends_with("}\n");
        let Case { method, path, .. } = self;
        let shown = &path[..path.len().min(80)];
        (!fine || !is_json).then(|| format!("{method} {shown}: {} {}", answer.status, answer.text()))
    }
}

fn bad_requests() -> Vec<Case> {
    let bad = |method, path, reason| case(method, path, 400, "bad_request", reason);
    let parse_error = |path, reason| case("GET", path, 400, "query_parse_error", reason);
    let long_name: &'static str = String::leak(format!("/{}", "a".repeat(300)));
    vec![
        bad("PUT", "/db/x?rev=zzz", "Invalid rev format").body(json!({})),
        bad("GET", "/db/a?rev=zzz", "Invalid rev format"),
        bad("GET", "/db/a?open_revs=zzz", "invalid UTF-8 JSON"),
        bad("GET", "/db/a?open_revs=5", "Invalid list of revisions…"),
        bad("GET", "/db/a?atts_since=zzz", "invalid UTF-8 JSON"),
        bad("GET", "/db/a?atts_since=%5B%22zzz%22%5D", "Invalid rev format"),
        bad("PUT", "/db/x", "Document must be a JSON object").body(json!([1])),
        bad("PUT", "/db/x", "Invalid rev format").body(json!({ "_rev": null })),
        bad("PUT", "/db/x?rev=2-b", "Document rev from request body and query string have different values")
            .body(json!({ "_rev": "1-a" })),
        bad("PUT", "/db/x?rev=2-b", "Document rev and etag have different values")
            .header("if-match", "\"1-a\"")
            .body(json!({})),
        bad("COPY", "/db/a", "Destination header is mandatory for COPY."),
        bad("DELETE", "/db?rev=1-a", "You tried to DELETE a database with a ?rev= parameter.…"),
        bad("POST", "/db/_bulk_docs", "POST body must include `docs` parameter.").body(json!({})),
        bad("POST", "/db/_bulk_docs", "`docs` parameter must be an array.").body(json!({ "docs": 1 })),
        bad("POST", "/db/_bulk_docs", "Document must be a JSON object").body(json!({ "docs": [1] })),
        bad("POST", "/db/_bulk_docs", "`new_edits` parameter must be a boolean.")
            .body(json!({ "docs": [], "new_edits": 1 })),
        bad("POST", "/db/_bulk_get", "Missing JSON list of 'docs'.").body(json!({})),
        bad("POST", "/db/_bulk_get?rev=1-a", "\"rev\" query parameter is not acceptable").body(json!({ "docs": [] })),
        bad("POST", "/db/_revs_diff", "Invalid rev format").body(json!({ "a": ["zzz"] })),
        bad("POST", "/db/_revs_diff", "\"a\" must be a list of revisions…").body(json!({ "a": "1-a" })),
        bad("POST", "/db/_missing_revs", "\"a\" must be a list of revisions…").body(json!({ "a": null })),
        bad("PUT", "/db/_revs_limit", "`_revs_limit` is a positive integer, as JSON").body(json!(0)),
        bad("PUT", "/db/_local/l", "_local documents do not accept attachments.")
            .body(json!({ "_attachments": { "x": {} } })),
        bad("PUT", "/db/_local/l/file", "_local documents do not accept attachments."),
        bad("GET", "/db/_changes?since=zzz", "Malformed sequence supplied in 'since' parameter."),
        parse_error("/db/_all_docs?limit=x", "Invalid value for integer: \"x\""),
        parse_error("/db/_all_docs?skip=-1", "Invalid value for positive integer: \"-1\""),
        parse_error("/db/_all_docs?descending=maybe", "Invalid boolean parameter: \"maybe\""),
        parse_error(
            "/db/_all_docs?keys=%5B%22a%22%5D&startkey=%22a%22",
            "`keys` is incompatible with `key`, `start_key` and `end_key`",
        ),
        case("POST", "/db", 400, "illegal_docid", "Document id must not be empty").body(json!({ "_id": "" })),
        case("PUT", "/db/%ff", 400, "illegal_docid", "Document id must be valid UTF-8").body(json!({})),
        case("PUT", "/Bad", 400, "illegal_database_name", "Name: 'Bad'. Only lowercase characters (a-z)…"),
        case("PUT", long_name, 400, "database_name_too_long", "At least one path segment of `aaa…"),
        case("PUT", "/db/x", 400, "doc_validation", "Bad special document member: _x").body(json!({ "_x": 1 })),
        case("PUT", "/db/x?new_edits=false", 400, "doc_validation", "_revisions.start isn't an integer.")
            .body(json!({ "_revisions": { "start": "a", "ids": [] } })),
    ]
}

fn the_rest() -> Vec<Case> {
    let not_allowed = |method, path, reason| case(method, path, 405, "method_not_allowed", reason);
    let wrong_type = |path, body| {
        case("POST", path, 415, "bad_content_type", "Content-Type must be application/json")
            .header("content-type", body)
    };
    let long_url: &'static str = String::leak(format!("/db/_all_docs?x={}", "x".repeat(61_000)));
    vec![
        case("GET", "/db/nope", 404, "not_found", "missing"),
        case("GET", "/db/gone", 404, "not_found", "deleted"),
        case("DELETE", "/db/gone?rev=2-x", 404, "not_found", "deleted"),
        case("GET", "/nope", 404, "not_found", "Database does not exist."),
        case("GET", "/db/a/file", 404, "not_found", "Document is missing attachment"),
        case("GET", "/db/nope/file", 404, "not_found", "missing"),
        case("GET", "/db/gone/file", 404, "not_found", "deleted"),
        case("GET", "/db/_local/nope/file", 404, "not_found", "missing"),
        case("GET", "/nope/a/file", 404, "not_found", "Database does not exist."),
        case("GET", "/db/_nothing", 404, "not_found", "missing"),
        not_allowed("PATCH", "/db", "Only DELETE,GET,HEAD,POST allowed"),
        not_allowed("PATCH", "/db/a", "Only DELETE,GET,HEAD,PUT,COPY allowed"),
        not_allowed("PUT", "/db/_all_docs", "Only GET,HEAD,POST allowed"),
        not_allowed("PUT", "/db/_design_docs", "Only GET,HEAD,POST allowed"),
        not_allowed("GET", "/db/_local_docs/queries", "Only POST allowed"),
        not_allowed("GET", "/db/_bulk_docs", "Only POST allowed"),
        not_allowed("GET", "/db/_revs_diff", "Only POST allowed"),
        not_allowed("POST", "/_up", "Only GET,HEAD allowed"),
        case("PUT", "/db/a", 409, "conflict", "Document update conflict.").body(json!({})),
        case("DELETE", "/db/a", 409, "conflict", "Document update conflict."),
        case("PUT", "/db", 412, "file_exists", "The database could not be created, the file already exists."),
        case("PUT", "/db/x", 413, "document_too_large", "the document has 2010 bytes…")
            .body(json!({ "pad": "x".repeat(2000) })),
        case("POST", "/db", 413, "document_too_large", "the document `x` has 2010 bytes, at most 1000 are accepted")
            .body(json!({ "_id": "x", "pad": "x".repeat(2000) })),
        case("POST", "/db/_bulk_docs", 413, "too_large", "the request entity is too large: at most 5000 bytes…")
            .body(json!({ "docs": [{ "pad": "x".repeat(9000) }] })),
        case("GET", long_url, 414, "too_long", "the request uri is too long…"),
        wrong_type("/db", "text/plain"),
        wrong_type("/db/_bulk_get", "application/x-www-form-urlencoded"),
        wrong_type("/db/_ensure_full_commit", "text/plain"),
        case("PUT", "/db/x", 415, "bad_content_encoding", "Content-Encoding \"br\" is not supported…")
            .header("content-encoding", "br")
            .body(json!({})),
        case("GET", "/db", 417, "expectation_failed", "Expect: \"200-ok\" cannot be met; 100-continue can")
            .header("expect", "200-ok"),
        case("POST", "/db/_find", 501, "not_implemented", "requests to this endpoint are not supported yet"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_has_its_status_name_and_reason() {
    let limits = ["--limits-document-bytes-max=1000", "--limits-request-bytes-max=5000"];
    let server = limits.into_iter().fold(Server::launch(), |launch, limit| launch.arg(limit)).start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({})).await;
    let rev = database.put("gone", &json!({})).await.rev();
    database.request("DELETE", &format!("/gone?rev={rev}")).expect(200).await;
    let mut faults = Vec::new();
    for case in bad_requests().into_iter().chain(the_rest()) {
        faults.extend(case.faults(&database.api).await);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_405_says_what_is_allowed_in_its_header_too() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for (method, rest) in
        [("PATCH", ""), ("PATCH", "/a"), ("PUT", "/_all_docs"), ("GET", "/_bulk_get"), ("PUT", "/_feed")]
    {
        let answer = database.request(method, rest).expect(405).await;
        let allow = answer.header("allow").expect("Allow").to_owned();
        assert_eq!(answer.json()["reason"], json!(format!("Only {allow} allowed")), "{method} {rest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_feeds_is_503_and_says_when_to_try_again() {
    let server = Server::launch().arg("--limits-feeds-max=1").start();
    let database = Database::create(&server, "db").await;
    let _first = database.get("/_changes?feed=continuous&since=now").open().await;
    let refused = database.get("/_changes?feed=continuous&since=now").send().await;
    refused.assert_error(503, "service unavailable", "1 feeds are open, and no more are allowed");
    assert!(refused.header("retry-after").is_some());
}
