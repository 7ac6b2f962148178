use proptest::prelude::*;

use super::*;

const DELETED_MAX: usize = 3;

fn name(number: u8) -> DbName {
    DbName::parse(&format!("db{number}")).unwrap()
}

fn seq(version: u64) -> Sequence {
    Sequence::new(0, version)
}

fn log() -> UpdateLog {
    let log = UpdateLog::new(Noted::default(), DELETED_MAX);
    log.raise_ceiling(u64::MAX);
    log
}

fn happen(log: &UpdateLog, number: u8, kind: UpdateKind) {
    match kind {
        UpdateKind::Updated => log.note(&name(number), kind),
        UpdateKind::Created | UpdateKind::Deleted => log.reserve().publish(&name(number), kind),
    }
}

fn read(log: &UpdateLog, after: u64, direction: Direction, rows_max: usize) -> UpdatesPage {
    log.read(ReadUpdates { after: seq(after), up_to: Sequence::MAX, rows_max, direction }, |_| true)
}

/// Rows as `kind name seq`, the newest state of the log last.
fn texts(page: &UpdatesPage) -> Vec<String> {
    page.rows.iter().map(|row| format!("{} {} {}", row.kind.name(), row.name, row.seq.version)).collect()
}

#[test]
fn a_row_stands_at_its_latest_sequence_and_stale_ones_are_gone() {
    let log = log();
    happen(&log, 1, UpdateKind::Created);
    happen(&log, 2, UpdateKind::Created);
    happen(&log, 1, UpdateKind::Updated);
    happen(&log, 1, UpdateKind::Updated);
    assert_eq!(texts(&read(&log, 0, Direction::Forward, 9)), ["created db1 1", "created db2 2", "updated db1 4"]);
    happen(&log, 1, UpdateKind::Deleted);
    assert_eq!(texts(&read(&log, 0, Direction::Forward, 9)), ["created db2 2", "deleted db1 5"]);
    log.note(&name(1), UpdateKind::Updated);
    assert_eq!(log.newest(), seq(5), "a database that is gone is not written to");
    happen(&log, 1, UpdateKind::Created);
    assert_eq!(texts(&read(&log, 0, Direction::Backward, 9)), ["created db1 6", "created db2 2"]);
}

#[test]
fn nothing_is_visible_from_what_is_under_way_on() {
    let log = log();
    happen(&log, 1, UpdateKind::Created);
    let first = log.reserve();
    let second = log.reserve();
    happen(&log, 1, UpdateKind::Updated);
    assert_eq!(
        (log.newest(), texts(&read(&log, 0, Direction::Forward, 9))),
        (seq(1), vec!["created db1 1".to_owned()])
    );
    second.publish(&name(3), UpdateKind::Created);
    assert_eq!(log.newest(), seq(1), "the first is still under way");
    drop(first);
    assert_eq!(log.newest(), seq(4));
    assert_eq!(texts(&read(&log, 1, Direction::Forward, 9)), ["created db3 3", "updated db1 4"]);
}

#[test]
fn what_finds_no_room_below_the_ceiling_waits_and_no_sequence_lies_above_it() {
    let log = UpdateLog::new(Noted { last: 7, rows: Vec::new() }, DELETED_MAX);
    log.note(&name(1), UpdateKind::Updated);
    log.note(&name(1), UpdateKind::Updated);
    log.note(&name(2), UpdateKind::Created);
    assert_eq!((log.newest(), log.is_waiting()), (seq(7), true));
    log.raise_ceiling(8);
    assert_eq!((log.newest(), log.is_waiting()), (seq(8), true));
    assert!(log.next_ceiling().is_some_and(|ceiling| ceiling > 9));
    log.raise_ceiling(10_000_000);
    assert_eq!(texts(&read(&log, 7, Direction::Forward, 9)), ["updated db1 8", "created db2 9"]);
    assert_eq!((log.is_waiting(), log.next_ceiling()), (false, None));
}

#[test]
fn the_oldest_deletions_are_forgotten_first() {
    let log = log();
    for number in 0..10 {
        happen(&log, number, UpdateKind::Created);
        happen(&log, number, UpdateKind::Deleted);
    }
    let rows = texts(&read(&log, 0, Direction::Forward, 99));
    assert_eq!(rows, ["deleted db7 16", "deleted db8 18", "deleted db9 20"]);
    assert_eq!(log.rows().places.len(), DELETED_MAX, "nothing else is kept of them");
}

