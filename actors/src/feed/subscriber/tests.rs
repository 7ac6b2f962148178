use proptest::prelude::*;

use super::*;
use crate::feed::kind::FeedKind;

const SECOND: Duration = Duration::from_secs(1);

fn seq(version: u64) -> Sequence {
    Sequence::new(0, version)
}

fn options(mode: FeedMode) -> FeedOptions {
    FeedOptions { mode, ..FeedOptions::live(FeedKind::Embedded) }
}

fn page(examined: u64, complete: bool, rows: u64) -> PageRead {
    PageRead { examined: Some(seq(examined)), complete, rows }
}

/// The next step, however many rows it may read.
fn step(sub: &mut Subscriber, now: Instant, newest: Sequence) -> Step {
    match sub.step(now, newest, Sequence::ZERO) {
        Step::Read { after, up_to, direction, .. } => Step::Read { after, up_to, rows_max: 0, direction },
        other => other,
    }
}

fn read_to(after: u64, up_to: u64) -> Step {
    Step::Read { after: seq(after), up_to: seq(up_to), rows_max: 0, direction: Direction::Forward }
}

#[test]
fn a_normal_feed_ends_at_the_last_row_of_its_start() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&options(FeedMode::Once), seq(2), seq(5), now);
    assert_eq!(step(&mut sub, now, seq(9)), read_to(2, 5));
    sub.read(page(3, false, 1), seq(5), now);
    assert_eq!(step(&mut sub, now, seq(9)), read_to(3, 5));
    sub.read(PageRead { examined: None, complete: true, rows: 0 }, seq(5), now);
    assert_eq!(step(&mut sub, now, seq(9)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut sub, now, seq(9)), Step::End(EndReason::CaughtUp));
    assert_eq!(sub.position(), seq(5));
}

#[test]
fn a_place_ahead_of_the_database_is_kept_until_the_database_comes_there() {
    let now = Instant::now();
    let mut once = Subscriber::new(&options(FeedMode::Once), seq(1337), seq(4), now);
    assert_eq!(step(&mut once, now, seq(4)), Step::Say(Notice::CaughtUp));
    assert_eq!((step(&mut once, now, seq(4)), once.position()), (Step::End(EndReason::CaughtUp), seq(1337)));
    let mut live = Subscriber::new(&options(FeedMode::Live), seq(7), seq(4), now);
    assert_eq!(step(&mut live, now, seq(4)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut live, now, seq(7)), Step::Say(Notice::Waiting));
    assert_eq!(step(&mut live, now, seq(7)), Step::Wait { until: None });
    assert_eq!(step(&mut live, now, seq(8)), read_to(7, 8));
}

#[test]
fn a_limit_ends_at_the_last_row_given() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&FeedOptions { limit: Some(2), ..options(FeedMode::Live) }, seq(0), seq(9), now);
    assert!(matches!(sub.step(now, seq(9), Sequence::ZERO), Step::Read { rows_max: 2, .. }));
    sub.read(page(4, false, 2), seq(9), now);
    assert_eq!((step(&mut sub, now, seq(9)), sub.position()), (Step::End(EndReason::Limit), seq(4)));
}

#[test]
fn limit_zero_gives_nothing_but_lets_longpoll_wait() {
    let now = Instant::now();
    let none = |mode| FeedOptions { limit: Some(0), timeout: Some(SECOND), ..options(mode) };
    for mode in [FeedMode::Once, FeedMode::Live] {
        let mut sub = Subscriber::new(&none(mode), seq(0), seq(3), now);
        assert_eq!((step(&mut sub, now, seq(3)), sub.position()), (Step::End(EndReason::Limit), seq(0)));
    }
    let mut poll = Subscriber::new(&none(FeedMode::Longpoll), seq(0), seq(3), now);
    assert_eq!(step(&mut poll, now, seq(3)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut poll, now, seq(3)), Step::Say(Notice::Waiting));
    assert_eq!(step(&mut poll, now, seq(3)), Step::Wait { until: Some(now + SECOND) });
    assert_eq!(step(&mut poll, now + SECOND, seq(3)), Step::End(EndReason::Timeout));
    assert_eq!(poll.position(), seq(0));
}

