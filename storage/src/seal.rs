//! The checksum every stored row carries: LMDB has none, and a flipped byte must not become an answer.
//!
//! A sealed row is `02`, the checksum in 4 bytes (big-endian), and the value. The checksum is CRC-32C of the table's
//! name, the key and the value, so a row is known by itself to lie where it belongs.

use std::sync::LazyLock;

use crate::codec::Malformed;
use crate::tables::Table;

/// First byte of a sealed row. A row written before there were seals starts with the tag of its value, which was 1.
const SEALED: u8 = 2;
const CHECKSUM_BYTES: usize = 4;

/// Which rows a database may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seals {
    /// It was born with seals: a row without one is damaged.
    Required,
    /// It was born before there were seals, and has rows of both kinds.
    Optional,
}

/// Makes of `stored` a row as it is stored.
pub(crate) fn seal(stored: &mut Vec<u8>, table: Table, key: &[u8], value: &[u8]) {
    stored.clear();
    stored.push(SEALED);
    stored.extend_from_slice(&checksum(table, key, value));
    stored.extend_from_slice(value);
}

/// Takes the value out of a stored row.
///
/// # Errors
/// [`Malformed`] when it is not what was written, or was written for another place.
pub(crate) fn open<'a>(table: Table, key: &[u8], stored: &'a [u8], seals: Seals) -> Result<&'a [u8], Malformed> {
    let (first, rest) = stored.split_first().ok_or(Malformed("an empty row"))?;
    let value = rest.split_first_chunk::<CHECKSUM_BYTES>();
    let sound = value.filter(|(sum, value)| **sum == checksum(table, key, value)).map(|(_, value)| value);
    match (*first, sound, seals) {
        (SEALED, Some(value), _) => Ok(value),
        (SEALED, None, _) => Err(Malformed("its checksum does not match")),
        // With a checksum that matches it is a sealed row whose first byte is damaged.
        (_, None, Seals::Optional) => Ok(stored),
        _ => Err(Malformed("a row without a checksum")),
    }
}

/// The checksums of the tables' names, from which those of their rows go on.
static OF_NAMES: LazyLock<[u32; Table::ALL.len()]> =
    LazyLock::new(|| Table::ALL.map(|table| crc32c::crc32c(table.name().as_bytes())));

fn checksum(table: Table, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let of_key = crc32c::crc32c_append(OF_NAMES[table as usize], key);
    crc32c::crc32c_append(of_key, value).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &[u8] = b"\x01value";

    fn sealed() -> Vec<u8> {
        let mut stored = b"of a row before".to_vec();
        seal(&mut stored, Table::Docs, b"a", VALUE);
        stored
    }

    #[test]
    fn a_row_comes_back_from_where_it_was_put_and_from_nowhere_else() {
        let stored = sealed();
        for seals in [Seals::Required, Seals::Optional] {
            assert_eq!(open(Table::Docs, b"a", &stored, seals), Ok(VALUE));
            assert!(open(Table::Local, b"a", &stored, seals).is_err());
            assert!(open(Table::Docs, b"b", &stored, seals).is_err());
        }
    }

    #[test]
    fn a_flipped_byte_is_noticed_wherever_it_is_and_whatever_it_becomes() {
        let stored = sealed();
        for (at, flip) in (0..stored.len()).flat_map(|at| (1..=255).map(move |flip| (at, flip))) {
            let mut damaged = stored.clone();
            damaged[at] ^= flip;
            for seals in [Seals::Required, Seals::Optional] {
                assert!(open(Table::Docs, b"a", &damaged, seals).is_err(), "byte {at} ^ {flip}, {seals:?}");
            }
        }
    }

    #[test]
    fn a_row_without_a_seal_is_good_only_where_such_rows_were_written() {
        assert_eq!(open(Table::Docs, b"a", VALUE, Seals::Optional), Ok(VALUE));
        assert!(open(Table::Docs, b"a", VALUE, Seals::Required).is_err());
        assert!(open(Table::Docs, b"a", b"", Seals::Optional).is_err());
    }
}
