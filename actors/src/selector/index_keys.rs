//! What the index of a database's feed is to know of documents: the keys that equality terms look for.

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{FeedKeys, FieldKeys, LeafRev, ReadKeys};

use super::document::{DocView, Subject};
use super::json::Datum;
use super::path::FieldPath;
use super::terms::ScalarKey;

/// A document with more values than this in an array has them all, as far as an index goes: what it is worth to find
/// such a document by one of them is less than what its keys would cost.
const VALUES_MAX: usize = 100;

/// A longer string, in bytes, counts as any value: its collation would hold up a commit.
const STRING_BYTES_MAX: usize = 4_096;

/// Makes the keys of [`DocView::scalar_keys`] those of the index.
#[derive(Debug, Clone, Copy)]
pub struct SelectorKeys;

impl FeedKeys for SelectorKeys {
    fn version(&self) -> u64 {
        ScalarKey::VERSION
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        // A path that is none leads nowhere; none is ever taken into an index.
        let paths: Vec<Option<FieldPath>> = fields.iter().map(|field| FieldPath::parse(field).ok()).collect();
        Box::new(move |id: &DocId, winner: &LeafRev, body: &Body| {
            let document = DocView::new(id, winner, body);
            let keys = |path: &Option<FieldPath>| match path {
                Some(path) => document.index_keys(path),
                None => FieldKeys::These(Vec::new()),
            };
            paths.iter().map(keys).collect()
        })
    }
}

impl DocView<'_> {
    /// The keys at a path, if they are no more than an index is to keep.
    fn index_keys(&self, path: &FieldPath) -> FieldKeys {
        let is_long = |value: &Datum<'_>| matches!(value, Datum::String(text) if text.len() > STRING_BYTES_MAX);
        let too_much = match self.find(path) {
            Ok(Datum::Array(elements)) => {
                elements.clone().nth(VALUES_MAX).is_some() || elements.clone().any(|element| is_long(&element.datum()))
            }
            Ok(value) => is_long(&value),
            Err(_) => false,
        };
        match too_much {
            true => FieldKeys::Any,
            false => FieldKeys::These(self.scalar_keys(path).map(ScalarKey::to_u64).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::json::{ScanLimits, scan_document};
    use seqtide_storage::model::rev::RevId;

    use super::super::order::collation_key;
    use super::*;

    fn keys(json: &str, field: &str) -> FieldKeys {
        let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
        let winner = LeafRev { rev: RevId::parse("1-x").unwrap(), deleted: false };
        let read = SelectorKeys.reader(&[field]);
        read(&DocId::parse("the-id").unwrap(), &winner, &body).remove(0)
    }

    /// The key of one value.
    fn key(value: &str) -> u64 {
        match keys(&format!("{{\"a\":{value}}}"), "a") {
            FieldKeys::These(keys) if keys.len() == 1 => keys[0],
            other => panic!("{value}: {other:?}"),
        }
    }

    #[test]
    fn keys_on_disk_are_those_of_version_1() {
        assert_eq!(SelectorKeys.version(), 1, "give these keys anew together with the version");
        let found = ["null", "false", "true", "0", "-1", "1.5", "9223372036854775808", "\"\"", "\"Zürich\""].map(key);
        let expected = [
            0x68a9_1412_8e01_e473,
            0x44bc_103b_1f85_40ed,
            0x6432_cecb_7f52_450b,
            0xea00_a46d_6d8c_f121,
            0xd9ed_5667_1787_3703,
            0xed0f_bbbc_cf67_b4b3,
            0x308f_24ec_59ef_d298,
            0xeab2_0fd5_1a4c_72d6,
            0x81aa_afdf_fccc_3ec0,
        ];
        assert_eq!(found, expected, "{found:#x?}: an index on disk has the old ones; raise `ScalarKey::VERSION`");
        assert_eq!(keys("{}", "_id"), FieldKeys::These(vec![0x9738_f4e4_d79c_754d]));
    }

    #[test]
    fn sort_keys_on_disk_are_those_of_version_1() {
        assert_eq!(SelectorKeys.version(), 1, "give the sum anew together with the version");
        // Every character, each behind one that it may combine with.
        let mut all = siphasher::sip::SipHasher13::new();
        for character in ('\0'..=char::MAX).filter(|character| !matches!(character, '\u{20000}'..='\u{e0000}')) {
            std::hash::Hasher::write(&mut all, &collation_key(&format!("e{character}")));
        }
        let sum = std::hash::Hasher::finish(&all);
        assert_eq!(
            sum, 0x9bf0_962e_26ce_9cfd,
            "{sum:#x}: the collation's data have changed; raise `ScalarKey::VERSION`"
        );
    }

    #[test]
    fn equal_values_have_one_key() {
        for (one, other) in [("1", "1.0"), ("\"é\"", "\"e\u{301}\""), ("1e300", "1.0e300"), ("-0.0", "0")] {
            assert_eq!(key(one), key(other), "{one} and {other}");
        }
        let big = format!("1{}", "0".repeat(30));
        assert_ne!(key(&big), key("1e30"), "the double 1e30 is another number");
        assert_ne!(key("\"1\""), key("1"));
    }

    #[test]
    fn what_is_there_has_keys_and_what_is_much_has_any() {
        let list = |count: usize, value: &str| format!("{{\"a\":[{}]}}", vec![value; count].join(","));
        let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let count = |json: &str, field| match keys(json, field) {
            FieldKeys::These(keys) => Some(keys.len()),
            FieldKeys::Any => None,
        };
        assert_eq!(count(r#"{"b":1}"#, "a"), Some(0));
        assert_eq!(count(r#"{"a":{"b":{"c":true}}}"#, "a.b.c"), Some(1));
        assert_eq!(count(r#"{"a":{"b":1}}"#, "a"), Some(0));
        assert_eq!(count(r#"{"a":[1,[2],{"c":3},"d"]}"#, "a"), Some(2));
        assert_eq!((count(&list(100, "1"), "a"), count(&list(101, "{}"), "a")), (Some(100), None));
        let of = |value: &str| format!("{{\"a\":{value}}}");
        assert_eq!((count(&of(&long(4_096)), "a"), count(&of(&long(4_097)), "a")), (Some(1), None));
        assert_eq!(count(&list(2, &long(4_097)), "a"), None);
    }
}
