//! Values of `transactions` and `transaction_ages`, and the row of `meta` that counts them: what keyed requests did.

use super::{Malformed, Reader, as_text, put_text, put_varint, revision};
use crate::model::body_place::BodyPlace;
use crate::model::doc_id::DocId;
use crate::model::idempotency::Fingerprint;
use crate::model::rev::RevId;
use crate::model::sequence::Sequence;
use crate::refusal::{Refusal, RefusalKind};
use crate::write::Outcome;

const TAG: u8 = 1;

const WRITTEN: u8 = 0;
const KNOWN: u8 = 1;
const CONFLICT: u8 = 2;
const LOCAL: u8 = 3;
const MISSING: u8 = 4;
const DONE: u8 = 5;
const PURGED: u8 = 6;
const UNCHANGED: u8 = 7;
const FORBIDDEN: u8 = 8;
const UNAUTHORIZED: u8 = 9;
const UNDECIDED: u8 = 10;
const UNFIT: u8 = 11;

/// What a keyed request did, as much of it as its answer needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Of the request.
    pub fingerprint: Fingerprint,
    /// Its place in the order in which records grow old: its key in `transaction_ages`.
    pub order: u64,
    /// When it was made, in seconds since 1970.
    pub at_secs: u64,
    /// The highest sequence the request produced; the then current one where it changed no document.
    pub seq: Sequence,
    /// The ids that were made for documents of the request which came without one, in order.
    pub made_ids: Vec<DocId>,
    /// One outcome a write, in order.
    pub outcomes: Vec<Outcome>,
}

/// Encodes a record.
pub fn encode(record: &Transaction) -> Vec<u8> {
    let mut out = Vec::with_capacity(48 + 20 * record.outcomes.len());
    out.push(TAG);
    out.extend_from_slice(&record.fingerprint.0);
    put_varint(&mut out, record.order);
    put_varint(&mut out, record.at_secs);
    out.extend_from_slice(&record.seq.to_bytes());
    put_varint(&mut out, record.made_ids.len() as u64);
    for id in &record.made_ids {
        put_id(&mut out, id.as_str());
    }
    for outcome in &record.outcomes {
        put_outcome(&mut out, outcome, record.seq);
    }
    out
}

/// Decodes a record.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<Transaction, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let fingerprint = Fingerprint(reader.array()?);
    let (order, at_secs) = (reader.varint()?, reader.varint()?);
    let seq = Sequence::from_bytes(&reader.array()?);
    let made_ids = reader.list(read_id)?;
    let mut outcomes = Vec::new();
    while !reader.is_empty() {
        outcomes.push(read_outcome(&mut reader, seq)?);
    }
    Ok(Transaction { fingerprint, order, at_secs, seq, made_ids, outcomes })
}

/// An id with its length in front. No id is empty, so the length 0 stands for 32 hex digits, kept as 16 bytes: that is
/// how ids that are made look.
fn put_id(out: &mut Vec<u8>, id: &str) {
    match packed(id) {
        Some(number) => {
            out.push(0);
            out.extend_from_slice(&number.to_be_bytes());
        }
        None => put_text(out, id),
    }
}

fn packed(id: &str) -> Option<u128> {
    let number = u128::from_str_radix(id, 16).ok()?;
    (unpacked(number) == id).then_some(number)
}

fn unpacked(number: u128) -> String {
    format!("{number:032x}")
}

fn read_id(reader: &mut Reader<'_>) -> Result<DocId, Malformed> {
    Ok(match reader.number()? {
        0usize => DocId::stored(&unpacked(u128::from_be_bytes(reader.array()?))),
        len => DocId::stored(as_text(reader.bytes(len)?)?),
    })
}

fn put_outcome(out: &mut Vec<u8>, outcome: &Outcome, highest: Sequence) {
    match outcome {
        Outcome::Written { rev, seq } => {
            out.push(WRITTEN);
            put_rev(out, rev);
            put_varint(out, below(highest, *seq));
        }
        Outcome::Known { rev } => {
            out.push(KNOWN);
            put_rev(out, rev);
        }
        Outcome::Conflict => out.push(CONFLICT),
        Outcome::Local { revision } => {
            out.push(LOCAL);
            put_varint(out, *revision);
        }
        Outcome::Purged { revs, seq } => {
            out.push(PURGED);
            put_varint(out, revs.len() as u64);
            revs.iter().for_each(|rev| put_rev(out, rev));
            put_varint(out, seq.map_or(0, |seq| below(highest, seq) + 1));
        }
        Outcome::Missing => out.push(MISSING),
        Outcome::Done => out.push(DONE),
        Outcome::Refused(Refusal { kind, reason }) => {
            match kind {
                RefusalKind::Forbidden => out.push(FORBIDDEN),
                RefusalKind::Unauthorized => out.push(UNAUTHORIZED),
                RefusalKind::Undecided => out.push(UNDECIDED),
                RefusalKind::Unfit(error) => {
                    out.push(UNFIT);
                    put_text(out, error);
                }
            }
            put_text(out, reason);
        }
        Outcome::Unchanged => out.push(UNCHANGED),
    }
}

