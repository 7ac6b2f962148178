//! HTTP/1.1 over one connection, with no more than benches need, so that the time they measure is the server's.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Room for an answer. A read that does not fill it tells the runtime, without another read, that nothing more is there.
const ROOM: usize = 16 * 1024;
/// Most headers an answer has.
const HEADERS_MAX: usize = 32;

/// An open connection.
pub struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// When the server does not listen.
    pub async fn open(address: SocketAddr) -> Connection {
        let socket = TcpStream::connect(address).await.expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        Connection { socket, answer: Vec::with_capacity(ROOM) }
    }

    /// Sends a request that must succeed; the answer's JSON.
    ///
    /// # Panics
    /// When the connection fails, or the answer is no success, has no length or is not JSON.
    pub async fn request(&mut self, method: &str, path: &str, body: &str) -> Value {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: seqtide\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        serde_json::from_slice(self.exchange(request.as_bytes()).await).expect("JSON")
    }

    /// Sends the bytes of a request that must succeed; the answer's body.
    ///
    /// # Panics
    /// When the connection fails, or the answer is no success or has no length.
    pub async fn exchange(&mut self, request: &[u8]) -> &[u8] {
        self.socket.write_all(request).await.expect("the request");
        self.answer.clear();
        let head = loop {
            self.read().await;
            if let Some(head) = Head::parse(&self.answer) {
                break head;
            }
        };
        while self.answer.len() < head.bytes + head.body_bytes {
            self.read().await;
        }
        assert_eq!(self.answer.len(), head.bytes + head.body_bytes, "bytes after the answer");
        let body = &self.answer[head.bytes..];
        assert!(head.is_success, "{}: {}", first_line(request), String::from_utf8_lossy(&self.answer));
        body
    }

    async fn read(&mut self) {
        self.answer.reserve(1);
        let length = self.socket.read_buf(&mut self.answer).await.expect("an answer");
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&self.answer));
    }
}

fn first_line(request: &[u8]) -> String {
    String::from_utf8_lossy(request).lines().next().unwrap_or_default().to_owned()
}

/// The head of an answer.
struct Head {
    bytes: usize,
    body_bytes: usize,
    is_success: bool,
}

impl Head {
    /// `None` while it has not all come.
    fn parse(answer: &[u8]) -> Option<Head> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(bytes) = response.parse(answer).expect("an answer") else { return None };
        let code = response.code.expect("it is complete");
        let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let body_bytes = match length {
            Some(length) => std::str::from_utf8(length.value).ok().and_then(|value| value.parse().ok()),
            // No Content.
            None => (code == 204).then_some(0),
        };
        Some(Head { bytes, body_bytes: body_bytes.expect("a length"), is_success: (200..300).contains(&code) })
    }
}
