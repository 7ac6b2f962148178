//! HTTP as it stands on the wire, for what a client library hides: the status line, chunks, HTTP/1.0.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
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

/// Opens a WebSocket by hand, with these further header lines; gives the connection and the head of the answer.
///
/// # Panics
/// When the connection fails, or no head comes [`SOON`].
pub async fn upgraded(address: SocketAddr, path: &str, more: &str) -> (TcpStream, String) {
    let upgrade = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    );
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket.write_all(upgrade.as_bytes()).await.expect("the request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(SOON, socket.read_u8()).await.expect("a head in time").expect("a head"));
    }
    (socket, String::from_utf8(head).expect("text"))
}

/// A frame of a client, masked with nothing.
///
/// # Panics
/// When it is not a short one.
pub fn said(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).ok().filter(|length| *length < 126).expect("a short frame");
    [&[first, 0x80 | length, 0, 0, 0, 0][..], payload].concat()
}

/// Reads one of the server's frames on a WebSocket: its first byte and its payload.
///
/// # Panics
/// When the connection ends, or none comes [`SOON`].
pub async fn read_frame(socket: &mut (impl AsyncRead + Unpin)) -> (u8, Vec<u8>) {
    let frame = async {
        let first = socket.read_u8().await.expect("a frame");
        let length = match socket.read_u8().await.expect("a length") {
            126 => u64::from(socket.read_u16().await.expect("a length")),
            127 => socket.read_u64().await.expect("a length"),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        socket.read_exact(&mut payload).await.expect("the payload");
        (first, payload)
    };
    timeout(SOON, frame).await.expect("a frame in time")
}

fn parse(answer: &str) -> RawAnswer {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
    let mut lines = head.split("\r\n").map(str::to_owned);
    let status_line = lines.next().expect("split gives one at least");
    RawAnswer { status_line, headers: lines.collect(), body: body.to_owned() }
}
