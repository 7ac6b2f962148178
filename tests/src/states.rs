//! The order in which a native feed says how it stands, as `docs/feeds.md` has it.

/// Follows what a feed says, by the names of its events, from the first one on; rows are left out.
///
/// # Panics
/// When something comes that may not come there.
pub fn assert_in_order<'a>(events: impl IntoIterator<Item = &'a str>) {
    let events: Vec<&str> = events.into_iter().collect();
    let (mut state, mut has_snapshot_end, mut is_draining) = ("unopened", false, false);
    for event in &events {
        state = match (state, *event) {
            ("unopened", "opened" | "rewind") => "catching-up",
            ("catching-up" | "live" | "lagging", "heartbeat") => state,
            ("catching-up", "snapshot-end") if !std::mem::replace(&mut has_snapshot_end, true) => state,
            ("catching-up", "caught-up") => "live",
            ("live", "lagging") if !is_draining => "lagging",
            ("lagging", "live") if !is_draining => "live",
            ("catching-up" | "live" | "lagging", "draining") if !std::mem::replace(&mut is_draining, true) => state,
            ("catching-up" | "live" | "lagging", "end" | "error") => "over",
            _ => panic!("{event} where a feed is {state} (draining: {is_draining}), of {events:?}"),
        };
    }
}

/// The names of the events on a stream of Server-Sent Events.
pub fn events_of(stream: &str) -> impl Iterator<Item = &str> {
    stream.lines().filter_map(|line| line.strip_prefix("event: "))
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn what_the_page_allows_is_in_order_and_nothing_else() {
        for good in [
            "opened caught-up heartbeat lagging heartbeat live lagging live draining heartbeat end",
            "rewind snapshot-end caught-up end",
            "opened draining snapshot-end caught-up end",
            "opened caught-up lagging draining end",
            "opened error",
        ] {
            assert_in_order(good.split(' '));
        }
        for bad in [
            "caught-up",
            "opened lagging",
            "opened caught-up live",
            "opened caught-up lagging lagging",
            "opened caught-up caught-up",
            "opened caught-up snapshot-end",
            "opened caught-up draining lagging",
            "opened caught-up lagging draining live",
            "opened draining draining",
            "opened end caught-up",
        ] {
            assert!(catch_unwind(|| assert_in_order(bad.split(' '))).is_err(), "{bad}");
        }
    }
}
