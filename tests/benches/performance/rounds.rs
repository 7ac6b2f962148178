//! Sides that take turns, so that what slows the machine for a while slows all of them.

/// One turn of each of `sides` in each of `rounds`, beginning with another one each time; the results of each, by side.
/// With `warm_up` there is a round before them that does not count.
pub fn take<T>(
    what: &str,
    (sides, rounds, warm_up): (usize, usize, bool),
    mut turn: impl FnMut(usize) -> T,
) -> Vec<Vec<T>> {
    let mut results: Vec<Vec<T>> = (0..sides).map(|_| Vec::new()).collect();
    for round in usize::from(!warm_up)..=rounds {
        eprintln!("{what}, round {round} of {rounds}");
        for place in 0..sides {
            let side = (round + place) % sides;
            let result = turn(side);
            results[side].extend((round > 0).then_some(result));
        }
    }
    results
}
