use proptest::prelude::*;

use super::*;

fn not_taken(_: &Request<'_, '_>, _: &[u8]) -> bool {
    false
}

/// What is read of what comes in these pieces, and how many requests ended with one.
fn read_and_count<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<u8>, usize) {
    let mut requests = Requests::default();
    let (mut all, mut count) = (Vec::new(), 0);
    for mut piece in pieces {
        while !piece.is_empty() {
            let Read { made, behind, ended } = requests.read(piece, not_taken);
            let (read, rest) = piece.split_at(piece.len() - behind);
            all.extend(made.unwrap_or_else(|| read.to_vec()));
            count += usize::from(ended.is_some());
            piece = rest;
        }
    }
    all.extend(requests.end());
    (all, count)
}

fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<u8> {
    read_and_count(pieces).0
}

#[test]
fn a_piece_is_read_up_to_the_end_of_a_request() {
    let (plain, last) = (Some(Ended { is_last: false }), Some(Ended { is_last: true }));
    for (first, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", plain),
        ("PUT /db/a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", plain),
        ("PUT /db/a HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b\r\n{\r\n01\r\n}\r\n0\r\n\r\n", plain),
        ("POST /db HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", plain),
        ("GET / HTTP/1.1\r\nX-Upgrade: another\r\n\r\n", plain),
        ("CONNECT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\n1", plain),
        ("CONNECT /a HTTP/1.1\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n", plain),
        ("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", last),
        ("PUT /db/a HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", last),
        ("GET / HTTP/1.0\r\n\r\n", last),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", plain),
    ] {
        let sent = [first, "HEAD /db/b HTTP/1.1\r\n"].concat();
        let behind = sent.len() - first.len();
        assert_eq!(
            Requests::default().read(sent.as_bytes(), not_taken),
            Read { made: None, behind, ended: expected },
            "{first}"
        );
        let (begin, end) = sent.as_bytes().split_at(first.len() - 3);
        let mut requests = Requests::default();
        assert_eq!(requests.read(begin, not_taken).ended, None, "{first}");
        let read = requests.read(end, not_taken);
        assert_eq!((read.behind, read.ended), (behind, expected), "{first}");
    }
}

#[test]
fn a_request_that_came_as_a_whole_and_is_not_the_last_may_be_taken() {
    let (head, body, next) = ("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", "{}", "GET / HTTP/1.1\r\n");
    let read = |pieces: [&str; 2]| {
        let (mut requests, mut offered) = (Requests::default(), Vec::new());
        let read = pieces.map(|piece| {
            requests.read(piece.as_bytes(), |request, body| {
                offered.push((request.method.unwrap().to_owned(), body.to_vec()));
                true
            })
        });
        let left = String::from_utf8(requests.end()).unwrap();
        (read.map(|read| (read.made.map(|made| made.len()), read.behind, read.ended.is_some())), offered, left)
    };
    let put = vec![("PUT".to_owned(), b"{}".to_vec())];
    let whole = [head, body, next].concat();
    assert_eq!(
        read([&whole, next]),
        ([(Some(0), next.len(), false), (Some(0), 0, false)], put.clone(), next.to_owned())
    );
    let in_two = read([&head[..9], &[&head[9..], body].concat()]);
    assert_eq!(in_two, ([(Some(0), 0, false); 2], put, String::new()), "a head in two pieces");
    let (_, offered, _) = read([head, body]);
    assert_eq!(offered, [], "its body comes later");
    let none = read(["GET /a HTTP/1.1\r\n\r\n", ""]).1;
    assert_eq!(none, [("GET".to_owned(), Vec::new())], "no body");
    for more in ["Connection: close\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 2\r\n"] {
        let other = head.replacen("\r\n", &format!("\r\n{more}"), 1);
        assert_eq!(read([&[&other, body].concat(), ""]).1, [], "{more}");
    }
}

#[test]
fn empty_lines_before_a_head_begin_none() {
    let mut requests = Requests::default();
    for (piece, is_in_head) in [("\r\n", false), ("\r\n\r", false), ("\nGET", true), (" / HTTP/1.1\r\n\r\n", false)] {
        requests.read(piece.as_bytes(), not_taken);
        assert_eq!(requests.is_in_head(), is_in_head, "{piece:?}");
    }
}

#[track_caller]
fn assert_read(sent: &str, expected: &str) {
    assert_eq!(String::from_utf8_lossy(&read([sent.as_bytes()])), expected);
}

#[test]
fn what_people_type_into_a_target_is_escaped_and_nothing_else() {
    let typed = "GET /db/_all_docs?startkey=\"ä<b>`\" HTTP/1.1\r\nX: \"ä\"\r\n\r\n";
    let escaped = "GET /db/_all_docs?startkey=%22%C3%A4%3Cb%3E%60%22 HTTP/1.1\r\nX: \"ä\"\r\n\r\n";
    assert_read(typed, escaped);
    let body = "GET /<ä> HTTP/1.1\r\n\r\n";
    let with_body = |head: &str| format!("{}Content-Length: {}\r\n\r\n{body}", &head[..head.len() - 2], body.len());
    assert_read(&[&with_body(typed), typed].concat(), &[&with_body(escaped), escaped].concat());
}

