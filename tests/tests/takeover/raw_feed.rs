//! A feed as it stands on the wire, in chunks.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use seqtide_tests::http::SOON;
use seqtide_tests::sse::behind_retry;

/// A feed of HTTP/1.1 whose head has come.
pub struct RawFeed {
    pub socket: TcpStream,
    pub head: String,
    /// Bytes that make no whole chunk yet.
    unread: Vec<u8>,
    /// What came in chunks, behind the line that says when to come back.
    pub text: String,
    /// The last chunk has come.
    pub is_over: bool,
}

impl RawFeed {
    /// Opens `GET path`, reading no more than the head.
    pub async fn open(address: SocketAddr, path: &str) -> RawFeed {
        RawFeed::over(TcpStream::connect(address).await.expect("a connection"), path).await
    }

    /// The same over a connection in whose buffers little lies.
    pub async fn open_narrow(address: SocketAddr, path: &str) -> RawFeed {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        RawFeed::over(socket.connect(address).await.expect("a connection"), path).await
    }

    /// The same over a connection that may have had requests before.
    pub async fn over(mut socket: TcpStream, path: &str) -> RawFeed {
        let request = format!("GET {path} HTTP/1.1\r\nHost: seqtide\r\nAccept: text/event-stream\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("the request");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(SOON, socket.read_u8()).await.expect("a head in time").expect("a head"));
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        RawFeed { socket, head, unread: Vec::new(), text: String::new(), is_over: false }
    }

    /// Reads until what came satisfies `enough`.
    pub async fn until(&mut self, enough: impl Fn(&RawFeed) -> bool) -> &str {
        while !enough(self) {
            let mut piece = vec![0; 64 << 10];
            let read = timeout(SOON, self.socket.read(&mut piece)).await;
            match read {
                Ok(Ok(length @ 1..)) => self.unread.extend_from_slice(&piece[..length]),
                other => panic!("waiting for more, got {other:?} after {:?}", self.last_words()),
            }
            self.take_chunks();
        }
        &self.text
    }

    /// Reads to the last chunk, and the end of the connection behind it.
    pub async fn read_to_end(&mut self) -> &str {
        self.until(|feed| feed.is_over).await;
        let read = timeout(SOON, self.socket.read(&mut [0; 16])).await;
        assert!(matches!(read, Ok(Ok(0))), "nothing comes behind the last chunk: {read:?}");
        &self.text
    }

    /// The rows so far.
    pub fn rows(&self) -> Vec<Value> {
        let whole = self.text.rfind('\n').map_or("", |end| &self.text[..end]);
        let events = whole.lines().filter_map(|line| line.strip_prefix("data: "));
        let values = events.map(|data| serde_json::from_str::<Value>(data).unwrap_or_else(|_| panic!("{data:?}")));
        values.filter(|value| value.get("id").is_some()).collect()
    }

    fn last_words(&self) -> &str {
        let mut from = self.text.len().saturating_sub(300);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        &self.text[from..]
    }

    fn take_chunks(&mut self) {
        let mut taken = 0;
        while let Some((size, payload)) = chunk_size(&self.unread[taken..]) {
            let begin = taken + payload;
            if self.unread.len() < begin + size + 2 {
                break;
            }
            assert!(!self.is_over, "a chunk behind the last one");
            assert_eq!(&self.unread[begin + size..begin + size + 2], b"\r\n", "the end of a chunk");
            let chunk = std::str::from_utf8(&self.unread[begin..begin + size]).expect("UTF-8");
            self.text.push_str(if chunk.starts_with("retry: ") { behind_retry(chunk) } else { chunk });
            self.is_over = size == 0;
            taken = begin + size + 2;
        }
        self.unread.drain(..taken);
    }
}

/// A chunk's size, and where its payload begins.
fn chunk_size(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let size = std::str::from_utf8(&bytes[..end]).expect("text");
    Some((usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("chunk size {size:?}")), end + 2))
}
