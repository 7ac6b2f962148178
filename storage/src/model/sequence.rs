//! The place of a change in a database's one total order.
//!
//! Source: CouchDB RFC 003, "Data model of `_changes`": an incarnation and a versionstamp, 13 bytes. Here the version
//! grows by one with each changed document, so that a fresh database counts 1, 2, 3; batch and user are zero.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// How many bits the integer form keeps for the version: an incarnation of 8 bits above it fits in 53.
const VERSION_BITS: u32 = 45;
const VERSION_MAX: u64 = (1 << VERSION_BITS) - 1;
/// Decimal forms end here, so that 26 digits are always the hexadecimal form.
const DECIMAL_DIGITS_MAX: usize = 18;

/// A place in the feed. Sorted by incarnation, then version; so do its bytes and its hexadecimal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence {
    /// Rises when the past may have changed: a restored backup, a moved database.
    pub incarnation: u8,
    /// Rises by one with each changed document, for the life of the database's name.
    pub version: u64,
    /// Reserved by the RFC, zero here.
    pub batch: u16,
    /// Reserved by the RFC, zero here.
    pub user: u16,
}

impl Sequence {
    /// How many bytes a sequence takes as a key.
    pub const BYTES: usize = 13;
    /// Before every change.
    pub const ZERO: Sequence = Sequence::new(0, 0);
    /// After every change.
    pub const MAX: Sequence = Sequence { incarnation: u8::MAX, version: u64::MAX, batch: u16::MAX, user: u16::MAX };

    /// The sequence of a version in an incarnation.
    pub const fn new(incarnation: u8, version: u64) -> Sequence {
        Sequence { incarnation, version, batch: 0, user: 0 }
    }

    /// The sequence of the next changed document.
    pub fn next(self) -> Sequence {
        Sequence::new(self.incarnation, self.version + 1)
    }

    /// The place directly before this one, for ranges that end short of it; zero has none and stays.
    pub fn before(self) -> Sequence {
        let Sequence { incarnation, version, batch, user } = self;
        match (incarnation, version, batch, user) {
            (_, _, _, 1..) => Sequence { user: user - 1, ..self },
            (_, _, 1.., _) => Sequence { batch: batch - 1, user: u16::MAX, ..self },
            (_, 1.., _, _) => Sequence { version: version - 1, batch: u16::MAX, user: u16::MAX, ..self },
            (1.., _, _, _) => Sequence { incarnation: incarnation - 1, ..Sequence::MAX },
            _ => self,
        }
    }

    /// The 13 bytes of the key, each field big-endian, so that LMDB's byte order is feed order.
    pub fn to_bytes(self) -> [u8; Sequence::BYTES] {
        let mut out = [0u8; Sequence::BYTES];
        out[0] = self.incarnation;
        out[1..9].copy_from_slice(&self.version.to_be_bytes());
        out[9..11].copy_from_slice(&self.batch.to_be_bytes());
        out[11..13].copy_from_slice(&self.user.to_be_bytes());
        out
    }

    /// Reads the 13 bytes of a key.
    pub fn from_bytes(bytes: &[u8; Sequence::BYTES]) -> Sequence {
        let [incarnation, version @ .., b0, b1, u0, u1] = *bytes;
        Sequence {
            incarnation,
            version: u64::from_be_bytes(version),
            batch: u16::from_be_bytes([b0, b1]),
            user: u16::from_be_bytes([u0, u1]),
        }
    }

    /// The integer form: incarnation · 2^45 + version, exact in a JavaScript number. What lies behind all that an
    /// incarnation can count to, as text of a client may say, is the last of it.
    pub fn to_integer(self) -> u64 {
        (u64::from(self.incarnation) << VERSION_BITS) | self.version.min(VERSION_MAX)
    }

    /// Reads the integer form; numbers that no incarnation can have are the end of the last one.
    pub fn from_integer(number: u64) -> Sequence {
        match u8::try_from(number >> VERSION_BITS) {
            Ok(incarnation) => Sequence::new(incarnation, number & VERSION_MAX),
            Err(_) => Sequence::new(u8::MAX, VERSION_MAX),
        }
    }

    /// Reads either text form: decimal digits (at most 18), or 26 hexadecimal digits in either case.
    /// `None` for anything else.
    pub fn parse(text: &str) -> Option<Sequence> {
        if text.len() == 2 * Sequence::BYTES {
            let mut bytes = [0; Sequence::BYTES];
            HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut bytes).ok()?;
            return Some(Sequence::from_bytes(&bytes));
        }
        let decimal = !text.is_empty() && text.len() <= DECIMAL_DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit());
        if !decimal {
            return None;
        }
        text.parse().ok().map(Sequence::from_integer)
    }
}

