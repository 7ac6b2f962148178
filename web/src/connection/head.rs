//! Heads of requests that the framework takes for something else than their senders mean, made what they mean.
//!
//! Targets as people type them, quotes and all: CouchDB's documentation has `curl '.../_all_docs?startkey="a"'`.
//! CouchDB takes them; the framework would refuse them, without a word, before anything here is asked.
//!
//! Offers to go on in another protocol than WebSocket: in HTTP/2, which Java's client makes with each request, or in
//! one that is not named, by a proxy that says `Connection: upgrade` of every request. Who does not take them passes
//! over them (RFC 9110, 7.8). The framework would say that it does, and end the connection behind its answer.
//!
//! WebSockets among other protocols to go over to. The framework answers that it goes over, and does not.

use std::borrow::Cow;
use std::mem::{MaybeUninit, take};

use httparse::{Header, Request, Status};
use percent_encoding::{AsciiSet, percent_encode};

use super::chunks::Chunks;

/// What the framework takes in no query, or in no path. Bytes beyond ASCII are escaped too.
const ESCAPED: &AsciiSet = &AsciiSet::EMPTY.add(b'"').add(b'<').add(b'>').add(b'`');

/// More of a head that is not whole is not kept: it is then given as it came, and refused. The framework takes no more.
const KEPT_BYTES_MAX: usize = 1 << 17;
const LINE_END: &[u8] = b"\r\n";
const WEBSOCKET: &[u8] = b"websocket";

/// With more the framework refuses a head.
const HEADERS_MAX: usize = 96;

/// The requests that come over a connection, byte by byte. Bodies are counted off, so that nothing in them is taken for
/// a head.
#[derive(Default)]
pub struct Requests {
    next: Next,
    /// Whether that is of the last request.
    is_last: bool,
    /// The beginning of a head.
    kept: Vec<u8>,
}

/// What comes next.
#[derive(Default, Clone, Copy)]
enum Next {
    #[default]
    Head,
    /// So many bytes, up to the end of a body.
    Body(u64),
    /// A body in chunks.
    Chunks(Chunks),
    /// What is not looked at: there is no telling where the next head begins, or that there is one. The framework ends
    /// the connection behind its answer, unless it is a WebSocket from there on.
    Anything,
}

/// What is to be made of what came in one piece, up to the end of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// What to read in place of it; `None` where that is the same. It may be nothing until more comes.
    pub made: Option<Vec<u8>>,
    /// How many bytes, at the end of the piece, lie behind it and were not looked at.
    pub behind: usize,
    /// Whether a request ends with it.
    pub ended: Option<Ended>,
}

/// A request that came as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Nothing may come behind it: its sender said that the connection is to end, or did not say that it is not.
    pub is_last: bool,
}

impl Requests {
    /// Reads what came in one piece, up to the end of the request that is begun or begins with it. A request that came
    /// as a whole, and may be followed by others, is offered to `is_taken`, its head and its body; one that is
    /// taken is as if it had not come.
    pub fn read(&mut self, piece: &[u8], is_taken: impl FnOnce(&Request<'_, '_>, &[u8]) -> bool) -> Read {
        if self.kept.is_empty() {
            return self.read_whole(piece, is_taken);
        }
        self.kept.extend_from_slice(piece);
        // No head ends within a line: all of it is not read anew with each byte.
        if !piece.contains(&b'\n') && self.kept.len() <= KEPT_BYTES_MAX {
            return Read { made: Some(Vec::new()), behind: 0, ended: None };
        }
        let mut whole = take(&mut self.kept);
        let Read { made, behind, ended } = self.read_whole(&whole, is_taken);
        whole.truncate(whole.len() - behind);
        Read { made: Some(made.unwrap_or(whole)), behind, ended }
    }

    /// Whether a part of a request's head has come, and not all of it. Empty lines before it are none: some clients
    /// send one behind a body (RFC 9112, 2.2).
    pub fn is_in_head(&self) -> bool {
        matches!(self.next, Next::Head) && self.kept.iter().any(|byte| !LINE_END.contains(byte))
    }

    /// Whether a request's head has come, and not all of its body.
    pub fn is_in_body(&self) -> bool {
        matches!(self.next, Next::Body(_) | Next::Chunks(_))
    }

