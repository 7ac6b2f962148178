//! Numbers in JSON text.

/// With fewer digits before the point, and no exponent, a number is surely within a double.
const SAFE_INTEGER_DIGITS: usize = 300;

/// Finds the end of the number that starts at `at`. `None` when it is no JSON number or a float beyond a double;
/// integers have no bound.
pub(super) fn scan(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let whole = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = match bytes.get(whole)? {
        b'0' => whole + 1,
        _ => digits(bytes, whole)?,
    };
    let mut in_doubt = end - whole > SAFE_INTEGER_DIGITS;
    let mut float = false;
    if bytes.get(end) == Some(&b'.') {
        end = digits(bytes, end + 1)?;
        float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits(bytes, end + 1 + usize::from(signed))?;
        (float, in_doubt) = (true, true);
    }
    let fits = !(float && in_doubt) || text[at..end].parse::<f64>().is_ok_and(f64::is_finite);
    fits.then_some(end)
}

/// The end of a run of at least one digit.
fn digits(bytes: &[u8], at: usize) -> Option<usize> {
    let count = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then_some(at + count)
}

/// Tells whether a number's text is a float: CouchDB keeps `1` and `1.0` apart, and `1e2` is a float.
pub(super) fn is_float(number: &str) -> bool {
    number.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}
