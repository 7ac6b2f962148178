//! A server that does nothing: what the load comes to with it is more than any real server can be seen to do.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;

use seqtide_tests::bench::current_thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

/// Starts it on a thread of its own, which ends with this process. A request is whatever comes in one piece.
pub fn start() -> SocketAddr {
    let (sender, address) = channel();
    thread::spawn(move || {
        current_thread().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            sender.send(listener.local_addr().expect("its address")).expect("somebody waits for it");
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                tokio::spawn(answer(socket));
            }
        });
    });
    address.recv().expect("a responder")
}

async fn answer(mut socket: TcpStream) {
    let mut request = [0; 4096];
    while let Ok(1..) = socket.read(&mut request).await {
        if socket.write_all(ANSWER).await.is_err() {
            return;
        }
    }
}
