//! The end of a connection by us, whatever its client reads.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::rt::task::JoinHandle;

use super::detachable::Detachable;

/// How long an answer has to go out on a connection that is then cut.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A connection that can be cut, whether it can be taken over or not.
pub struct Cutter(Option<Detachable>);

impl Cutter {
    /// For the connection of a request.
    pub fn of(req: &HttpRequest) -> Cutter {
        Cutter(req.conn_data().cloned())
    }

    /// Cuts it, whatever was not written yet.
    pub fn cut(&self) {
        if let Some(socket) = &self.0 {
            socket.cut();
        }
    }

    /// Cuts it when the last of its answer has had time to go out: the framework would keep it for a client that does
    /// not read, or for a body that does not come.
    pub fn cut_soon(&self) {
        self.cut_after(LAST_WORDS);
    }

    /// Cuts it after so long, if it is there still.
    pub fn cut_after(&self, patience: Duration) {
        if let Some(socket) = &self.0 {
            socket.cut_after(patience);
        }
    }

    /// Cuts it when this is ready, unless what is returned has been dropped before.
    pub fn cut_when(&self, due: impl Future<Output = ()> + 'static) -> Cutting {
        self.0.as_ref().map_or(Cutting(None), |socket| socket.cut_when(due))
    }
}

/// A connection that is to be cut; dropped, it is not.
pub struct Cutting(pub(super) Option<JoinHandle<()>>);

impl Drop for Cutting {
    fn drop(&mut self) {
        if let Some(cutting) = &self.0 {
            cutting.abort();
        }
    }
}