    /// Nothing comes any more: gives what was kept.
    pub fn end(&mut self) -> Vec<u8> {
        take(&mut self.kept)
    }

    fn read_whole(&mut self, piece: &[u8], is_taken: impl FnOnce(&Request<'_, '_>, &[u8]) -> bool) -> Read {
        let (mut meant, mut head_end, mut at) = (None, 0, 0);
        let (mut ended, mut is_taken) = (None, Some(is_taken));
        while at < piece.len() && ended.is_none() {
            let rest = &piece[at..];
            let (length, next) = match self.next {
                Next::Head => match Head::of(rest, &mut is_taken) {
                    Head::Taken { length } => {
                        return Read { made: Some(Vec::new()), behind: rest.len() - length, ended };
                    }
                    Head::Whole { length, behind, is_last, meant: head } => {
                        (meant, head_end, self.is_last) = (head, length, is_last);
                        (length, behind)
                    }
                    Head::Begun if rest.len() <= KEPT_BYTES_MAX => {
                        self.kept = rest.to_vec();
                        return Read { made: Some(Vec::new()), behind: 0, ended };
                    }
                    Head::Begun | Head::None => (0, Next::Anything),
                },
                Next::Body(left) => {
                    let length = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    (length, Next::behind_body(left - length as u64))
                }
                Next::Chunks(chunks) => {
                    let (length, chunks) = chunks.read(rest);
                    (length, chunks.map_or(Next::Head, Next::Chunks))
                }
                Next::Anything => (rest.len(), Next::Anything),
            };
            (at, self.next) = (at + length, next);
            ended = matches!(next, Next::Head).then_some(Ended { is_last: self.is_last });
        }
        let made = meant.map(|head| [&head, &piece[head_end..at]].concat());
        Read { made, behind: piece.len() - at, ended }
    }
}

impl Next {
    /// What comes where so much of a body does.
    fn behind_body(bytes: u64) -> Next {
        if bytes == 0 { Next::Head } else { Next::Body(bytes) }
    }

    /// The body that comes next, where it is counted and has come as a whole.
    fn body(self, came: &[u8]) -> Option<&[u8]> {
        match self {
            Next::Head => Some(&[]),
            Next::Body(bytes) => came.get(..usize::try_from(bytes).ok()?),
            Next::Chunks(_) | Next::Anything => None,
        }
    }

    /// What comes behind a head, as the framework takes it. Only a body whose end is beyond doubt is counted off.
    fn behind_head(request: &Request<'_, '_>) -> Next {
        let (mut body, mut is_chunked) = (None, false);
        for Header { name, value } in request.headers.iter() {
            if name.eq_ignore_ascii_case("transfer-encoding") {
                if is_chunked || !value.eq_ignore_ascii_case(b"chunked") || request.version == Some(0) {
                    return Next::Anything;
                }
                is_chunked = true;
            }
            if name.eq_ignore_ascii_case("content-length") {
                let length =
                    std::str::from_utf8(value).ok().filter(|value| value.bytes().all(|digit| digit.is_ascii_digit()));
                match (body, length.and_then(|length| length.parse().ok())) {
                    (None, Some(length)) => body = Some(length),
                    _ => return Next::Anything,
                }
            }
        }
        match (body, is_chunked) {
            (Some(_), true) => Next::Anything,
            (None, true) => Next::Chunks(Chunks::BEGIN),
            _ if offers_websocket(request) => Next::Anything,
            (None | Some(0), false) if request.method == Some("CONNECT") => Next::Anything,
            (bytes, false) => Next::behind_body(bytes.unwrap_or(0)),
        }
    }
}

/// What bytes begin with.
enum Head {
    /// One of a request of so many bytes, which was taken.
    Taken { length: usize },
    /// A head of so many bytes, and what it is to be in their place.
    Whole { length: usize, behind: Next, is_last: bool, meant: Option<Vec<u8>> },
    /// The beginning of one.
    Begun,
    /// What cannot be one.
    None,
}

