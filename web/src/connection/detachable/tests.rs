use std::io::{Read, Write};
use std::pin::pin;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::*;

/// A connection's two ends: what the framework has, and the client's.
async fn connection() -> (Detachable, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (Detachable::new(listener.accept().await.unwrap().0, None), client)
}

/// Answers a `PUT` with its body, once it is told to.
struct Echo {
    told: Rc<Notify>,
    under_way: TaskTracker,
}

impl Shortcut for Echo {
    fn answer(&self, head: &httparse::Request<'_, '_>, body: &[u8]) -> Option<Answering> {
        let (told, body) = (Rc::clone(&self.told), body.to_vec());
        let is_put = head.method == Some("PUT");
        is_put.then(|| {
            Answering::new(self.under_way.token(), async move {
                told.notified().await;
                body
            })
        })
    }
}

/// A connection with a shortcut, whose framework has answered a first request.
pub async fn connection_with_shortcut() -> (Detachable, TcpStream, Rc<Notify>, TaskTracker) {
    let (told, under_way) = (Rc::<Notify>::default(), TaskTracker::new());
    under_way.close();
    let (mut framework, mut client) = connection().await;
    let echo = Echo { told: Rc::clone(&told), under_way: under_way.clone() };
    framework.0.borrow_mut().shortcut = Some(Rc::new(echo));
    told.notify_one();
    client.write_all(PUT.as_bytes()).await.unwrap();
    is_given(&mut framework, PUT).await;
    framework.write_all(b"0").await.unwrap();
    framework.flush().await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'0');
    assert!(told.notified().now_or_never().is_some(), "nobody else asked whether they were told");
    (framework, client, told, under_way)
}

pub const PUT: &str = "PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
pub const GET: &str = "GET / HTTP/1.1\r\n\r\n";

async fn is_given(framework: &mut Detachable, request: &str) {
    let mut piece = [0; 1000];
    let length = framework.read(&mut piece).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&piece[..length]), request);
}

#[tokio::test]
async fn what_the_shortcut_answers_the_framework_is_not_given() {
    let (mut framework, mut client, told, under_way) = connection_with_shortcut().await;
    client.write_all([PUT, PUT, GET].concat().as_bytes()).await.unwrap();
    let mut answers = [0; 4];
    {
        let mut given = pin!(is_given(&mut framework, GET));
        let mut answer = pin!(client.read_exact(&mut answers));
        poll_fn(|cx| {
            assert!(given.as_mut().poll(cx).is_pending() && answer.as_mut().poll(cx).is_pending());
            if under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        told.notify_one();
        let telling_again = async {
            tokio::task::yield_now().await;
            told.notify_one();
        };
        let (_, answer, ()) = tokio::join!(given, answer, telling_again);
        assert_eq!(answer.unwrap(), 4);
    }
    assert_eq!(&answers, b"{}{}");
    under_way.wait().await;
    framework.write_all(b"1").await.unwrap();
    framework.flush().await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'1');
}

#[tokio::test]
async fn there_is_a_shortcut_for_some_time_behind_an_answer_of_the_framework() {
    let (mut framework, mut client, _told, _) = connection_with_shortcut().await;
    let long_ago = Instant::now().checked_sub(SHORTCUT_FOR).unwrap();
    framework.0.borrow_mut().answered = Some(long_ago);
    client.write_all(PUT.as_bytes()).await.unwrap();
    is_given(&mut framework, PUT).await;
    framework.write_all(b"1").await.unwrap();
    framework.flush().await.unwrap();
    assert!(framework.0.borrow().answered.is_some_and(is_short_ago));
}

#[actix_web::test]
async fn behind_a_request_that_was_answered_before_it_was_whole_there_is_no_shortcut() {
    let (mut framework, mut client, _told, _) = connection_with_shortcut().await;
    let (head, body) = PUT.split_at(PUT.len() - 2);
    client.write_all(head.as_bytes()).await.unwrap();
    is_given(&mut framework, head).await;
    framework.write_all(b"refused").await.unwrap();
    framework.flush().await.unwrap();
    client.write_all([body, PUT].concat().as_bytes()).await.unwrap();
    is_given(&mut framework, body).await;
    is_given(&mut framework, PUT).await;
}

#[tokio::test]
async fn a_connection_that_is_ended_is_ended_behind_the_answer_that_is_under_way() {
    let (mut framework, mut client, told, under_way) = connection_with_shortcut().await;
    client.write_all(PUT.as_bytes()).await.unwrap();
    poll_fn(|cx| {
        let mut piece = [0; 1000];
        assert!(pin!(framework.read(&mut piece)).poll(cx).is_pending());
        if under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    assert!(framework.shutdown().now_or_never().is_none());
    told.notify_one();
    framework.shutdown().await.unwrap();
    assert!(under_way.is_empty());
    let mut all = String::new();
    client.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "{}");
}

#[tokio::test]
async fn the_socket_is_taken_when_everything_is_written_and_what_is_left_is_dead() {
    let (mut framework, mut client) = connection().await;
    let handler = framework.clone();
    // What was flushed before says nothing of what the framework has been given since.
    framework.flush().await.unwrap();
    let mut taking = Box::pin(handler.detached());
    assert!((&mut taking).now_or_never().is_none(), "the head is not written yet");
    framework.write_all(b"head").await.unwrap();
    assert!((&mut taking).now_or_never().is_none(), "more may follow");
    framework.flush().await.unwrap();
    let mut taken = taking.now_or_never().expect("all is written").unwrap();
    let aborted = |result: io::Result<()>| assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    aborted(framework.read_u8().await.map(drop));
    aborted(framework.write_all(b"x").await);
    aborted(framework.flush().await);
    aborted(framework.shutdown().await);
    aborted(handler.detached().now_or_never().expect("at once").map(drop));
    drop(framework);
    taken.write_all(b"body").unwrap();
    let mut text = [0; 8];
    client.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"headbody");
    client.write_all(b"?").await.unwrap();
    client.shutdown().await.unwrap();
    taken.set_nonblocking(false).unwrap();
    let mut heard = String::new();
    taken.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "?");
}

