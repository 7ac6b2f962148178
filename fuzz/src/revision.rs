//! Revision ids as text.

use seqtide_storage::model::rev::{REV_HASH_MAX_BYTES, RevId};

/// Revisions, one a line: what reads prints as what reads the same, and they are in CouchDB's order.
///
/// # Panics
/// When that does not hold.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let revs: Vec<RevId> = text.split('\n').filter_map(|line| RevId::parse(line).ok()).collect();
    for rev in &revs {
        assert_eq!(RevId::parse(&rev.to_string()).as_ref(), Ok(rev), "printed and read");
        assert!(rev.hash.as_bytes().len() <= REV_HASH_MAX_BYTES, "{rev}");
    }
    for pair in revs.windows(2) {
        let [a, b] = pair else { continue };
        let couchdb = |rev: &RevId| (rev.generation, rev.hash.as_bytes().to_vec());
        let order = a.cmp(b);
        assert_eq!(order, b.cmp(a).reverse(), "{a} and {b}");
        assert_eq!(order.is_eq(), a == b, "{a} and {b}");
        assert_eq!(order.is_eq(), a.to_string() == b.to_string(), "{a} and {b}");
        let by_bytes = couchdb(a).cmp(&couchdb(b));
        assert!(by_bytes.is_eq() || by_bytes == order, "{a} and {b}");
    }
}