#[test]
fn longpoll_answers_as_soon_as_it_has_given_a_row() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&options(FeedMode::Longpoll), seq(0), seq(0), now);
    assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::Waiting));
    assert_eq!(step(&mut sub, now, seq(1)), read_to(0, 1));
    sub.read(page(1, true, 0), seq(1), now);
    assert_eq!(step(&mut sub, now, seq(1)), Step::Wait { until: None }, "a wake whose rows are filtered out waits on");
    assert_eq!(step(&mut sub, now, seq(2)), read_to(1, 2));
    sub.read(page(2, true, 1), seq(2), now);
    assert_eq!(step(&mut sub, now, seq(2)), Step::End(EndReason::CaughtUp));
}

#[test]
fn a_heartbeat_comes_whenever_nothing_was_sent_for_its_time() {
    let now = Instant::now();
    let beating = FeedOptions { heartbeat: Some(SECOND), timeout: Some(SECOND / 2), ..options(FeedMode::Live) };
    let mut sub = Subscriber::new(&beating, seq(0), seq(0), now);
    assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::Waiting));
    assert_eq!(step(&mut sub, now, seq(0)), Step::Wait { until: Some(now + SECOND) }, "the timeout is ignored");
    for tenth in 1..10 {
        let later = now + SECOND / 10 * tenth;
        assert!(matches!(step(&mut sub, later, seq(u64::from(tenth))), Step::Read { .. }));
        sub.read(page(u64::from(tenth), true, 0), seq(u64::from(tenth)), later);
    }
    let due = now + SECOND;
    assert_eq!(step(&mut sub, due, seq(10)), Step::Say(Notice::Heartbeat), "rows that are not sent do not count");
    assert_eq!(step(&mut sub, due, seq(10)), Step::Say(Notice::Heartbeat), "it is due until it was said");
    sub.beaten(due);
    assert_eq!(step(&mut sub, due, seq(10)), read_to(9, 10));
    sub.read(page(10, true, 1), seq(10), due + SECOND / 2);
    let wait = step(&mut sub, due + SECOND / 2, seq(10));
    assert_eq!(wait, Step::Wait { until: Some(due + SECOND / 2 + SECOND) }, "rows that are sent do");
}

#[test]
fn a_heartbeat_that_is_always_due_keeps_no_row_from_being_read() {
    let now = Instant::now();
    let hasty = FeedOptions { heartbeat: Some(Duration::ZERO), ..options(FeedMode::Live) };
    let mut sub = Subscriber::new(&hasty, seq(0), seq(5), now);
    assert_eq!(step(&mut sub, now, seq(5)), Step::Say(Notice::Heartbeat));
    sub.beaten(now);
    assert_eq!(step(&mut sub, now, seq(5)), read_to(0, 5));
    sub.read(page(2, false, 1), seq(5), now);
    assert_eq!(step(&mut sub, now, seq(5)), Step::Say(Notice::Heartbeat));
    sub.beaten(now);
    assert_eq!(step(&mut sub, now, seq(5)), read_to(2, 5));
}

#[test]
fn a_moment_beyond_all_clocks_never_comes() {
    let now = Instant::now();
    for endless in [
        FeedOptions { heartbeat: Some(Duration::MAX), ..options(FeedMode::Live) },
        FeedOptions { timeout: Some(Duration::MAX), ..options(FeedMode::Live) },
    ] {
        let mut sub = Subscriber::new(&endless, seq(0), seq(0), now);
        assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::CaughtUp));
        assert_eq!(step(&mut sub, now, seq(0)), Step::Say(Notice::Waiting));
        assert_eq!(step(&mut sub, now, seq(0)), Step::Wait { until: None });
    }
}

