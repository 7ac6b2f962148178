//! Records of what keyed requests did, written in the commit of the request itself: a request that is sent again finds
//! its record, and is answered by it.
//!
//! Source: CouchDB RFC 003, "Transaction ids in their own table". A record is kept for a time instead of being deleted
//! once its answer is sent: it is the client that repeats, so the key is the client's.

use std::collections::HashMap;
use std::ops::Bound;

use crate::codec::keys;
use crate::codec::transaction::{self, Age, Totals, Transaction};
use crate::error::{StorageError, unless_damaged};
use crate::model::idempotency::IdempotencyKey;
use crate::range::{Direction, RawRow};
use crate::request::{RequestKey, RequestOutcome};
use crate::rows::Rows;
use crate::tables::{META_TRANSACTIONS, Table};
use crate::view::View;

/// Old records that a commit may remove beyond twice as many as it adds.
const REMOVED_MORE: u64 = 16;

/// What a record counts beside its value and its key in both tables: the rest of its row in the age order.
const AGE_ROW_BYTES: usize = 24;

/// How long records of keyed requests are kept. Whichever bound is passed first, the oldest go first: a few with each
/// commit that adds some, and never those it adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionLimits {
    /// Oldest record that answers, in seconds.
    pub age_secs_max: u64,
    /// Most records of a database.
    pub count_max: u64,
    /// Most bytes of a database's records and their keys; those of one commit may go beyond.
    pub bytes_max: u64,
}

impl Default for TransactionLimits {
    fn default() -> TransactionLimits {
        TransactionLimits { age_secs_max: 24 * 60 * 60, count_max: 1_000_000, bytes_max: 256 << 20 }
    }
}

impl TransactionLimits {
    /// Whether a record answers no more. One from the future, made before the clock was set back, is new.
    fn expired(&self, at_secs: u64, now_secs: u64) -> bool {
        now_secs.saturating_sub(at_secs) > self.age_secs_max
    }

    fn passed(&self, totals: &Totals, oldest: &Age<'_>, now_secs: u64) -> bool {
        let over = totals.count > self.count_max || totals.bytes > self.bytes_max;
        over || self.expired(oldest.at_secs, now_secs)
    }
}

/// The record of a key, unless it has expired.
pub(crate) fn recorded(
    view: View<'_>,
    limits: &TransactionLimits,
    key: &IdempotencyKey,
    now_secs: u64,
) -> Result<Option<Transaction>, StorageError> {
    let found = view.read(Table::Transactions, key.as_str().as_bytes(), transaction::decode)?;
    Ok(found.filter(|record| !limits.expired(record.at_secs, now_secs)))
}

/// What a record counts in the sum of bytes.
pub(crate) fn record_bytes(key: &str, value: &[u8]) -> u64 {
    (2 * key.len() + value.len() + AGE_ROW_BYTES) as u64
}

/// The records that a batch finds and makes.
pub(crate) struct Transactions {
    limits: TransactionLimits,
    /// No record in the tables has a lower order, but damaged ones.
    oldest: u64,
    /// Those it makes, oldest first.
    made: Vec<(IdempotencyKey, Transaction)>,
    /// Where in `made` a key's record stands.
    places: HashMap<IdempotencyKey, usize>,
}

impl Transactions {
    pub fn new(limits: TransactionLimits, oldest: u64) -> Transactions {
        Transactions { limits, oldest, made: Vec::new(), places: HashMap::new() }
    }

    /// What was answered to the request with this key, in an earlier commit or earlier in this one.
    pub fn answer(&self, view: View<'_>, request: &RequestKey) -> Result<Option<Transaction>, StorageError> {
        match self.places.get(&request.key) {
            Some(place) => Ok(Some(self.made[*place].1.clone())),
            None => recorded(view, &self.limits, &request.key, request.at_secs),
        }
    }

    /// Keeps what became of a request, if it changed anything: one that did not may do so when it is sent again.
    pub fn keep(&mut self, request: &RequestKey, done: &RequestOutcome) {
        if !done.outcomes.iter().any(|outcome| outcome.is_change()) {
            return;
        }
        let record = Transaction {
            fingerprint: request.fingerprint,
            order: 0,
            at_secs: request.at_secs,
            seq: done.seq,
            made_ids: done.made_ids.clone(),
            outcomes: done.outcomes.clone(),
        };
        self.places.insert(request.key.clone(), self.made.len());
        self.made.push((request.key.clone(), record));
    }

