//! Values as they lie in tables.

use std::fmt::Debug;

use seqtide_storage::codec::feed_index::{self, IndexKey};
use seqtide_storage::codec::{Malformed, body, change, head, history, keys, local, meta, transaction};

/// What decodes as some kind of row encodes to what decodes the same.
///
/// # Panics
/// When that does not hold.
pub fn check(value: &[u8]) {
    check_head(value);
    check_change(value);
    stable(value, history::decode, history::encode);
    stable(value, meta::decode_counters, meta::encode_counters);
    stable(value, meta::decode_identity, meta::encode_identity);
    stable(value, meta::decode_number, |number| meta::encode_number(*number));
    stable(value, transaction::decode, transaction::encode);
    stable(value, transaction::decode_totals, transaction::encode_totals);
    if let Ok(age) = transaction::decode_age(value) {
        assert_eq!(transaction::decode_age(&transaction::encode_age(&age)), Ok(age));
    }
    stable(value, feed_index::decode, feed_index::encode);
    stable(value, IndexKey::from_bytes, |key| key.to_bytes().to_vec());
    stable(value, keys::read_seq, |seq| keys::seq(*seq).to_vec());
    stable(value, keys::read_body, |key| keys::body(*key).to_vec());
    stable(value, keys::read_number, |number| keys::number(*number).to_vec());
    if let Ok((id, json)) = body::decode(value) {
        assert_eq!(body::decode(&body::encode(id, json)), Ok((id, json)));
    }
    if let Ok((revision, json)) = local::decode(value) {
        assert_eq!(local::decode(&local::encode(revision, json)), Ok((revision, json)));
    }
}

fn stable<T: PartialEq + Debug>(
    value: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Malformed>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    if let Ok(decoded) = decode(value) {
        assert_eq!(decode(&encode(&decoded)).as_ref(), Ok(&decoded));
    }
}

/// The short look at a head sees what the whole tree says.
fn check_head(value: &[u8]) {
    stable(value, head::decode, head::encode);
    if let (Ok(head), Ok(summary)) = (head::decode(value), head::decode_summary(value)) {
        let winner = head.tree.winner().expect("a document has a leaf");
        let expected = head::DocSummary {
            seq: head.seq,
            rev: winner.rev.clone(),
            deleted: winner.deleted,
            body: winner.body,
            branches: u32::try_from(head.tree.leaves().len()).expect("they were counted in 32 bits"),
        };
        assert_eq!(summary, expected);
    }
}

/// A row of `by_seq` is read with its key, here the first bytes.
fn check_change(row: &[u8]) {
    let (key, value) = row.split_at(row.len().min(13));
    if let Ok(decoded) = change::decode(key, value) {
        assert_eq!(change::decode(key, &change::encode(&decoded)), Ok(decoded));
    }
}