#[test]
fn longpoll_ends_where_it_was_on_its_way_to_however_much_is_written_meanwhile() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&options(FeedMode::Longpoll), seq(0), seq(3), now);
    assert_eq!(step(&mut sub, now, seq(4)), read_to(0, 4));
    sub.read(page(2, false, 2), seq(4), now);
    assert_eq!(step(&mut sub, now, seq(9)), read_to(2, 4));
    sub.read(page(4, true, 1), seq(4), now);
    assert_eq!(step(&mut sub, now, seq(9)), Step::Say(Notice::CaughtUp));
    assert_eq!((step(&mut sub, now, seq(9)), sub.position()), (Step::End(EndReason::CaughtUp), seq(4)));
}

#[test]
fn a_descending_feed_without_rows_to_give_reads_none() {
    let now = Instant::now();
    let none = FeedOptions { limit: Some(0), descending: true, ..options(FeedMode::Longpoll) };
    let mut sub = Subscriber::new(&none, seq(0), seq(3), now);
    assert_eq!(step(&mut sub, now, seq(3)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut sub, now, seq(3)), Step::End(EndReason::CaughtUp));
}

#[test]
fn a_timeout_counts_from_the_last_news() {
    let now = Instant::now();
    let timed = FeedOptions { timeout: Some(SECOND), ..options(FeedMode::Live) };
    let mut sub = Subscriber::new(&timed, seq(0), seq(1), now);
    assert_eq!(step(&mut sub, now, seq(1)), read_to(0, 1));
    sub.read(page(1, true, 1), seq(1), now + SECOND / 2);
    assert_eq!(step(&mut sub, now + SECOND / 2, seq(1)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut sub, now + SECOND, seq(1)), Step::Wait { until: Some(now + SECOND * 3 / 2) });
    let mut other = Subscriber::new(&timed, seq(1), seq(1), now);
    for sub in [&mut sub, &mut other] {
        // Nothing has come since, and then something that does not concern it.
        sub.pass_over(Passed { up_to: seq(1), newest_at: now + SECOND });
    }
    assert_eq!(step(&mut sub, now + SECOND * 3 / 2, seq(1)), Step::End(EndReason::Timeout));
    assert_eq!(step(&mut other, now, seq(1)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut other, now, seq(1)), Step::Say(Notice::Waiting));
    other.pass_over(Passed { up_to: seq(2), newest_at: now + SECOND / 2 });
    assert_eq!(step(&mut other, now + SECOND, seq(2)), Step::Wait { until: Some(now + SECOND * 3 / 2) });
    assert_eq!(step(&mut other, now + SECOND * 3 / 2, seq(2)), Step::End(EndReason::Timeout));
}

#[test]
fn a_descending_feed_ends_at_the_oldest_row_in_every_mode() {
    let now = Instant::now();
    for mode in [FeedMode::Once, FeedMode::Longpoll, FeedMode::Live] {
        let mut sub = Subscriber::new(&FeedOptions { descending: true, ..options(mode) }, seq(3), seq(4), now);
        let back = |up_to| Step::Read { after: Sequence::ZERO, up_to, rows_max: 0, direction: Direction::Backward };
        assert_eq!(step(&mut sub, now, seq(4)), back(seq(4)));
        sub.read(page(4, false, 1), seq(4), now);
        assert_eq!(step(&mut sub, now, seq(4)), back(seq(4).before()));
        sub.read(page(2, true, 1), seq(4).before(), now);
        assert_eq!(step(&mut sub, now, seq(4)), Step::Say(Notice::CaughtUp));
        assert_eq!((step(&mut sub, now, seq(4)), sub.position()), (Step::End(EndReason::CaughtUp), seq(2)));
    }
}