impl Head {
    fn of(bytes: &[u8], is_taken: &mut Option<impl FnOnce(&Request<'_, '_>, &[u8]) -> bool>) -> Head {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut request = Request::new(&mut []);
        match request.parse_with_uninit_headers(bytes, &mut headers) {
            Ok(Status::Complete(length)) => {
                let (behind, is_last) = (Next::behind_head(&request), is_last(&request));
                let body = if is_last { None } else { behind.body(&bytes[length..]) };
                if let Some(body) = body
                    && is_taken.take().is_some_and(|is_taken| is_taken(&request, body))
                {
                    return Head::Taken { length: length + body.len() };
                }
                Head::Whole { length, behind, is_last, meant: meant(&request) }
            }
            Ok(Status::Partial) => Head::Begun,
            Err(_) => Head::None,
        }
    }
}

/// Whether nothing may follow a request: RFC 9112, 9.3 and 9.6, and nothing is known of what may follow an upgrade.
fn is_last(request: &Request<'_, '_>) -> bool {
    says(request, b"close")
        || (says(request, b"upgrade") && offers_websocket(request))
        || (request.version == Some(0) && !says(request, b"keep-alive"))
}

/// Whether a WebSocket is among the protocols of an `Upgrade` header.
pub fn is_websocket(upgrade: &[u8]) -> bool {
    upgrade.split(|byte| *byte == b',').any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(WEBSOCKET))
}

/// Whether a request offers a WebSocket, by itself or among other protocols.
fn offers_websocket(request: &Request<'_, '_>) -> bool {
    headers(request, "upgrade").any(|header| is_websocket(header.value))
}

/// Whether a request offers a WebSocket and other protocols: in one list, or line by line.
fn has_choice(request: &Request<'_, '_>) -> bool {
    let protocols = headers(request, "upgrade").flat_map(|header| header.value.split(|byte| *byte == b','));
    offers_websocket(request) && protocols.count() > 1
}

/// Whether a request says this of its connection.
fn says(request: &Request<'_, '_>, what: &[u8]) -> bool {
    let mut options = headers(request, "connection")
        .flat_map(|header| header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    options.any(|option| option.eq_ignore_ascii_case(what))
}

/// A request's headers of this name.
fn headers<'h>(request: &'h Request<'_, '_>, name: &str) -> impl Iterator<Item = &'h Header<'h>> {
    request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name))
}

/// The head that is meant, if that is another one.
fn meant(request: &Request<'_, '_>) -> Option<Vec<u8>> {
    let target = Cow::from(percent_encode(request.path?.as_bytes(), ESCAPED));
    let has_offer = has_offer(request);
    let has_choice = has_choice(request);
    if matches!(target, Cow::Borrowed(_)) && !has_offer && !has_choice {
        return None;
    }
    let mut head = format!("{} {target} HTTP/1.{}\r\n", request.method?, request.version?).into_bytes();
    for Header { name, value } in request.headers.iter() {
        let value = match *value {
            value if has_offer => without_offer(name, value),
            _ if has_choice && name.eq_ignore_ascii_case("upgrade") => None,
            value => Some(value.into()),
        };
        if let Some(value) = value {
            head.extend_from_slice(&[name.as_bytes(), b": ", &value, b"\r\n"].concat());
        }
    }
    if has_choice {
        head.extend_from_slice(&[b"Upgrade: ", WEBSOCKET, LINE_END].concat());
    }
    head.extend_from_slice(LINE_END);
    Some(head)
}

/// Whether a request offers to go over to something that is passed over.
fn has_offer(request: &Request<'_, '_>) -> bool {
    let offers = says(request, b"upgrade") || headers(request, "upgrade").next().is_some();
    offers && !offers_websocket(request)
}

/// A header's value without what it says of the offer; `None` where it says nothing else.
fn without_offer<'v>(name: &str, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
    const OF_OFFER: [&str; 2] = ["upgrade", "http2-settings"];
    if OF_OFFER.iter().any(|header| name.eq_ignore_ascii_case(header)) {
        return None;
    }
    if !name.eq_ignore_ascii_case("connection") {
        return Some(Cow::Borrowed(value));
    }
    let is_of_offer = |option: &&[u8]| OF_OFFER.iter().any(|it| option.eq_ignore_ascii_case(it.as_bytes()));
    let options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let others: Vec<&[u8]> = options.filter(|option| !option.is_empty() && !is_of_offer(option)).collect();
    (!others.is_empty()).then(|| Cow::Owned(others.join(&b", "[..])))
}

#[cfg(test)]
mod tests;
