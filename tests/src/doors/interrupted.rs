//! A reader that is interrupted over and over.

use futures_util::StreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Door, Item};

/// So often it is cut soon at least, where there is enough to read.
pub const CUTS_MIN: usize = 5;

/// Follows a door, cut at random and resumed with its last token each time, until `take` has had enough. `take` gets
/// each item with the token before it. Says how often the door was opened.
pub async fn follow_interrupted(door: &dyn Door, seed: u64, mut take: impl FnMut(&Item, &str) -> bool) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut token, mut opened): (Option<String>, usize) = (None, 0);
    loop {
        // Later on now and then late enough for what comes in one piece: a message of a WebSocket is whole or nothing.
        let is_late = opened >= CUTS_MIN && rng.random_bool(0.2);
        let most = if is_late { 160 * door.largest_cut() } else { door.largest_cut() };
        let mut items = door.open(token.clone(), rng.random_range(1..=most)).await;
        opened += 1;
        while let Some(item) = items.next().await {
            if take(&item, token.as_deref().unwrap_or("0")) {
                return opened;
            }
            token = item.token().map(str::to_owned).or(token);
        }
    }
}
