//! Erlang's external term format, as far as a revision hash needs it.
//!
//! Source: Erlang's "External Term Format", with the choices that `term_to_binary` makes at minor version 1.

use super::number;

/// Integers of more digits are hashed as the string of their text: turning decimal into binary takes time that grows
/// with the square of the length, and a document may be one long number.
pub(super) const INTEGER_DIGITS_MAX: usize = 4096;

const VERSION: u8 = 131;
const FLOAT: u8 = 70;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const ATOM: u8 = 100;
const SMALL_TUPLE: u8 = 104;
const NIL: u8 = 106;
const BYTE_LIST: u8 = 107;
const LIST: u8 = 108;
const BINARY: u8 = 109;
const SMALL_BIG: u8 = 110;
const LARGE_BIG: u8 = 111;

/// The bytes before a list's first element: tag and length.
const LIST_HEAD: usize = 5;
/// A list of so many bytes or more is an ordinary list.
const BYTE_LIST_END: u32 = 1 << 16;

/// A list under construction; its length goes in when it is known.
pub(super) struct OpenList {
    start: usize,
    len: u32,
    /// Whether every element was an integer from 0 to 255.
    bytes_only: bool,
}

impl OpenList {
    /// Counts an element that is no byte.
    pub fn count(&mut self) {
        self.len += 1;
        self.bytes_only = false;
    }

    /// Counts an element that was written by [`Term::integer`] or [`Term::number`].
    pub fn count_number(&mut self, is_byte: bool) {
        self.len += 1;
        self.bytes_only &= is_byte;
    }
}

/// A term's bytes.
pub(super) struct Term(Vec<u8>);

