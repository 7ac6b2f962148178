//! The head of an HTTP/1.1 answer: how it went, and how far its body goes.

use crate::Error;

/// Most headers an answer has.
const HEADERS_MAX: usize = 32;
/// Longest head that is waited for, in bytes.
const BYTES_MAX: usize = 16 * 1024;

/// A head that has come as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// How long it is, in bytes.
    pub bytes: usize,
    pub status: u16,
    pub body: BodyLength,
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// It has so many bytes.
    Known(usize),
    /// It comes in chunks, the last of which is empty.
    Chunked,
    /// It ends with the connection.
    UntilClose,
}

impl Head {
    /// `None` while it has not all come.
    pub fn parse(answer: &[u8]) -> Result<Option<Head>, Error> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let bytes = match response.parse(answer) {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) if answer.len() < BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) => return Err(unreadable("a head without an end", answer)),
            Err(why) => return Err(unreadable(why, answer)),
        };
        let status = response.code.unwrap_or_default();
        let header = |name: &str| response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        let body = match header("content-length") {
            Some(length) => {
                let length = std::str::from_utf8(length.value).ok().and_then(|value| value.parse().ok());
                BodyLength::Known(length.ok_or_else(|| unreadable("no length", answer))?)
            }
            None if status == 204 => BodyLength::Known(0),
            None if header("transfer-encoding").is_some_and(|coding| coding.value.ends_with(b"chunked")) => {
                BodyLength::Chunked
            }
            None => BodyLength::UntilClose,
        };
        Ok(Some(Head { bytes, status, body }))
    }

    /// Whether the request did what it was to do.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

fn unreadable(why: impl std::fmt::Display, answer: &[u8]) -> Error {
    let start = &answer[..answer.len().min(200)];
    Error::Protocol(format!("the answer is no HTTP: {why} in {:?}", String::from_utf8_lossy(start)))
}

/// The first line of a request, for errors.
pub(crate) fn first_line(request: &[u8]) -> String {
    String::from_utf8_lossy(&request[..request.len().min(200)]).lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_how_its_body_ends() {
        for (rest, body) in [
            ("Content-Length: 12", BodyLength::Known(12)),
            ("transfer-encoding: chunked", BodyLength::Chunked),
            ("Server: x", BodyLength::UntilClose),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{rest}\r\n\r\n{{");
            let expected = Head { bytes: text.len() - 1, status: 200, body };
            assert_eq!(Head::parse(text.as_bytes()).unwrap(), Some(expected), "{rest}");
            assert_eq!(Head::parse(&text.as_bytes()[..text.len() - 3]).unwrap(), None);
        }
        assert!(Head::parse(b"nonsense\r\n\r\n").is_err());
    }
}
