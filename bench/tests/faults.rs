//! What a server does wrong is found and counted: a fake one loses, doubles and misorders documents.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use seqtide_bench::current_thread;
use seqtide_bench::fan_out::{self, FanOut, Fanned};
use seqtide_bench::load::Pace;
use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

const SUBSCRIBERS: usize = 3;
/// Bytes of a request's body: `documents::BYTES`, which the load announces.
const DOCUMENT: usize = 200;
const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

/// What is sent to subscribers for the document that was written as the one of this number.
type Fault = fn(usize, &[Vec<u8>]) -> Vec<Vec<u8>>;

/// A server of one feed that answers every write and has its own idea of what to send.
async fn serve(listener: TcpListener, fault: Fault, head: &'static str) {
    let (sender, _) = broadcast::channel::<Vec<u8>>(10_000);
    let written = Arc::new(tokio::sync::Mutex::new(Vec::new()));
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(connection(socket, sender.clone(), Arc::clone(&written), fault, head));
    }
}

async fn connection(
    mut socket: TcpStream,
    sender: broadcast::Sender<Vec<u8>>,
    written: Arc<tokio::sync::Mutex<Vec<Vec<u8>>>>,
    fault: Fault,
    head: &'static str,
) {
    let mut request = [0; 4096];
    while let Ok(length @ 1..) = socket.read(&mut request).await {
        let request = &request[..length];
        if request.starts_with(b"GET") {
            let mut frames = sender.subscribe();
            socket.write_all(head.as_bytes()).await.expect("a subscriber");
            while let Ok(frame) = frames.recv().await {
                if frame.is_empty() || socket.write_all(&frame).await.is_err() {
                    return;
                }
            }
            return;
        }
        let mut written = written.lock().await;
        let number = written.len();
        let seq = number + 1;
        let document = &request[length - DOCUMENT..];
        written.push([format!("data: {{\"seq\":{seq},\"doc\":").as_bytes(), document, b"}\n\n"].concat());
        for frame in fault(number, &written) {
            // An error: all subscribers have gone.
            let _ = sender.send(frame);
        }
        socket.write_all(ANSWER).await.expect("a writer");
    }
}

const ASKED: FanOut = FanOut {
    subscribers: SUBSCRIBERS,
    writers: 1,
    pace: Pace::PerSecond(200.0),
    length: Duration::from_millis(200),
    patience: Duration::from_secs(3),
};

fn fan_out(fault: Fault) -> Fanned {
    fan_out_as(fault, &ASKED)
}

fn fan_out_as(fault: Fault, asked: &FanOut) -> Fanned {
    let runtime = current_thread().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("its address");
        tokio::spawn(serve(listener, fault, "HTTP/1.1 200 OK\r\n\r\n: live\n\n"));
        let feed = FeedRequest { bytes: Transport::Sse.request("/"), live: b": live\n\n", has_sequences: true };
        let publish = Publish::Post { path: "/".to_owned(), content_type: "text/plain" };
        let service = Service { address, pid: None, publish, feed };
        fan_out::run(&service, asked).await.expect("a load")
    })
}

/// Lost, doubled, misordered, written by nobody and ended, for each subscriber.
fn faults(fanned: &Fanned) -> [u64; 5] {
    let all = [fanned.lost, fanned.doubled, fanned.misordered, fanned.unwritten, fanned.feeds_ended];
    assert!(all.iter().all(|fault| fault % SUBSCRIBERS as u64 == 0), "{all:?}: all subscribers get the same");
    all.map(|fault| fault / SUBSCRIBERS as u64)
}

#[test]
fn a_server_that_does_right_is_faultless() {
    let fanned = fan_out(|number, written| vec![written[number].clone()]);
    assert_eq!(faults(&fanned), [0, 0, 0, 0, 0]);
    assert!(fanned.is_faultless());
    assert!(fanned.writes.latency.count() > 20, "the faults below lie within what is written");
    assert_eq!(fanned.deliveries, SUBSCRIBERS as u64 * fanned.writes.latency.count());
}

#[test]
fn a_lost_document_is_found() {
    let fanned = fan_out(|number, written| if number == 5 { vec![] } else { vec![written[number].clone()] });
    assert_eq!(faults(&fanned), [1, 0, 0, 0, 0]);
    assert!(!fanned.is_faultless());
}

#[test]
fn lost_documents_at_the_end_are_found() {
    let fanned = fan_out(|number, written| if number >= 10 { vec![] } else { vec![written[number].clone()] });
    assert_eq!(faults(&fanned), [fanned.writes.latency.count() - 10, 0, 0, 0, 0]);
}

#[test]
fn a_doubled_document_is_found() {
    let fanned = fan_out(|number, written| match number {
        5 => vec![written[5].clone(), written[5].clone()],
        9 => vec![written[2].clone(), written[9].clone()],
        _ => vec![written[number].clone()],
    });
    assert_eq!(faults(&fanned), [0, 2, 0, 0, 0]);
    assert!(!fanned.is_faultless());
}

#[test]
fn documents_out_of_order_are_found() {
    let fanned = fan_out(|number, written| match number {
        5 => vec![],
        6 => vec![written[6].clone(), written[5].clone()],
        _ => vec![written[number].clone()],
    });
    assert_eq!(faults(&fanned), [0, 0, 1, 0, 0]);
    assert!(!fanned.is_faultless());
}

#[test]
fn a_feed_that_ends_is_found_and_what_it_misses_is_lost() {
    let fanned = fan_out(|number, written| vec![if number < 5 { written[number].clone() } else { Vec::new() }]);
    assert_eq!(faults(&fanned), [fanned.writes.latency.count() - 5, 0, 0, 0, 1]);
}

#[test]
fn a_document_that_nobody_wrote_stands_for_none_that_is_lost() {
    let fanned = fan_out(|number, written| {
        let frame = String::from_utf8_lossy(&written[number]).into_owned();
        // Its number is that of another one, which is never written.
        vec![if number == 5 {
            frame.replace(r#""stamp":"0"#, r#""stamp":"9"#).into_bytes()
        } else {
            frame.into_bytes()
        }]
    });
    assert_eq!(faults(&fanned), [1, 0, 0, 1, 0]);
    assert!(!fanned.is_faultless());
    assert_eq!(fanned.deliveries, SUBSCRIBERS as u64 * (fanned.writes.latency.count() - 1));
}

#[test]
fn a_load_with_a_pace_lasts_no_less_than_its_length() {
    let asked = FanOut { pace: Pace::PerSecond(1e-3), length: Duration::from_secs(1_000), ..ASKED };
    let fanned = fan_out_as(|number, written| vec![written[number].clone()], &asked);
    assert_eq!((fanned.secs, fanned.rate(), fanned.writes.rate), (1_000.0, SUBSCRIBERS as f64 / 1_000.0, 1e-3));
}
