//! An HTTP client that keeps every byte: requests to one server and their answers.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::Value;

use crate::Server;

/// How long a test waits for anything that should come at once.
pub const SOON: Duration = Duration::from_secs(20);

/// What a path segment escapes: all but RFC 3986's unreserved characters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `text` as one segment of a path, or as a value of the query.
pub fn escaped(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// A client of one server. Redirects are answers, not followed; cheap to clone.
#[derive(Clone)]
pub struct Api {
    base: String,
    client: reqwest::Client,
}

impl Api {
    /// A client of this server, with a connection pool of its own.
    pub fn new(server: &Server) -> Api {
        Api::at(server.url())
    }

    /// A client of whatever is at this address, `http://HOST:PORT` without a slash at the end.
    pub fn at(base: String) -> Api {
        let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
        Api { base, client }
    }

    /// A request; `path` begins with a slash and carries its query, escaped.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let name = format!("{method} {path}");
        Request { name, builder: self.client.request(method, format!("{}{path}", self.base)) }
    }

    /// `GET path`.
    pub fn get(&self, path: &str) -> Request {
        self.request("GET", path)
    }

    /// `PUT path`.
    pub fn put(&self, path: &str) -> Request {
        self.request("PUT", path)
    }

    /// `POST path`.
    pub fn post(&self, path: &str) -> Request {
        self.request("POST", path)
    }

    /// `DELETE path`.
    pub fn delete(&self, path: &str) -> Request {
        self.request("DELETE", path)
    }

    /// What `/metrics` says of a sample, by its name with its labels; `None` when it is not there.
    ///
    /// # Panics
    /// When the server does not answer 200, or with no whole number.
    pub async fn metric(&self, sample: &str) -> Option<u64> {
        let metrics = self.get("/metrics").expect(200).await;
        let value = metrics.text().lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
        Some(value.parse().unwrap_or_else(|_| panic!("{sample} {value}")))
    }
}

/// A request being put together.
pub struct Request {
    name: String,
    builder: reqwest::RequestBuilder,
}

impl Request {
    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.builder = self.builder.header(name, value);
        self
    }

    /// Sends this as `application/json`.
    #[must_use]
    pub fn json(self, body: &Value) -> Request {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sends these bytes, naming no content type.
    #[must_use]
    pub fn body(mut self, body: impl Into<reqwest::Body>) -> Request {
        self.builder = self.builder.body(body);
        self
    }

    /// Sends it and waits for the head of the answer.
    ///
    /// # Errors
    /// When the connection fails.
    ///
    /// # Panics
    /// When the head does not come [`SOON`].
    pub async fn try_open(self) -> reqwest::Result<Opened> {
        let answer = tokio::time::timeout(SOON, self.builder.send()).await;
        let response = answer.unwrap_or_else(|_| panic!("{}: no head came", self.name))?;
        Ok(Opened { name: self.name, response, seen: Vec::new() })
    }

    /// [`Request::try_open`], where a failing connection fails the test.
    ///
    /// # Panics
    /// When the connection fails.
    pub async fn open(self) -> Opened {
        let name = self.name.clone();
        self.try_open().await.unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    /// Sends it and reads the whole answer.
    ///
    /// # Panics
    /// When the connection fails, the body is cut short or does not end [`SOON`].
    pub async fn send(self) -> Answer {
        self.open().await.to_end().await
    }

    /// Sends it and reads the whole answer.
    ///
    /// # Errors
    /// When the connection fails or the body is cut short.
    pub async fn try_send(self) -> reqwest::Result<Answer> {
        self.try_open().await?.try_to_end().await
    }

    /// Sends it, reads the whole answer and asserts its status.
    ///
    /// # Panics
    /// As [`Request::send`], and when the status is another.
    pub async fn expect(self, status: u16) -> Answer {
        let answer = self.send().await;
        answer.assert_status(status);
        answer
    }
}

/// An answer whose head is there and whose body is still coming.
pub struct Opened {
    name: String,
    response: reqwest::Response,
    seen: Vec<u8>,
}

impl Opened {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The body so far, as text.
    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Reads until the body so far satisfies `enough`, and returns it.
    ///
    /// # Panics
    /// When it ends or [`SOON`] passes before that.
    pub async fn until(&mut self, enough: impl Fn(&str) -> bool) -> String {
        let deadline = tokio::time::Instant::now() + SOON;
        while !enough(&self.so_far()) {
            let piece = tokio::time::timeout_at(deadline, self.response.chunk()).await;
            match piece {
                Ok(Ok(Some(piece))) => self.seen.extend_from_slice(&piece),
                other => panic!("{}: waiting for more, got {other:?} after {:?}", self.name, self.so_far()),
            }
        }
        self.so_far()
    }

    /// Reads to the clean end of the body.
    ///
    /// # Panics
    /// When the body is cut short or does not end [`SOON`].
    pub async fn to_end(self) -> Answer {
        let name = self.name.clone();
        self.try_to_end().await.unwrap_or_else(|error| panic!("{name}: the body should end cleanly: {error:?}"))
    }

    /// Reads to the end of the body.
    ///
    /// # Errors
    /// When the body is cut short.
    ///
    /// # Panics
    /// When it does not end [`SOON`].
    pub async fn try_to_end(mut self) -> reqwest::Result<Answer> {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let piece = tokio::time::timeout_at(deadline, self.response.chunk()).await;
            match piece.unwrap_or_else(|_| panic!("{}: no end after {:?}", self.name, self.so_far()))? {
                Some(piece) => self.seen.extend_from_slice(&piece),
                None => break,
            }
        }
        let headers = self.response.headers().clone();
        Ok(Answer { name: self.name, status: self.response.status().as_u16(), headers, body: self.seen })
    }

    /// The body as it arrives.
    pub fn into_stream(self) -> impl Stream<Item = reqwest::Result<Bytes>> {
        self.response.bytes_stream()
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    name: String,
    /// The status code.
    pub status: u16,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    ///
    /// # Panics
    /// When it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error} in {:?}", self.name, self.text()))
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The revision in a write's answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn rev(&self) -> String {
        self.json()["rev"].as_str().unwrap_or_else(|| panic!("{}: no rev in {}", self.name, self.text())).to_owned()
    }

    /// The number in the `Seqtide-Seq` header.
    ///
    /// # Panics
    /// When there is none.
    pub fn seq(&self) -> u64 {
        let header = self.header("seqtide-seq").unwrap_or_else(|| panic!("{}: no Seqtide-Seq", self.name));
        header.parse().unwrap_or_else(|_| panic!("{}: Seqtide-Seq is {header:?}", self.name))
    }

    /// Asserts the status.
    ///
    /// # Panics
    /// When it is another.
    pub fn assert_status(&self, status: u16) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{} answered {body:?}", self.name);
    }

    /// Asserts CouchDB's error form: this status, name and reason, JSON ended by a newline, its length announced.
    ///
    /// # Panics
    /// When any of it differs.
    pub fn assert_error(&self, status: u16, error: &str, reason: &str) {
        self.assert_status(status);
        let expected = serde_json::json!({ "error": error, "reason": reason });
        assert_eq!(self.json(), expected, "{}", self.name);
        assert!(self.text().ends_with("}\n"), "{}: {:?} should end with a newline", self.name, self.text());
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.name);
        assert_eq!(self.header("content-length"), Some(self.body.len().to_string().as_str()), "{}", self.name);
    }
}
