//! HTTP as it stands on the wire, for what a client library hides: the status line, chunks, HTTP/1.0.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::SOON;

/// An answer, byte for byte, of a server that closed the connection after it.
#[derive(Debug)]
pub struct RawAnswer {
    /// The first line, without its line end.
    pub status_line: String,
    /// The header lines as sent.
    pub headers: Vec<String>,
    /// Everything after the empty line: still in chunks, if it is chunked.
    pub body: String,
}

/// Sends `request` as it is and reads until the server closes; ask for `Connection: close` or HTTP/1.0.
///
/// # Panics
/// When the connection fails, the server does not close it [`SOON`], or the answer is not text.
pub async fn exchange(address: SocketAddr, request: &str) -> RawAnswer {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket.write_all(request.as_bytes()).await.expect("the request");
    let mut answer = Vec::new();
    let read = timeout(SOON, socket.read_to_end(&mut answer)).await;
    read.unwrap_or_else(|_| panic!("the server should close after {:?}", String::from_utf8_lossy(&answer)))
        .expect("the answer");
    parse(&String::from_utf8(answer).expect("text"))
}

/// Sends `request` and reads until `enough` has come, keeping the connection.
///
/// # Panics
/// When the connection fails or ends, or [`SOON`] passes before that.
pub async fn open(address: SocketAddr, request: &str, enough: impl Fn(&str) -> bool) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket.write_all(request.as_bytes()).await.expect("the request");
    let mut text = String::new();
    while !enough(&text) {
        let mut piece = [0; 4096];
        let read = timeout(SOON, socket.read(&mut piece)).await;
        match read {
            Ok(Ok(length @ 1..)) => text.push_str(&String::from_utf8_lossy(&piece[..length])),
            other => panic!("waiting for more, got {other:?} after {text:?}"),
        }
    }
    (socket, text)
}

/// A body put together from its chunks.
///
/// # Panics
/// When a chunk is malformed or the last one is missing.
pub fn dechunked(body: &str) -> String {
    let mut rest = body;
    let mut whole = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap_or_else(|| panic!("no chunk size in {rest:?}"));
        let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("chunk size {size:?}"));
        if size == 0 {
            assert_eq!(after, "\r\n", "the last chunk ends the answer");
            return whole;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap_or_else(|| panic!("no end of chunk in {after:?}"));
    }
}

fn parse(answer: &str) -> RawAnswer {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
    let mut lines = head.split("\r\n").map(str::to_owned);
    let status_line = lines.next().expect("split gives one at least");
    RawAnswer { status_line, headers: lines.collect(), body: body.to_owned() }
}