#[test]
fn a_feed_ends_at_the_place_it_was_asked_for_up_to_and_waits_for_one_that_lies_ahead() {
    let now = Instant::now();
    let until = |version, mode| FeedOptions { until: Some(seq(version)), ..options(mode) };
    for mode in [FeedMode::Once, FeedMode::Live] {
        let mut sub = Subscriber::new(&until(3, mode), seq(0), seq(5), now);
        assert_eq!(step(&mut sub, now, seq(5)), read_to(0, 3));
        sub.read(page(2, true, 1), seq(3), now);
        assert_eq!((step(&mut sub, now, seq(5)), sub.position()), (Step::End(EndReason::Until), seq(3)));
        let mut behind = Subscriber::new(&until(3, mode), seq(4), seq(5), now);
        assert_eq!((step(&mut behind, now, seq(5)), behind.position()), (Step::End(EndReason::Until), seq(4)));
    }
    let mut once = Subscriber::new(&until(9, FeedMode::Once), seq(5), seq(5), now);
    assert_eq!(step(&mut once, now, seq(5)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut once, now, seq(5)), Step::End(EndReason::CaughtUp));
    let mut ahead = Subscriber::new(&until(9, FeedMode::Live), seq(5), seq(5), now);
    assert_eq!(step(&mut ahead, now, seq(5)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut ahead, now, seq(5)), Step::Say(Notice::Waiting));
    assert!(matches!(step(&mut ahead, now, seq(5)), Step::Wait { .. }));
    ahead.pass_over(Passed { up_to: seq(12), newest_at: now });
    assert_eq!((step(&mut ahead, now, seq(12)), ahead.position()), (Step::End(EndReason::Until), seq(9)));
}

#[test]
fn a_live_feed_says_when_it_falls_behind_what_is_in_memory_and_when_it_is_back_each_once() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&options(FeedMode::Live), seq(0), seq(9), now);
    // A first catch-up is none.
    assert!(matches!(sub.step(now, seq(9), seq(8)), Step::Read { .. }));
    sub.read(page(9, true, 9), seq(9), now);
    assert_eq!(sub.step(now, seq(9), seq(8)), Step::Say(Notice::CaughtUp));
    assert!(matches!(sub.step(now, seq(9), seq(9)), Step::Wait { .. }));
    for _ in 0..2 {
        // It is not behind where there is nothing to read, whatever memory has.
        assert!(matches!(sub.step(now, sub.position(), seq(50)), Step::Wait { .. }));
        let (position, newest) = (sub.position().version, sub.position().version + 10);
        assert_eq!(sub.step(now, seq(newest), seq(position + 5)), Step::Say(Notice::Lagging));
        assert_eq!(sub.step(now, seq(newest), seq(position + 5)), Step::Say(Notice::Lagging), "until it was told");
        sub.note_said(Notice::Lagging);
        assert!(!sub.is_following());
        assert!(matches!(sub.step(now, seq(newest), seq(position + 5)), Step::Read { .. }));
        sub.read(page(position + 6, false, 6), seq(newest), now);
        assert_eq!(sub.step(now, seq(newest), seq(position + 5)), Step::Say(Notice::Live));
        sub.note_said(Notice::Live);
        assert!(matches!(sub.step(now, seq(newest), seq(position + 5)), Step::Read { .. }));
        sub.read(page(newest, true, 4), seq(newest), now);
    }
}

/// One that joined others just below what they had said that it lagged, though all it lacked was in memory.
#[test]
fn who_others_have_left_behind_lags_where_it_has_to_read_the_disk_and_says_so_once() {
    let now = Instant::now();
    let resumed = |state| Subscriber::resumed(&options(FeedMode::Live), seq(5), state, now);
    let mut near = resumed(FeedState::Live);
    assert!(matches!(near.step(now, seq(9), seq(5)), Step::Read { .. }) && near.is_following());
    let mut far = resumed(FeedState::Live);
    assert_eq!(far.step(now, seq(9), seq(6)), Step::Say(Notice::Lagging));
    far.note_said(Notice::Lagging);
    let mut told = resumed(FeedState::Lagging);
    for sub in [&mut far, &mut told] {
        assert!(matches!(sub.step(now, seq(9), seq(6)), Step::Read { .. }) && !sub.is_following());
        sub.read(page(7, false, 1), seq(9), now);
        assert_eq!(sub.step(now, seq(9), seq(6)), Step::Say(Notice::Live));
        sub.note_said(Notice::Live);
        assert!(sub.is_following());
    }
}

