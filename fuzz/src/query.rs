//! Requests: path, query and the options in them.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use seqtide_server::seam;

/// A path, a query and a body, a line each (the body may have more): each parser takes it or says what is wrong.
///
/// # Panics
/// When that does not hold.
pub fn check(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (path, query, body) = (next(), next(), next());
    let (Ok(path), Ok(query)) = (std::str::from_utf8(path), std::str::from_utf8(query)) else {
        return;
    };
    check_query(query);
    let refused = [("path", seam::path(path))].into_iter().chain(seam::options(query, body));
    for (parser, refused) in refused.filter_map(|(parser, read)| Some((parser, read.err()?))) {
        let client_error = (400..500).contains(&refused.status) || refused.status == 501;
        assert!(client_error && !refused.reason.is_empty(), "{parser} answers {refused:?}");
    }
}

/// What a query says, written in another way, says the same.
fn check_query(query: &str) {
    let Ok(pairs) = seam::pairs(query) else {
        return;
    };
    let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let written: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
    assert_eq!(seam::pairs(&written.join("&")), Ok(pairs), "of {query:?}");
}