#[test]
fn a_page_looks_at_so_many_rows_and_says_where_it_ended() {
    let log = log();
    for number in 0..ROWS_EXAMINED_MAX + 5 {
        log.note(&DbName::parse(&format!("n{number}")).unwrap(), UpdateKind::Updated);
    }
    let wanted = |after| ReadUpdates { after, up_to: Sequence::MAX, rows_max: 9, direction: Direction::Forward };
    let page = log.read(wanted(Sequence::ZERO), |name| name.as_str() == "n10002");
    assert_eq!((page.rows.len(), page.examined, page.complete), (0, Some(seq(10_000)), false));
    let page = log.read(wanted(seq(10_000)), |name| name.as_str() == "n10002");
    assert_eq!((page.rows.len(), page.examined, page.complete), (1, Some(seq(10_005)), true));
    let page = log.read(wanted(Sequence::new(1, 0)), |_| true);
    assert_eq!((page.rows.len(), page.complete), (0, true), "a token of an incarnation lies above all");
}

/// What has happened so far, in order: the log must show of it what is not stale.
#[derive(Default)]
struct Model {
    history: Vec<(u64, u8, UpdateKind)>,
}

impl Model {
    fn kind_of(&self, number: u8, wanted: &[UpdateKind]) -> Option<(u64, UpdateKind)> {
        let of_it = self.history.iter().rev().filter(|(_, of, kind)| *of == number && wanted.contains(kind));
        of_it.map(|(seq, _, kind)| (*seq, *kind)).next()
    }

    fn exists(&self, number: u8) -> bool {
        let last = self.kind_of(number, &[UpdateKind::Created, UpdateKind::Deleted]);
        last.is_some_and(|(_, kind)| kind == UpdateKind::Created)
    }

    fn rows(&self) -> Vec<String> {
        let deletions = self.history.iter().filter(|(seq, number, kind)| {
            *kind == UpdateKind::Deleted
                && self.kind_of(*number, &[UpdateKind::Created, UpdateKind::Deleted]).is_some_and(|last| last.0 == *seq)
        });
        let mut rows: Vec<_> = deletions.copied().collect();
        for number in 0..NAMES {
            let Some((created, UpdateKind::Created)) =
                self.kind_of(number, &[UpdateKind::Created, UpdateKind::Deleted])
            else {
                continue;
            };
            rows.push((created, number, UpdateKind::Created));
            let updated = self.kind_of(number, &[UpdateKind::Updated]).filter(|(seq, _)| *seq > created);
            rows.extend(updated.map(|(seq, kind)| (seq, number, kind)));
        }
        rows.sort_unstable();
        rows.iter().map(|(seq, number, kind)| format!("{} db{number} {seq}", kind.name())).collect()
    }
}

/// Fewer than deletions are remembered: forgetting is another test's.
const NAMES: u8 = DELETED_MAX as u8;

/// A reader, from a position of its own, in pages of a size of its own.
struct Reader {
    position: u64,
    rows_max: usize,
    known: BTreeMap<u8, UpdateKind>,
}

impl Reader {
    /// Reads a page; what it is told of a database takes the place of what it knew.
    fn read(&mut self, log: &UpdateLog) -> bool {
        let newest = log.newest().version;
        let page = read(log, self.position, Direction::Forward, self.rows_max);
        for row in &page.rows {
            assert!(row.seq.version > self.position && row.seq.version <= newest);
            self.position = row.seq.version;
            self.known.insert(row.name.as_str()["db".len()..].parse().unwrap(), row.kind);
        }
        if page.complete {
            self.position = newest;
        }
        page.complete
    }
}

proptest! {
    #[test]
    fn the_log_shows_what_a_history_would_and_no_reader_misses_anything(
        steps in prop::collection::vec((0..NAMES, 0..4u8, 0..3usize), 1..200),
    ) {
        let (log, mut model) = (log(), Model::default());
        let mut readers = [1, 2, 50].map(|rows_max| Reader { position: 0, rows_max, known: BTreeMap::new() });
        for (number, action, reader) in steps {
            let kind = match (action, model.exists(number)) {
                (0, _) => None,
                (1, true) => Some(UpdateKind::Deleted),
                (_, true) => Some(UpdateKind::Updated),
                (_, false) => Some(UpdateKind::Created),
            };
            match kind {
                None => drop(readers[reader].read(&log)),
                Some(kind) => {
                    happen(&log, number, kind);
                    model.history.push((log.newest().version, number, kind));
                }
            }
            prop_assert_eq!(texts(&read(&log, 0, Direction::Forward, 99)), model.rows());
        }
        let mut backward = texts(&read(&log, 0, Direction::Backward, 99));
        backward.reverse();
        prop_assert_eq!(backward, model.rows());
        for reader in &mut readers {
            while !reader.read(&log) {}
            for number in 0..NAMES {
                let last = model.history.iter().rev().find(|(_, of, _)| *of == number).map(|(_, _, kind)| *kind);
                prop_assert_eq!(reader.known.get(&number).copied(), last, "db{}", number);
            }
        }
        let noted = log.close();
        let again = UpdateLog::new(noted, DELETED_MAX);
        prop_assert_eq!(texts(&read(&again, 0, Direction::Forward, 99)), model.rows());
        prop_assert_eq!(again.newest(), log.newest());
    }
}