#[tokio::test]
async fn what_is_written_leaves_at_once() {
    let (framework, _client) = connection().await;
    assert!(framework.0.borrow().stream.as_ref().is_some_and(|stream| stream.nodelay().unwrap()));
}

#[tokio::test]
async fn what_is_longer_than_it_came_is_given_in_pieces_before_what_came_behind_it() {
    let (mut framework, mut client) = connection().await;
    client.write_all(b"GET /?\"\" HTTP/1.1\r\n\r\n").await.unwrap();
    let mut piece = [0; 22];
    let length = framework.read(&mut piece).await.unwrap();
    client.write_all(b"GET /").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = [0; 100];
    let more = framework.read(&mut rest).await.unwrap();
    framework.write_all(b"answer").await.unwrap();
    framework.flush().await.unwrap();
    let mut last = String::new();
    framework.read_to_string(&mut last).await.unwrap();
    let head = String::from_utf8_lossy(&[&piece[..length], &rest[..more]].concat()).into_owned();
    assert_eq!((&*head, &*last), ("GET /?%22%22 HTTP/1.1\r\n\r\n", "GET /"));
}

#[tokio::test]
async fn a_request_is_given_when_the_answer_to_the_one_before_is_on_its_way_and_none_behind_the_last() {
    let (mut framework, mut client) = connection().await;
    let requests = ["PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "HEAD /<a> HTTP/1.1\r\n\r\n"];
    let (last, refused) = ("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n", "PUT /c HTTP/1.1\r\n\r\n");
    client.write_all([requests[0], requests[1], last, refused].concat().as_bytes()).await.unwrap();
    let mut piece = [0; 1000];
    for expected in [requests[0], "HEAD /%3Ca%3E HTTP/1.1\r\n\r\n", last] {
        let length = framework.read(&mut piece).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&piece[..length]), expected);
        let mut next = [0; 1];
        assert!(framework.read(&mut next).now_or_never().is_none(), "nothing is written");
        framework.flush().await.unwrap();
        assert!(framework.read(&mut next).now_or_never().is_none(), "nor is it by a flush");
        framework.write_all(b"answer").await.unwrap();
        assert!(framework.read(&mut next).now_or_never().is_none(), "more of it may follow");
        framework.flush().await.unwrap();
    }
    assert!(framework.read(&mut piece).now_or_never().is_none(), "nothing comes behind the last");
}

#[tokio::test]
async fn no_request_is_given_while_an_answer_goes_on() {
    for last in [&b"last"[..], b""] {
        let (mut framework, mut client) = connection().await;
        let handler = framework.clone();
        let request = "GET /a HTTP/1.1\r\n\r\n";
        client.write_all(request.repeat(2).as_bytes()).await.unwrap();
        let mut piece = [0; 1000];
        assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
        let going_on = handler.answer_goes_on();
        for _ in 0..3 {
            framework.write_all(b"piece").await.unwrap();
            framework.flush().await.unwrap();
            assert!(framework.read(&mut piece).now_or_never().is_none());
        }
        drop(going_on);
        assert!(framework.read(&mut piece).now_or_never().is_none(), "its end may not be written yet");
        framework.write_all(last).await.unwrap();
        framework.flush().await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
    }
}