/// How a database writes its sequences as text. Chosen when it is made; both forms are read everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeqFormat {
    /// A decimal number, in JSON without quotes: `3`.
    #[default]
    Integer,
    /// 26 hexadecimal digits, in JSON a string: `"00000000000000000300000000"`.
    Versionstamp,
}

impl SeqFormat {
    /// The name used in `?seq_format=`.
    pub fn name(self) -> &'static str {
        match self {
            SeqFormat::Integer => "integer",
            SeqFormat::Versionstamp => "versionstamp",
        }
    }

    /// Reads the name used in `?seq_format=`.
    pub fn parse(name: &str) -> Option<SeqFormat> {
        [SeqFormat::Integer, SeqFormat::Versionstamp].into_iter().find(|format| format.name() == name)
    }

    /// The sequence as it stands in JSON.
    pub fn json(self, seq: Sequence) -> SeqText {
        SeqText { seq, format: self, quoted: true }
    }

    /// The sequence as plain text, as in the `id:` of an SSE event.
    pub fn plain(self, seq: Sequence) -> SeqText {
        SeqText { seq, format: self, quoted: false }
    }
}

/// A sequence ready to be printed; see [`SeqFormat::json`] and [`SeqFormat::plain`].
#[derive(Debug, Clone, Copy)]
pub struct SeqText {
    seq: Sequence,
    format: SeqFormat,
    quoted: bool,
}

impl SeqText {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self.format {
            SeqFormat::Integer => out.extend_from_slice(itoa::Buffer::new().format(self.seq.to_integer()).as_bytes()),
            SeqFormat::Versionstamp => out.extend_from_slice(self.to_string().as_bytes()),
        }
    }
}

impl fmt::Display for SeqText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.format == SeqFormat::Integer {
            return write!(f, "{}", self.seq.to_integer());
        }
        let quote = if self.quoted { "\"" } else { "" };
        let mut digits = [0; 2 * Sequence::BYTES];
        write!(f, "{quote}{}{quote}", HEXLOWER.encode_mut_str(&self.seq.to_bytes(), &mut digits))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_sequence() -> impl Strategy<Value = Sequence> {
        (any::<u8>(), 0..=VERSION_MAX).prop_map(|(incarnation, version)| Sequence::new(incarnation, version))
    }

    #[test]
    fn a_fresh_database_counts_from_one() {
        let first = Sequence::ZERO.next();
        assert_eq!(SeqFormat::Integer.json(first).to_string(), "1");
        assert_eq!(SeqFormat::Versionstamp.json(first).to_string(), "\"00000000000000000100000000\"");
        assert_eq!(SeqFormat::Versionstamp.plain(first).to_string(), "00000000000000000100000000");
    }

    #[test]
    fn only_the_two_text_forms_are_read() {
        for text in [
            "",
            "-1",
            "1.0",
            "abc",
            "5-foo",
            "1234567890123456789",
            "0000000000000000010000000",
            "g0000000000000000100000000",
        ] {
            assert_eq!(Sequence::parse(text), None, "{text}");
        }
        assert_eq!(Sequence::parse("1337"), Some(Sequence::new(0, 1337)));
        assert_eq!(Sequence::parse("01000000000000000A00000000"), Some(Sequence::new(1, 10)));
    }

    #[test]
    fn nothing_lies_between_a_place_and_the_one_before_it() {
        assert_eq!(Sequence::ZERO.before(), Sequence::ZERO);
        assert!(Sequence::new(0, 3).before() > Sequence::new(0, 2));
        assert!(Sequence::new(1, 0).before() > Sequence::new(0, u64::MAX));
        let between = Sequence { user: 1, ..Sequence::new(0, 3) };
        assert_eq!(between.before(), Sequence::new(0, 3));
    }

    proptest! {
        #[test]
        fn bytes_and_both_texts_keep_value_and_order(a in any_sequence(), b in any_sequence()) {
            prop_assert_eq!(Sequence::from_bytes(&a.to_bytes()), a);
            prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
            prop_assert_eq!(a.cmp(&b), a.to_integer().cmp(&b.to_integer()));
            for format in [SeqFormat::Integer, SeqFormat::Versionstamp] {
                prop_assert_eq!(Sequence::parse(&format.plain(a).to_string()), Some(a));
            }
            let text = |seq| SeqFormat::Versionstamp.plain(seq).to_string();
            prop_assert_eq!(a.cmp(&b), text(a).cmp(&text(b)));
        }
    }
}
