//! The least that a feed can be: one thread that frames what it is sent and writes it to every subscriber, plain
//! non-blocking writes and nothing else. It keeps nothing, checks nothing and knows no subscriber that falls behind;
//! what Seqtide takes beyond it is what documents, an order and a disk cost.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, exit};
use std::{env, io};

use rustix::event::{PollFd, PollFlags, poll};
use seqtide_bench::documents::{self, StampFinder};
use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};

use super::peer::{self, Peer};

/// What a bench is called with to be this, and a port behind it.
const ARGUMENT: &str = "--bare-writer";
/// Bytes read at once; more than a request has.
const ROOM: usize = 4096;
const FEED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: live\n\n";
const WRITTEN: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

/// Starts it as a process of its own.
///
/// # Panics
/// When it does not listen.
pub fn start() -> Peer {
    let address = peer::free_address();
    let mut command = Command::new(env::current_exe().expect("the path of this bench"));
    command.arg(ARGUMENT).arg(address.port().to_string());
    let feed = FeedRequest { bytes: Transport::Sse.request("/"), live: b": live\n\n", has_sequences: true };
    let publish = Publish::Post { path: "/".to_owned(), content_type: "text/plain" };
    Peer::start("bare writer", command, Service { address, pid: None, publish, feed }, peer::folder("bare-writer"))
}

/// Becomes the bare writer where this process was started as that. To be called first in `main`.
pub fn become_one_if_asked() {
    let mut args = env::args().skip(1);
    if args.next().as_deref() == Some(ARGUMENT) {
        let port = args.next().and_then(|port| port.parse().ok()).expect("a port");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let Err(why) = BareWriter::listen(address).and_then(BareWriter::run);
        eprintln!("the bare writer ends: {why}");
        exit(1);
    }
}

struct BareWriter {
    listener: TcpListener,
    /// Connections that have not asked for the feed.
    writers: Vec<TcpStream>,
    subscribers: Vec<TcpStream>,
    seq: u64,
    stamps: StampFinder,
}

impl BareWriter {
    fn listen(address: SocketAddr) -> io::Result<BareWriter> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (writers, subscribers, stamps) = (Vec::new(), Vec::new(), StampFinder::default());
        Ok(BareWriter { listener, writers, subscribers, seq: 0, stamps })
    }

    fn run(mut self) -> io::Result<std::convert::Infallible> {
        loop {
            let mut waiting: Vec<PollFd> = vec![PollFd::new(&self.listener, PollFlags::IN)];
            waiting.extend(self.writers.iter().map(|writer| PollFd::new(writer, PollFlags::IN)));
            poll(&mut waiting, None)?;
            let ready: Vec<bool> = waiting[1..].iter().map(|writer| !writer.revents().is_empty()).collect();
            self.serve(&ready);
            while let Ok((socket, _)) = self.listener.accept() {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
                self.writers.push(socket);
            }
        }
    }

    /// Takes what has come, and sends it to all in one write each.
    fn serve(&mut self, ready: &[bool]) {
        let (mut frames, mut written) = (Vec::new(), Vec::new());
        let asking = std::mem::take(&mut self.writers).into_iter().zip(ready);
        for (mut socket, is_ready) in asking {
            let mut request = [0; ROOM];
            match if *is_ready { socket.read(&mut request) } else { Err(ErrorKind::WouldBlock.into()) } {
                Ok(0) => {}
                Ok(_) if request.starts_with(b"GET") => {
                    self.subscribers.extend(write_all(&mut socket, FEED).then_some(socket));
                }
                Ok(length) => {
                    self.frame(&request[..length], &mut frames);
                    written.push(self.writers.len());
                    self.writers.push(socket);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writers.push(socket),
                Err(_) => {}
            }
        }
        self.subscribers.retain_mut(|subscriber| write_all(subscriber, &frames));
        for writer in written {
            write_all(&mut self.writers[writer], WRITTEN);
        }
    }

    /// The bytes that a Seqtide would send for this document.
    fn frame(&mut self, request: &[u8], into: &mut Vec<u8>) {
        let document = &request[request.len().saturating_sub(documents::BYTES)..];
        let (stamp, _) = self.stamps.find(document).expect("a document of a load");
        self.seq += 1;
        let (seq, id) = (self.seq, documents::id(stamp.number));
        let rev = format!("1-{}", documents::id(seq));
        let start = format!(
            r#"data: {{"seq":{seq},"id":"{id}","changes":[{{"rev":"{rev}"}}],"doc":{{"_id":"{id}","_rev":"{rev}","#
        );
        into.extend_from_slice(start.as_bytes());
        into.extend_from_slice(&document[1..]);
        into.extend_from_slice(format!("}}\nid: {seq}\n\n").as_bytes());
    }
}

/// Writes to a socket that does not block, waiting while it is full; false where nobody listens any more.
fn write_all(socket: &mut TcpStream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if poll(&mut [PollFd::new(socket, PollFlags::OUT)], None).is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
    true
}