#[tokio::test]
async fn what_asks_for_a_body_is_no_answer() {
    let head = "PUT /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    for (first, rest) in [(head, "{}"), (&*[head, "{}"].concat(), "")] {
        let (mut framework, mut client) = connection().await;
        let mut piece = [0; 1000];
        client.write_all(first.as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), first.len());
        // Whole, and what is left of it where the client's end took a part.
        for written in [CONTINUE, &CONTINUE[9..]] {
            framework.write_all(written).await.unwrap();
            framework.flush().await.unwrap();
        }
        client.write_all([rest, head].concat().as_bytes()).await.unwrap();
        if !rest.is_empty() {
            assert_eq!(framework.read(&mut piece).await.unwrap(), rest.len());
        }
        assert!(framework.read(&mut piece).now_or_never().is_none());
        framework.write_all(b"answer").await.unwrap();
        framework.flush().await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
    }
}

#[actix_web::test]
async fn behind_a_request_that_was_answered_before_it_was_whole_the_next_is_given() {
    let (mut framework, mut client) = connection().await;
    let (head, body) = ("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", "{}");
    let mut piece = [0; 1000];
    client.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
    framework.write_all(b"refused").await.unwrap();
    framework.flush().await.unwrap();
    client.write_all([body, head].concat().as_bytes()).await.unwrap();
    assert_eq!(framework.read(&mut piece).await.unwrap(), body.len());
    assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
}

#[tokio::test]
async fn behind_a_request_whose_early_answer_goes_on_the_next_is_not_given() {
    let (mut framework, mut client) = connection().await;
    let (head, body) = ("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", "{}");
    let mut piece = [0; 1000];
    client.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
    let going_on = framework.answer_goes_on();
    framework.write_all(b"piece").await.unwrap();
    framework.flush().await.unwrap();
    client.write_all([body, head].concat().as_bytes()).await.unwrap();
    assert_eq!(framework.read(&mut piece).await.unwrap(), body.len());
    assert!(framework.read(&mut piece).now_or_never().is_none());
    drop(going_on);
    framework.flush().await.unwrap();
    assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
}

#[actix_web::test]
async fn what_a_client_has_begun_is_watched_until_it_ends() {
    let (mut framework, mut client) = connection().await;
    let handler = framework.clone();
    let is_watched = || handler.0.borrow().unfinished.is_some();
    let mut piece = [0; 1000];
    let chunked = ["PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\n{}\r\n", "0\r\n\r\n"];
    for _ in 0..2 {
        let (line, rest) = ("GET / HTTP/1.1\r\n", "Host: a\r\n\r\n");
        client.write_all(line.as_bytes()).await.unwrap();
        {
            let mut reading = pin!(framework.read(&mut piece));
            poll_fn(|cx| {
                assert!(reading.as_mut().poll(cx).is_pending(), "it is no head yet");
                if is_watched() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            client.write_all(rest.as_bytes()).await.unwrap();
            assert_eq!(reading.await.unwrap(), line.len() + rest.len());
        }
        assert!(!is_watched(), "its head is whole");
        framework.write_all(b"answer").await.unwrap();
        framework.flush().await.unwrap();
        assert!(!is_watched(), "nothing is begun");
        for part in &chunked[..2] {
            client.write_all(part.as_bytes()).await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), part.len());
            assert!(!is_watched(), "who reads the body has a patience of its own");
        }
        framework.write_all(b"answer").await.unwrap();
        framework.flush().await.unwrap();
        assert!(is_watched(), "nobody reads it any more");
        client.write_all(chunked[2].as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), chunked[2].len());
        assert!(!is_watched(), "it is whole");
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_its_answer_is_noticed() {
    let (mut framework, mut client) = connection().await;
    let request = b"GET / HTTP/1.1\r\n\r\n";
    for behind in [0, 1, 2] {
        let mut piece = [0; 100];
        client.write_all(&request.repeat(1 + behind)).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
        assert!(framework.read(&mut piece).now_or_never().is_none());
        drop(client);
        assert_eq!(framework.read(&mut piece).await.unwrap(), 0, "{behind} behind it");
        (framework, client) = connection().await;
    }
}

#[tokio::test]
async fn who_is_no_part_of_the_connection_takes_it_between_what_is_written() {
    let (mut framework, _client) = connection().await;
    let task = framework.clone();
    framework.write_all(b"half").await.unwrap();
    assert!(task.detach_if_written().is_none(), "not flushed");
    framework.flush().await.unwrap();
    assert!(task.detach_if_written().is_some_and(|taken| taken.is_ok()));
}
