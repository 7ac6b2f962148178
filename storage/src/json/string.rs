//! Strings in JSON text: finding their end, reading their escapes, writing them.

use std::borrow::Cow;

/// Where a string's text ends, and whether it has escapes.
pub(super) struct Scanned {
    /// The offset after the closing quote.
    pub end: usize,
    /// Whether there is a backslash in it.
    pub escaped: bool,
}

/// Checks the string whose opening quote is at `at`. `None` when it does not end, or has a raw control character, an
/// unknown escape or half a surrogate pair in it.
pub(super) fn scan(bytes: &[u8], at: usize) -> Option<Scanned> {
    let mut end = at + 1;
    let mut escaped = false;
    loop {
        end += plain_run(bytes.get(end..)?);
        match bytes.get(end)? {
            b'"' => return Some(Scanned { end: end + 1, escaped }),
            b'\\' => (_, end) = read_escape(bytes, end)?,
            _ => return None,
        }
        escaped = true;
    }
}

/// How many bytes pass before a quote, a backslash or a control character. Eight are looked at together.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // Has the high bit of each byte below `bound` set; the lowest one that is set is right, whatever lies above it.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & (ONES << 7);
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let ends = below(word, b' ') | is(word, b'"') | is(word, b'\\');
        if ends != 0 {
            return at * 8 + ends.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + rest.iter().take_while(|&&byte| !ends_run(byte)).count()
}

fn ends_run(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}

/// Reads the escape whose backslash is at `at`: the character it stands for, and the offset after it.
fn read_escape(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let simple = match bytes.get(at + 1)? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return read_unicode_escape(bytes, at),
        _ => return None,
    };
    Some((simple, at + 2))
}

fn read_unicode_escape(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let first = read_hex4(bytes, at + 2)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, at + 6));
    }
    if bytes.get(at + 6..at + 8)? != b"\\u" {
        return None;
    }
    let second = read_hex4(bytes, at + 8)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?, at + 12))
}

fn read_hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, byte| Some(value * 16 + char::from(*byte).to_digit(16)?))
}

/// The characters that a checked text between quotes stands for.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = inner.find('\\') else {
        return Cow::Borrowed(inner);
    };
    let mut out = String::with_capacity(inner.len());
    out.push_str(&inner[..first]);
    let mut at = first;
    while let Some((character, after)) = read_escape(inner.as_bytes(), at) {
        out.push(character);
        at = inner[after..].find('\\').map_or(inner.len(), |plain| after + plain);
        out.push_str(&inner[after..at]);
    }
    Cow::Owned(out)
}

/// The characters of a checked JSON value if it is a string.
pub(super) fn value_as_string(value: &str) -> Option<Cow<'_, str>> {
    value.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

/// Writes text as a JSON string. Only what JSON asks for is escaped, in CouchDB's spelling: the short form where there
/// is one, else `\u001F` with upper-case digits; `/`, DEL and all beyond ASCII stay as they are.
///
/// Source: `enc_string` of jiffy, CouchDB's JSON library.
pub fn write_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, from_special) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&special, after)) = from_special.split_first() else {
            break;
        };
        write_escape(out, special);
        rest = after;
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            return out.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
        }
    };
    out.extend([b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_ends_before_the_first_byte_that_ends_one(
            plain in prop::collection::vec(prop_oneof![Just(b' '), Just(b'!'), Just(b'#'), Just(b'['), 0x7fu8..], 0..40),
            end in prop::option::of(prop_oneof![Just(b'"'), Just(b'\\'), 0u8..0x20]),
            behind: [u8; 8],
        ) {
            let length = plain.len();
            let bytes: Vec<u8> = plain.into_iter().chain(end).chain(end.map(|_| behind).into_iter().flatten()).collect();
            prop_assert_eq!(plain_run(&bytes), length);
        }
    }
}