impl Term {
    pub fn with_capacity(bytes: usize) -> Term {
        let mut out = Vec::with_capacity(bytes);
        out.push(VERSION);
        Term(out)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn atom(&mut self, name: &str) {
        self.0.extend([ATOM, 0, name.len() as u8]);
        self.0.extend_from_slice(name.as_bytes());
    }

    pub fn binary(&mut self, bytes: &[u8]) {
        self.0.push(BINARY);
        self.0.extend((bytes.len() as u32).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub fn tuple(&mut self, len: u8) {
        self.0.extend([SMALL_TUPLE, len]);
    }

    pub fn open_list(&mut self) -> OpenList {
        let start = self.0.len();
        self.0.extend([LIST, 0, 0, 0, 0]);
        OpenList { start, len: 0, bytes_only: true }
    }

    pub fn close_list(&mut self, list: OpenList) {
        let OpenList { start, len, bytes_only } = list;
        if len == 0 {
            self.0.truncate(start);
        } else if bytes_only && len < BYTE_LIST_END {
            return self.rewrite_as_byte_list(start, len as u16);
        } else {
            self.0[start + 1..start + LIST_HEAD].copy_from_slice(&len.to_be_bytes());
        }
        self.0.push(NIL);
    }

    /// A list of bytes has a form of its own: two bytes of length, then the bytes without their tags.
    fn rewrite_as_byte_list(&mut self, start: usize, len: u16) {
        self.0[start] = BYTE_LIST;
        self.0[start + 1..start + 3].copy_from_slice(&len.to_be_bytes());
        let (to, from) = (start + 3, start + LIST_HEAD + 1);
        for element in 0..usize::from(len) {
            self.0[to + element] = self.0[from + 2 * element];
        }
        self.0.truncate(to + usize::from(len));
    }

    /// Writes a JSON number; tells whether it is an integer from 0 to 255.
    pub fn number(&mut self, text: &str) -> bool {
        if number::is_float(text) {
            self.0.push(FLOAT);
            self.0.extend(text.parse().unwrap_or(0f64).to_be_bytes());
            return false;
        }
        if let Ok(value) = text.parse() {
            return self.integer(value);
        }
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        if digits.len() > INTEGER_DIGITS_MAX {
            self.binary(text.as_bytes());
        } else {
            self.big_integer(negative, &magnitude(digits));
        }
        false
    }

    /// Writes an integer; tells whether it is one from 0 to 255.
    pub fn integer(&mut self, value: i64) -> bool {
        if let Ok(byte) = u8::try_from(value) {
            self.0.extend([SMALL_INTEGER, byte]);
            return true;
        }
        if let Ok(value) = i32::try_from(value) {
            self.0.push(INTEGER);
            self.0.extend(value.to_be_bytes());
        } else {
            self.big_integer(value < 0, &value.unsigned_abs().to_le_bytes());
        }
        false
    }

    /// `magnitude` has its lowest byte first; zeros at its end are left out.
    fn big_integer(&mut self, negative: bool, magnitude: &[u8]) {
        let len = magnitude.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        match u8::try_from(len) {
            Ok(len) => self.0.extend([SMALL_BIG, len]),
            Err(_) => {
                self.0.push(LARGE_BIG);
                self.0.extend((len as u32).to_be_bytes());
            }
        }
        self.0.push(u8::from(negative));
        self.0.extend_from_slice(&magnitude[..len]);
    }
}

/// The bytes of a decimal number, lowest first.
fn magnitude(digits: &str) -> Vec<u8> {
    let mut limbs: Vec<u64> = Vec::with_capacity(digits.len() / 19 + 1);
    for chunk in digits.as_bytes().chunks(19) {
        let (value, scale) = chunk.iter().fold((0u64, 1u64), |(value, scale), digit| {
            (value * 10 + u64::from(digit.wrapping_sub(b'0') % 10), scale * 10)
        });
        let mut carry = u128::from(value);
        for limb in &mut limbs {
            carry += u128::from(*limb) * u128::from(scale);
            *limb = carry as u64;
            carry >>= 64;
        }
        if carry > 0 {
            limbs.push(carry as u64);
        }
    }
    limbs.into_iter().flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(decimal: &str) -> String {
        let mut carry = 0;
        let mut digits: Vec<u8> = decimal
            .bytes()
            .rev()
            .map(|digit| {
                let double = (digit - b'0') * 2 + carry;
                carry = double / 10;
                b'0' + double % 10
            })
            .collect();
        digits.extend((carry > 0).then_some(b'1'));
        digits.reverse();
        String::from_utf8(digits).unwrap()
    }

    #[test]
    fn big_integers_are_their_magnitude_in_bytes() {
        let mut decimal = String::from("1");
        for power in 0..5000 {
            let bytes = magnitude(&decimal);
            let bit = bytes.iter().position(|byte| *byte != 0).unwrap();
            assert_eq!((bit, bytes[bit]), (power / 8, 1u8 << (power % 8)), "2^{power}");
            assert!(bytes[bit + 1..].iter().all(|byte| *byte == 0), "2^{power}");
            decimal = doubled(&decimal);
        }
    }

    #[test]
    fn integers_take_the_smallest_form() {
        let written = |text: &str| {
            let mut term = Term::with_capacity(0);
            term.number(text);
            term.bytes()[1..].to_vec()
        };
        assert_eq!(written("0"), [97, 0]);
        assert_eq!(written("-0"), [97, 0]);
        assert_eq!(written("255"), [97, 255]);
        assert_eq!(written("256"), [98, 0, 0, 1, 0]);
        assert_eq!(written("-1"), [98, 255, 255, 255, 255]);
        assert_eq!(written("-2147483648"), [98, 128, 0, 0, 0]);
        assert_eq!(written("2147483648"), [110, 4, 0, 0, 0, 0, 128]);
        assert_eq!(written("-9223372036854775808"), [110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128]);
        assert_eq!(written("18446744073709551616"), [110, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(written("-0.0"), [70, 128, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(written(&format!("1{}", "0".repeat(620)))[..2], [111, 0]);
    }

    #[test]
    fn integers_beyond_the_digit_limit_are_written_as_text() {
        let mut term = Term::with_capacity(0);
        let digits = "7".repeat(INTEGER_DIGITS_MAX + 1);
        term.number(&digits);
        assert_eq!(term.bytes()[1], BINARY);
        assert!(term.bytes().ends_with(digits.as_bytes()));
    }
}