#[test]
fn who_has_said_that_it_ends_shortly_says_no_more_of_how_it_stands_but_that_it_has_caught_up() {
    let now = Instant::now();
    let mut live = Subscriber::resumed(&options(FeedMode::Live), seq(5), FeedState::Live, now);
    let mut lagging = Subscriber::resumed(&options(FeedMode::Live), seq(5), FeedState::Lagging, now);
    for (sub, memory_from) in [(&mut live, 9), (&mut lagging, 5)] {
        sub.note_said_draining();
        assert!(matches!(sub.step(now, seq(9), seq(memory_from)), Step::Read { .. }) && !sub.is_following());
    }
    let snapshot = FeedOptions { snapshot: true, ..options(FeedMode::Live) };
    let mut catching_up = Subscriber::new(&snapshot, seq(0), seq(0), now);
    catching_up.note_said_draining();
    assert_eq!(step(&mut catching_up, now, seq(0)), Step::Say(Notice::SnapshotEnd));
    assert_eq!(step(&mut catching_up, now, seq(0)), Step::Say(Notice::CaughtUp));
}

#[test]
fn a_snapshot_ends_at_the_update_sequence_of_its_start_and_the_feed_goes_on_behind_it() {
    let now = Instant::now();
    let snapshot = |mode| FeedOptions { snapshot: true, ..options(mode) };
    let mut sub = Subscriber::new(&snapshot(FeedMode::Live), seq(0), seq(5), now);
    assert_eq!(step(&mut sub, now, seq(8)), read_to(0, 5));
    assert!(sub.is_first_snapshot());
    sub.read(page(4, true, 2), seq(5), now);
    assert_eq!((step(&mut sub, now, seq(8)), sub.position()), (Step::Say(Notice::SnapshotEnd), seq(5)));
    assert_eq!(step(&mut sub, now, seq(8)), read_to(5, 8));
    assert!(!sub.is_first_snapshot());
    let mut resumed = Subscriber::new(&snapshot(FeedMode::Once), seq(3), seq(5), now);
    assert_eq!(step(&mut resumed, now, seq(8)), read_to(3, 5));
    assert!(!resumed.is_first_snapshot(), "what its reader has may have been deleted");
    resumed.read(page(5, true, 2), seq(5), now);
    for step_expected in [Step::Say(Notice::SnapshotEnd), Step::Say(Notice::CaughtUp), Step::End(EndReason::CaughtUp)] {
        assert_eq!(step(&mut resumed, now, seq(8)), step_expected);
    }
    let mut empty = Subscriber::new(&snapshot(FeedMode::Live), seq(0), seq(0), now);
    assert_eq!(step(&mut empty, now, seq(0)), Step::Say(Notice::SnapshotEnd));
}

#[test]
fn a_feed_without_a_heartbeat_that_reads_in_vain_says_so_and_one_that_waits_does_not() {
    let start = Instant::now();
    let vain = |examined| page(examined, false, 0);
    for (mode, timeout) in [(FeedMode::Once, None), (FeedMode::Longpoll, Some(SECOND)), (FeedMode::Live, None)] {
        let mut sub = Subscriber::new(&FeedOptions { timeout, ..options(mode) }, seq(0), seq(9), start);
        let late = start + SILENCE_MAX;
        assert_eq!(step(&mut sub, late, seq(9)), read_to(0, 9), "it reads before it says that it has");
        assert_eq!([start, late].map(|begun| sub.sign_due(begun)), [late, late + SILENCE_MAX].map(Some));
        sub.read(vain(3), seq(9), late);
        assert_eq!(step(&mut sub, late, seq(9)), Step::Say(Notice::StillReading));
        assert_eq!(step(&mut sub, late, seq(9)), read_to(3, 9), "once");
        sub.read(vain(4), seq(9), late + SECOND);
        assert_eq!(step(&mut sub, late + SECOND, seq(9)), read_to(4, 9), "it was said a second ago");
        sub.still_reading();
        assert_eq!(step(&mut sub, late + SILENCE_MAX, seq(9)), Step::Say(Notice::StillReading), "of a slow page too");
        sub.read(page(6, false, 1), seq(9), late + SILENCE_MAX * 2);
        assert_eq!(step(&mut sub, late + SILENCE_MAX * 3, seq(9)), read_to(6, 9), "its last page gave a row");
    }
    let mut live = Subscriber::new(&options(FeedMode::Live), seq(0), seq(0), start);
    assert_eq!(step(&mut live, start, seq(0)), Step::Say(Notice::CaughtUp));
    assert_eq!(step(&mut live, start, seq(0)), Step::Say(Notice::Waiting));
    assert_eq!(step(&mut live, start + SILENCE_MAX, seq(0)), Step::Wait { until: None });
    let heartbeat = Some(SILENCE_MAX * 9);
    let mut beating = Subscriber::new(&FeedOptions { heartbeat, ..options(FeedMode::Live) }, seq(0), seq(9), start);
    beating.read(vain(3), seq(9), start);
    assert_eq!(step(&mut beating, start + SILENCE_MAX, seq(9)), read_to(3, 9), "its heartbeat is what it says");
}