fn read_outcome(reader: &mut Reader<'_>, highest: Sequence) -> Result<Outcome, Malformed> {
    Ok(match reader.u8()? {
        WRITTEN => {
            let rev = read_rev(reader)?;
            Outcome::Written { rev, seq: read_below(highest, reader.varint()?)? }
        }
        KNOWN => Outcome::Known { rev: read_rev(reader)? },
        CONFLICT => Outcome::Conflict,
        LOCAL => Outcome::Local { revision: reader.varint()? },
        PURGED => {
            let revs = reader.list(read_rev)?;
            let seq = match reader.varint()? {
                0 => None,
                below => Some(read_below(highest, below - 1)?),
            };
            Outcome::Purged { revs, seq }
        }
        MISSING => Outcome::Missing,
        DONE => Outcome::Done,
        FORBIDDEN => read_refused(reader, RefusalKind::Forbidden)?,
        UNAUTHORIZED => read_refused(reader, RefusalKind::Unauthorized)?,
        UNDECIDED => read_refused(reader, RefusalKind::Undecided)?,
        UNFIT => {
            let error = reader.text()?.to_owned();
            read_refused(reader, RefusalKind::Unfit(error))?
        }
        UNCHANGED => Outcome::Unchanged,
        _ => return Err(Malformed("unknown outcome")),
    })
}

fn read_refused(reader: &mut Reader<'_>, kind: RefusalKind) -> Result<Outcome, Malformed> {
    Ok(Outcome::Refused(Refusal { kind, reason: reader.text()?.to_owned() }))
}

/// How far a sequence lies below the request's highest.
fn below(highest: Sequence, seq: Sequence) -> u64 {
    highest.to_integer().saturating_sub(seq.to_integer())
}

fn read_below(highest: Sequence, below: u64) -> Result<Sequence, Malformed> {
    let seq = highest.to_integer().checked_sub(below).map(Sequence::from_integer);
    seq.ok_or(Malformed("a sequence below the first"))
}

fn put_rev(out: &mut Vec<u8>, rev: &RevId) {
    put_varint(out, rev.generation);
    revision::put(out, &rev.hash, false, BodyPlace::Empty);
}

fn read_rev(reader: &mut Reader<'_>) -> Result<RevId, Malformed> {
    let generation = reader.varint()?;
    Ok(RevId::new(generation, revision::read(reader)?.hash))
}

/// A row of `transaction_ages`, its key not yet copied: which record stands at a place of the age order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Age<'a> {
    /// When the record was made, in seconds since 1970.
    pub at_secs: u64,
    /// What it counts in the sum of bytes.
    pub bytes: u64,
    /// The record's key.
    pub key: &'a str,
}

/// Encodes a row of `transaction_ages`.
pub fn encode_age(age: &Age<'_>) -> Vec<u8> {
    let mut out = vec![TAG];
    put_varint(&mut out, age.at_secs);
    put_varint(&mut out, age.bytes);
    out.extend_from_slice(age.key.as_bytes());
    out
}

/// Decodes a row of `transaction_ages`.
///
/// # Errors
/// [`Malformed`].
pub fn decode_age(value: &[u8]) -> Result<Age<'_>, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    Ok(Age { at_secs: reader.varint()?, bytes: reader.varint()?, key: as_text(reader.rest())? })
}

/// How many records there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// The place in the age order that the next record gets. It only rises.
    pub next_order: u64,
    /// Records.
    pub count: u64,
    /// What they and their keys take in both tables, in bytes.
    pub bytes: u64,
}

/// Encodes the totals.
pub fn encode_totals(totals: &Totals) -> Vec<u8> {
    let mut out = vec![TAG];
    for number in [totals.next_order, totals.count, totals.bytes] {
        put_varint(&mut out, number);
    }
    out
}

