//! A server whose answers a test makes up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What is answered to a request; nothing: the connection is left as it is.
pub type Answer = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What becomes of a connection behind an answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    Open,
    Close,
}

/// A server, on the runtime that it was started on.
pub struct Fake {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Fake {
    pub async fn serve(then: Then, answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let fake = Fake { address: listener.local_addr().expect("its address"), connections: Arc::default() };
        let (answer, connections): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&fake.connections));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(connection(socket, then, Arc::clone(&answer)));
            }
        });
        fake
    }

    /// How many were opened so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn connection(mut socket: TcpStream, then: Then, answer: Arc<Answer>) {
    while let Some(request) = request(&mut socket).await {
        if let Some(answer) = answer(&request) {
            // Whoever asked may have gone.
            let _ = socket.write_all(answer.as_bytes()).await;
            if then == Then::Close {
                return;
            }
        }
    }
}

/// A request with its body; none where no other one comes.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return Some(text.into_owned());
            }
        }
        if socket.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}

/// An answer with a body that tells its length.
pub fn created(body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}
