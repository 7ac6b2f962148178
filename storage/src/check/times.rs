//! When what was written: seconds rise, and sequences with them or not at all.

use super::{CheckReport, all, at};
use crate::codec::meta::Counters;
use crate::error::StorageError;
use crate::tables::Table;
use crate::times::{TimeRow, read};
use crate::view::View;

pub(super) fn check(view: View<'_>, counters: &Counters, report: &mut CheckReport) -> Result<(), StorageError> {
    let mut before = None;
    for row in all(view, Table::Times)? {
        report.times += 1;
        let Some(row) = report.noting(row.and_then(read))? else { continue };
        let TimeRow { secs, behind } = row;
        if behind >= counters.update_seq {
            report.problem(format!("times {secs}: {} is not below the update sequence", at(behind)));
        }
        if let Some(TimeRow { secs: before, behind: last }) = before.replace(row)
            && behind < last
        {
            report.problem(format!("times {secs}: {} is below that of {before}", at(behind)));
        }
    }
    Ok(())
}