/// Decodes the totals.
///
/// # Errors
/// [`Malformed`].
pub fn decode_totals(value: &[u8]) -> Result<Totals, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let totals = Totals { next_order: reader.varint()?, count: reader.varint()?, bytes: reader.varint()? };
    reader.end()?;
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_seq};

    fn any_refusal_kind() -> impl Strategy<Value = RefusalKind> {
        prop_oneof![
            Just(RefusalKind::Forbidden),
            Just(RefusalKind::Unauthorized),
            Just(RefusalKind::Undecided),
            any::<String>().prop_map(RefusalKind::Unfit),
        ]
    }

    fn any_outcome() -> impl Strategy<Value = (Outcome, u64)> {
        let rev = || (any::<u64>(), any_hash()).prop_map(|(generation, hash)| RevId::new(generation, hash));
        let outcome = prop_oneof![
            rev().prop_map(|rev| Outcome::Written { rev, seq: Sequence::ZERO }),
            rev().prop_map(|rev| Outcome::Known { rev }),
            any::<u64>().prop_map(|revision| Outcome::Local { revision }),
            (proptest::collection::vec(rev(), 0..4), any::<bool>())
                .prop_map(|(revs, purged)| Outcome::Purged { revs, seq: purged.then_some(Sequence::ZERO) }),
            (any_refusal_kind(), any::<String>()).prop_map(|(kind, reason)| Outcome::Refused(Refusal { kind, reason })),
            Just(Outcome::Conflict),
            Just(Outcome::Missing),
            Just(Outcome::Done),
            Just(Outcome::Unchanged),
        ];
        (outcome, 0..200_000u64)
    }

    /// A written one lies so far below the highest sequence of its request.
    fn placed((outcome, below): (Outcome, u64), highest: Sequence) -> Outcome {
        let at = Sequence::from_integer(highest.to_integer().saturating_sub(below));
        match outcome {
            Outcome::Purged { revs, seq: Some(_) } => Outcome::Purged { revs, seq: Some(at) },
            Outcome::Written { rev, .. } => Outcome::Written { rev, seq: at },
            other => other,
        }
    }

    proptest! {
        #[test]
        fn records_round_trip(
            fingerprint: [u8; 16],
            order: u64,
            at_secs: u64,
            seq in any_seq(),
            ids in prop::collection::vec("[0-9a-f]{32}|[0-9A-F]{32}|\\+[0-9a-f]{31}|[a-zé]{1,40}", 0..4),
            outcomes in prop::collection::vec(any_outcome(), 0..6),
        ) {
            let record = Transaction {
                fingerprint: Fingerprint(fingerprint),
                order,
                at_secs,
                seq,
                made_ids: ids.iter().map(|id| DocId::stored(id)).collect(),
                outcomes: outcomes.into_iter().map(|outcome| placed(outcome, seq)).collect(),
            };
            prop_assert_eq!(decode(&encode(&record)), Ok(record));
        }

        #[test]
        fn ages_and_totals_round_trip(at_secs: u64, bytes: u64, key in "[ -~]{1,255}", next_order: u64, count: u64) {
            let age = Age { at_secs, bytes, key: &key };
            let value = encode_age(&age);
            prop_assert_eq!(decode_age(&value), Ok(age));
            let totals = Totals { next_order, count, bytes };
            prop_assert_eq!(decode_totals(&encode_totals(&totals)), Ok(totals));
        }

        #[test]
        fn garbage_is_malformed_and_never_a_panic(value: Vec<u8>) {
            let tagged = [&[TAG], &value[..]].concat();
            for value in [&value, &tagged] {
                let _ = decode(value);
                let _ = decode_age(value);
                let _ = decode_totals(value);
            }
        }
    }

    #[test]
    fn a_record_of_one_document_is_small() {
        let rev = RevId::parse("1-731bef401491606a3b246ed178e697c1").unwrap();
        let seq = Sequence::new(0, 70_000);
        let record = Transaction {
            fingerprint: Fingerprint([7; 16]),
            order: 1_000_000,
            at_secs: 1_800_000_000,
            seq,
            made_ids: vec![DocId::stored("0199f0a57c6b7d1e8f2a3b4c5d6e7f80")],
            outcomes: vec![Outcome::Written { rev, seq }],
        };
        assert!(encode(&record).len() <= 80, "{}", encode(&record).len());
    }
}