#[test]
fn an_offer_to_go_on_in_another_protocol_is_passed_over() {
    let body = "Content-Length: 17\r\n\r\n{\"Upgrade\":\"h2c\"}";
    for (offer, left) in [
        (
            "Connection: Upgrade, HTTP2-Settings\r\nHost: here\r\nHTTP2-Settings: AAEAA\r\nUpgrade: h2c\r\n",
            "Host: here\r\n",
        ),
        ("connection:keep-alive,upgrade\r\nX-A: h2c\r\nupgrade:H2C\r\n", "connection: keep-alive\r\nX-A: h2c\r\n"),
        // These ended the connection, without a word of it.
        ("Connection: upgrade\r\n", ""),
        ("Connection: Upgrade\r\nUpgrade: h2c, TLS/1.2\r\n", ""),
        ("Connection: keep-alive, Upgrade\r\nUpgrade: foo\r\nUpgrade: bar\r\n", "Connection: keep-alive\r\n"),
        ("Upgrade: websockets, x-websocket\r\nX-Upgrade: websocket, foo\r\n", "X-Upgrade: websocket, foo\r\n"),
    ] {
        let request = |headers: &str| format!("POST /db HTTP/1.1\r\n{headers}{body}");
        assert_read(&request(offer).repeat(2), &request(left).repeat(2));
    }
}

/// The framework answered that it goes over to WebSocket, and went on in HTTP.
#[test]
fn of_several_protocols_to_go_over_to_websocket_is_chosen() {
    let request = |upgrade: &str| format!("GET /_feed HTTP/1.1\r\nConnection: Upgrade\r\nX-A: b\r\n{upgrade}\r\n\r\n");
    let frames = "GET /<a> HTTP/1.1\r\n\r\n";
    for upgrade in [
        "Upgrade: websocket, foo",
        "Upgrade: foo/2,WebSocket",
        "Upgrade: h2c , websocket ",
        "Upgrade: foo\r\nUpgrade: websocket",
        "upgrade: foo, bar\r\nupgrade: websocket, h2c",
    ] {
        let expected = [&request("Upgrade: websocket"), frames].concat();
        assert_read(&[&request(upgrade), frames].concat(), &expected);
    }
}

#[test]
fn what_cannot_be_told_apart_for_certain_stays_as_it_is() {
    let typed = "GET /<a> HTTP/1.1\r\n\r\n";
    for first in [
        "GET /_feed HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET /_feed HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        "CONNECT /a HTTP/1.1\r\n\r\n",
        "POST /db HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /db HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /db HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /db HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "PUT /db/a HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "PUT /db/a HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}",
        "PUT /db/a HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "no request\r\n\r\n",
        "{\"log\":\"",
    ] {
        let sent = [first, typed].concat();
        assert_read(&sent, &sent);
    }
    let long = format!("GET /<{} HTTP/1.1\r\n\r\n", "a".repeat(2 * KEPT_BYTES_MAX));
    assert!(read(long.as_bytes().chunks(1000)) == long.as_bytes(), "no more is kept");
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let like_a_head = "GET /<ä>?q=\"b\" HTTP/1.1\r\nUpgrade: h2c\r\n\r\n".repeat(3).into_bytes();
    prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 0..60), Just(like_a_head)]
}

fn any_target() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["/a", "/<a>", "/\"ä\""][..])
}

fn in_chunks(body: &[u8], length: usize) -> Vec<u8> {
    let chunk = |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    let mut chunks: Vec<u8> = body.chunks(length).flat_map(chunk).collect();
    chunks.extend(chunk(b""));
    chunks
}

proptest! {
    #[test]
    fn however_requests_are_cut_their_heads_are_what_is_meant_and_their_bodies_what_was_sent(
        requests in prop::collection::vec((any_target(), any::<bool>(), any_body(), prop::option::of(1_usize..70)), 1..5),
        length in 1_usize..80,
    ) {
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for (target, offers, body, chunks_of) in &requests {
            let escaped = target.replace('<', "%3C").replace('>', "%3E").replace('"', "%22").replace('ä', "%C3%A4");
            let offer = if *offers { "Upgrade: h2c\r\n" } else { "" };
            let (behind, body) = match chunks_of {
                None => (format!("Content-Length: {}\r\n\r\n", body.len()), body.clone()),
                Some(length) => ("Transfer-Encoding: chunked\r\n\r\n".to_owned(), in_chunks(body, *length)),
            };
            sent.extend([format!("PUT {target} HTTP/1.1\r\n{offer}{behind}").as_bytes(), &body].concat());
            expected.extend([format!("PUT {escaped} HTTP/1.1\r\n{behind}").as_bytes(), &body].concat());
        }
        prop_assert_eq!(read_and_count(sent.chunks(length)), (expected, requests.len()));
    }
}
