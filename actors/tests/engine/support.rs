//! What the tests share.

use std::future::Future;
use std::time::Duration;

use seqtide::{Change, ChangeEvent, Changes, Engine, EngineOptions};
use tempfile::TempDir;
use tokio_stream::StreamExt;

/// Far longer than anything here takes.
const SOON: Duration = Duration::from_secs(60);

/// An engine over a data folder of its own, with options changed by `set`.
pub fn engine(set: impl FnOnce(&mut EngineOptions)) -> (Engine, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = EngineOptions::new(folder.path());
    options.store.map_bytes = 1 << 30;
    set(&mut options);
    (Engine::start_with(options).expect("an engine"), folder)
}

/// What a future gives, unless it hangs.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.expect("this should not take so long")
}

/// The next change of a stream.
pub async fn next_change(changes: &mut Changes) -> Change {
    loop {
        if let ChangeEvent::Change(change) = next_event(changes).await {
            return change;
        }
    }
}

/// The next event of a stream.
pub async fn next_event(changes: &mut Changes) -> ChangeEvent {
    soon(changes.next()).await.expect("the stream goes on").expect("it can be read")
}
