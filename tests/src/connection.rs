//! HTTP/1.1 over one connection, with no more than benches need, so that the time they measure is the server's.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// An open connection.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// When the server does not listen.
    pub async fn open(address: SocketAddr) -> Connection {
        let socket = TcpStream::connect(address).await.expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        Connection(BufReader::new(socket))
    }

    /// Sends a request that must succeed; the answer's JSON.
    ///
    /// # Panics
    /// When the connection fails, or the answer is no success or has no length.
    pub async fn request(&mut self, method: &str, path: &str, body: &str) -> Value {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: seqtide\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.write_all(request.as_bytes()).await.expect("the request");
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            assert!(self.0.read_line(&mut head).await.expect("a head") > 0, "{method} {path}: closed after {head:?}");
            if let Some(value) = head[start..].to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).await.expect("a body");
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}{}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).expect("JSON")
    }
}
