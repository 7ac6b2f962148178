//! HTTP/1.1 over one connection, with no more than a load needs, so that the time measured is the server's.

use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Error;
use crate::head::{BodyLength, Head, first_line};

/// Room for an answer. A read that does not fill it tells the runtime, without another read, that nothing more is
/// there.
const ROOM: usize = 16 * 1024;

/// Connects, without delays for small writes.
pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream, Error> {
    let refused = |source| Error::Connect { address, source };
    let socket = TcpStream::connect(address).await.map_err(refused)?;
    socket.set_nodelay(true).map_err(refused)?;
    Ok(socket)
}

/// A request with a body of JSON, which may be empty.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: seqtide\r\nContent-Type: application/json");
    format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// An open connection.
pub struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When the server does not listen.
    pub async fn open(address: SocketAddr) -> Result<Connection, Error> {
        Ok(Connection { socket: connect(address).await?, answer: Vec::with_capacity(ROOM) })
    }

    /// Whether a request can be sent: the server has not closed it, nor said anything unasked, as that it will.
    pub fn is_open(&self) -> bool {
        // The system is asked: the runtime may not have heard of it yet.
        let unread = recv(&self.socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(unread, Err(Errno::AGAIN))
    }

    /// Sends a request that must succeed; the answer's JSON.
    ///
    /// # Errors
    /// When the connection fails, or the answer is no success, has no length or is not JSON.
    pub async fn request(&mut self, method: &str, path: &str, body: &str) -> Result<Value, Error> {
        let answer = self.exchange(request(method, path, body).as_bytes()).await?;
        serde_json::from_slice(answer).map_err(|why| Error::Protocol(format!("{method} {path}: {why}")))
    }

    /// Sends the bytes of a request that must succeed; the answer's body.
    ///
    /// # Errors
    /// When the connection fails, or the answer is no success or has no length.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<&[u8], Error> {
        self.send(request).await?;
        self.answer(request).await
    }

    /// Sends the bytes of a request.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.socket.write_all(request).await.map_err(|source| Error::io(first_line(request), source))
    }

    /// The body of the answer to the request that was sent last, which must have succeeded.
    ///
    /// # Errors
    /// When the connection fails, or the answer is no success or has no length.
    pub async fn answer(&mut self, request: &[u8]) -> Result<&[u8], Error> {
        self.answer.clear();
        let head = loop {
            self.read(request).await?;
            if let Some(head) = Head::parse(&self.answer)? {
                break head;
            }
        };
        let BodyLength::Known(length) = head.body else {
            return Err(Error::Protocol(format!("{}: the answer does not tell its length", first_line(request))));
        };
        while self.answer.len() < head.bytes + length {
            self.read(request).await?;
        }
        if self.answer.len() > head.bytes + length {
            return Err(Error::Protocol(format!("{}: there are bytes behind the answer", first_line(request))));
        }
        let body = &self.answer[head.bytes..];
        if !head.is_success() {
            let (request, body) = (first_line(request), String::from_utf8_lossy(body).trim_end().to_owned());
            return Err(Error::Refused { request, status: head.status, body });
        }
        Ok(body)
    }

    async fn read(&mut self, request: &[u8]) -> Result<(), Error> {
        self.answer.reserve(1);
        let length = self.socket.read_buf(&mut self.answer).await;
        match length.map_err(|source| Error::io(first_line(request), source))? {
            0 => Err(Error::Protocol(format!("{}: the server closed the connection", first_line(request)))),
            _ => Ok(()),
        }
    }
}
