//! Work that goes on whether or not it is asked for meanwhile, because it holds what others wait for.

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinSet};

use crate::error::Error;

/// Does the work on the engine's own runtime, which goes on whatever becomes of that of who asks; it is given up with
/// the future.
///
/// # Errors
/// Those of the work; [`Error::Stopped`] when the engine stops.
pub(crate) async fn by_itself<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
    engines: &Handle,
) -> Result<T, Error> {
    let mut task = JoinSet::new();
    task.spawn_on(work, engines);
    task.join_next().await.map_or(Err(Error::Stopped), done)
}

/// What became of work on the engine's runtime; a panic of it goes on here.
///
/// # Errors
/// Those of the work; [`Error::Stopped`] when the engine stops.
pub(crate) fn done<T>(joined: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    match joined {
        Ok(done) => done,
        Err(cut_short) if cut_short.is_panic() => std::panic::resume_unwind(cut_short.into_panic()),
        Err(_engine_stops) => Err(Error::Stopped),
    }
}