    /// Adds the rows of the records made, and removes old ones where a bound is passed. Gives the place in the age
    /// order before which there are none then.
    pub fn write(self, view: View<'_>, rows: &mut Rows) -> Result<u64, StorageError> {
        let Some((_, newest)) = self.made.last() else { return Ok(self.oldest) };
        let now_secs = newest.at_secs;
        let totals = view.read(Table::Meta, META_TRANSACTIONS, transaction::decode_totals)?.unwrap_or_default();
        let mut tables = Tables { view, rows, totals };
        let mut quota = Quota { count: REMOVED_MORE, bytes: 0 };
        for (key, record) in self.made {
            quota.count += 2;
            quota.bytes += tables.add(key.as_str(), record)?;
        }
        let made_anew = |key: &str| self.places.contains_key(key);
        let oldest = tables.remove_oldest(&self.limits, now_secs, self.oldest, quota, made_anew)?;
        let totals = transaction::encode_totals(&tables.totals);
        rows.put(Table::Meta, META_TRANSACTIONS, totals);
        Ok(oldest)
    }
}

/// How much a commit may still remove: it goes on while either lasts. So neither count nor bytes, once within their
/// bounds, are beyond them by more than one commit's records, and a commit's work is measured by what it adds.
struct Quota {
    count: u64,
    bytes: u64,
}

/// The two tables, the rows on their way into them, and the totals that result.
struct Tables<'txn, 'rows> {
    view: View<'txn>,
    rows: &'rows mut Rows,
    totals: Totals,
}

/// A record's place in the age order, and what stands there.
fn read_age<'a>((key, value): RawRow<'a>) -> Result<(u64, Age<'a>), StorageError> {
    let damaged = |what| StorageError::damaged(Table::TransactionAges, key, what);
    Ok((keys::read_number(key).map_err(damaged)?, transaction::decode_age(value).map_err(damaged)?))
}

impl Tables<'_, '_> {
    /// Adds a record as the newest one, in place of an expired one with its key; gives the bytes it counts.
    fn add(&mut self, key: &str, mut record: Transaction) -> Result<u64, StorageError> {
        if let Some(value) = self.view.get(Table::Transactions, key.as_bytes())? {
            let expired = transaction::decode(value);
            let expired = expired.map_err(|what| StorageError::damaged(Table::Transactions, key.as_bytes(), what))?;
            self.take_off(expired.order, record_bytes(key, value));
        }
        record.order = self.totals.next_order;
        let value = transaction::encode(&record);
        let bytes = record_bytes(key, &value);
        let age = transaction::encode_age(&Age { at_secs: record.at_secs, bytes, key });
        self.rows.put(Table::TransactionAges, keys::number(record.order), age);
        self.rows.put(Table::Transactions, key, value);
        self.totals.next_order += 1;
        self.totals.count += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(bytes);
        Ok(bytes)
    }

    /// Removes the oldest records while a bound is passed and the quota lasts; `made_anew` are gone already. It begins
    /// at a place in the age order, not at the first row: each row that was removed before costs a look until LMDB has
    /// taken it out. Gives where to go on.
    fn remove_oldest(
        &mut self,
        limits: &TransactionLimits,
        now_secs: u64,
        mut oldest: u64,
        mut quota: Quota,
        made_anew: impl Fn(&str) -> bool,
    ) -> Result<u64, StorageError> {
        let from = keys::number(oldest);
        let range = (Bound::Included(&from[..]), Bound::Unbounded);
        for row in self.view.range(Table::TransactionAges, range, Direction::Forward)? {
            // A damaged row fails nobody's write: it stays, and counts, and those behind it are removed in their turn.
            let Some((order, age)) = unless_damaged(row.and_then(read_age))? else { continue };
            oldest = order;
            if !limits.passed(&self.totals, &age, now_secs) || (quota.count == 0 && quota.bytes == 0) {
                break;
            }
            oldest = order.saturating_add(1);
            if made_anew(age.key) {
                continue;
            }
            self.rows.delete(Table::Transactions, age.key);
            self.take_off(order, age.bytes);
            quota.count = quota.count.saturating_sub(1);
            quota.bytes = quota.bytes.saturating_sub(age.bytes);
        }
        Ok(oldest)
    }

    /// Takes a record out of the age order and the totals.
    fn take_off(&mut self, order: u64, bytes: u64) {
        self.rows.delete(Table::TransactionAges, keys::number(order));
        self.totals.count = self.totals.count.saturating_sub(1);
        self.totals.bytes = self.totals.bytes.saturating_sub(bytes);
    }
}
