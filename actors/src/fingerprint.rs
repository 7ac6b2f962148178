//! Telling values apart without keeping them.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;

use siphasher::sip128::{Hasher128, SipHasher13};

/// Stands for a value in this process: nobody can foresee it, and so find two values that have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u64; 2]);

/// Another one in each process.
static KEYS: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let random = RandomState::new();
    [random.hash_one(0), random.hash_one(1)]
});

impl Fingerprint {
    pub fn of(value: &(impl Hash + ?Sized)) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_keys(KEYS[0], KEYS[1]);
        value.hash(&mut hasher);
        Fingerprint(hasher.finish128().as_u64().into())
    }
}