#[test]
fn draining_ends_at_the_next_step() {
    let now = Instant::now();
    let mut sub = Subscriber::new(&options(FeedMode::Live), seq(0), seq(3), now);
    sub.drain(EndReason::Deleted);
    assert_eq!(step(&mut sub, now, seq(3)), Step::End(EndReason::Deleted));
}

/// What may come next of how a feed stands; see `docs/feeds.md`.
fn next_state(state: FeedState, notice: Notice, is_draining: bool) -> Option<FeedState> {
    match (state, notice) {
        (_, Notice::Waiting | Notice::Heartbeat | Notice::StillReading) => Some(state),
        (FeedState::CatchingUp, Notice::SnapshotEnd) => Some(state),
        (FeedState::CatchingUp, Notice::CaughtUp) => Some(FeedState::Live),
        (FeedState::Live, Notice::Lagging) if !is_draining => Some(FeedState::Lagging),
        (FeedState::Lagging, Notice::Live) if !is_draining => Some(FeedState::Live),
        _ => None,
    }
}

proptest! {
    #[test]
    fn states_come_in_the_order_that_is_promised(
        (snapshot, is_live, is_resumed) in any::<(bool, bool, bool)>(),
        start in 0u64..20,
        steps in prop::collection::vec((0u64..4, 0u64..30, 1u64..6, 0u8..20), 1..80),
    ) {
        let now = Instant::now();
        let mode = if is_live { FeedMode::Live } else { FeedMode::Once };
        let options = FeedOptions { snapshot, heartbeat: Some(SECOND), ..options(mode) };
        let (mut newest, mut memory_from, mut now, mut is_draining) = (20, 0, now, false);
        let mut state = if is_resumed && is_live { FeedState::Live } else { FeedState::CatchingUp };
        let mut sub = match state {
            FeedState::Live => Subscriber::resumed(&options, seq(start), state, now),
            _ => Subscriber::new(&options, seq(start), seq(newest), now),
        };
        for (written, forgotten, examined, luck) in steps {
            newest += written;
            memory_from = newest.saturating_sub(forgotten).max(memory_from);
            if luck == 0 {
                sub.note_said_draining();
                is_draining = true;
            }
            now += SECOND / 4 * u32::from(luck % 3);
            match sub.step(now, seq(newest), seq(memory_from)) {
                Step::Read { after, up_to, .. } => {
                    let to = seq(after.version + examined).min(up_to);
                    sub.read(page(to.version, to == up_to, 1), up_to, now);
                }
                Step::Wait { .. } => prop_assert!(state != FeedState::CatchingUp),
                Step::End(_) => break,
                Step::Say(notice) => {
                    let next = next_state(state, notice, is_draining);
                    prop_assert!(next.is_some(), "{notice:?} of a feed that is {state:?}");
                    state = next.unwrap_or(state);
                    match notice {
                        Notice::Heartbeat => sub.beaten(now),
                        Notice::Lagging => {
                            prop_assert!(sub.position() < seq(memory_from), "it reads the disk");
                            sub.note_said(notice);
                        }
                        Notice::Live => sub.note_said(notice),
                        Notice::Waiting | Notice::StillReading | Notice::CaughtUp | Notice::SnapshotEnd => {}
                    }
                }
            }
        }
    }
}
