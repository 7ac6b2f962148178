//! The threads that actors run on.

use std::io;
use std::sync::mpsc::channel;
use std::thread;

use actix::{Arbiter, ArbiterHandle, System};
use seqtide_storage::StorageError;
use tokio::runtime::{self, Handle};

use crate::error::Error;

/// An actix system on a thread of its own, on which the others are started. All of them end when it is dropped.
pub(crate) struct ActorSystem {
    system: System,
    first: ArbiterHandle,
    runtime: Handle,
}

impl ActorSystem {
    /// Starts it.
    ///
    /// # Errors
    /// [`Error::Storage`]: the system has no thread or no open files for it.
    pub fn start() -> Result<ActorSystem, Error> {
        let (started, start) = channel();
        let run = move || {
            // It is made here, as actix panics where it cannot make one.
            let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(why) => {
                    // Nobody waits any more only if the thread that starts this one has panicked; so it is below.
                    let _ = started.send(Err(why));
                    return;
                }
            };
            let handle = runtime.handle().clone();
            let system = System::with_tokio_rt(|| runtime);
            let (current, first) = (System::current(), Arbiter::current());
            let _ = started.send(Ok(ActorSystem { system: current, first, runtime: handle }));
            if let Err(error) = system.run() {
                tracing::error!(%error, "the actors' system ended");
            }
        };
        thread::Builder::new().name("actors".to_owned()).spawn(run).map_err(no_thread)?;
        start.recv().map_err(|_ended| Error::Stopped)?.map_err(no_thread)
    }

    /// Starts something on its first thread, from which threads of its own can be started.
    ///
    /// # Errors
    /// [`Error::Storage`] when that fails.
    pub fn start_on<T: Send + 'static>(
        &self,
        start: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (started, starting) = channel();
        self.first.spawn_fn(move || {
            // Nobody waits any more only if the thread that starts the engine has panicked.
            let _ = started.send(start());
        });
        starting.recv().map_err(|_ended| Error::Stopped)?.map_err(no_thread)
    }

    /// The runtime of its first thread.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Ends them when this is done, which its first thread does; nobody waits for it.
    pub fn end_after(self, last: impl Future<Output = ()> + Send + 'static) {
        let first = self.first.clone();
        first.spawn(async move {
            last.await;
            drop(self);
        });
    }
}

impl Drop for ActorSystem {
    fn drop(&mut self) {
        self.system.stop();
    }
}

fn no_thread(source: io::Error) -> Error {
    StorageError::Io { path: "the actors' threads".into(), source }.into()
}
