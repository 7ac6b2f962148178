//! Records of keyed requests: each has its place in the age order, each place its record, and their sums are right.

use super::{CheckReport, all, decoded};
use crate::codec::transaction::{self, Age, Totals};
use crate::codec::{as_text, keys};
use crate::error::StorageError;
use crate::tables::{META_TRANSACTIONS, Table};
use crate::transactions::record_bytes;
use crate::view::View;

pub(super) fn check(view: View<'_>, report: &mut CheckReport) -> Result<(), StorageError> {
    let stored = report.noting(view.read(Table::Meta, META_TRANSACTIONS, transaction::decode_totals))?;
    let stored = stored.flatten().unwrap_or_default();
    let found = check_records(view, report)?;
    let ages = check_ages(view, report, stored.next_order)?;
    for (what, says, has) in [
        ("records", stored.count, found.count),
        ("bytes of records", stored.bytes, found.bytes),
        ("places in the age order", stored.count, ages),
    ] {
        if says != has {
            report.problem(format!("meta transactions: {says} {what}, there are {has}"));
        }
    }
    Ok(())
}

/// Each record stands where it says in the age order. Adds them up.
fn check_records(view: View<'_>, report: &mut CheckReport) -> Result<Totals, StorageError> {
    let mut found = Totals::default();
    for row in all(view, Table::Transactions)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        report.transactions += 1;
        found.count += 1;
        let Some(text) = report.noting(decoded(Table::Transactions, key, as_text(key)))? else { continue };
        let bytes = record_bytes(text, value);
        found.bytes += bytes;
        let Some(record) = report.noting(decoded(Table::Transactions, key, transaction::decode(value)))? else {
            continue;
        };
        let place = keys::number(record.order);
        let age = report.noting(view.expect(Table::TransactionAges, &place, transaction::decode_age))?;
        let expected = Age { at_secs: record.at_secs, bytes, key: text };
        if age.is_some_and(|age| age != expected) {
            report
                .problem(format!("transactions {text:?}: its place in the age order, {}, is another's", record.order));
        }
    }
    Ok(found)
}

/// Each place in the age order lies below the next one to be given, and has a record. Counts them.
fn check_ages(view: View<'_>, report: &mut CheckReport, next_order: u64) -> Result<u64, StorageError> {
    let mut ages = 0;
    for row in all(view, Table::TransactionAges)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        ages += 1;
        let order = report.noting(decoded(Table::TransactionAges, key, keys::read_number(key)))?;
        if let Some(order) = order.filter(|order| *order >= next_order) {
            report.problem(format!("transaction_ages {order}: not below the next place, {next_order}"));
        }
        let Some(age) = report.noting(decoded(Table::TransactionAges, key, transaction::decode_age(value)))? else {
            continue;
        };
        if report.noting(view.get(Table::Transactions, age.key.as_bytes()))? == Some(None) {
            report.problem(format!("transaction_ages {}: no record {:?}", order.unwrap_or_default(), age.key));
        }
    }
    Ok(ages)
}
