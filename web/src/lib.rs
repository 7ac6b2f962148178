//! Seqtide's server: CouchDB's document API and feeds, and the native door, over HTTP.
//!
//! A request's way: [`routes`](crate) takes its path apart and names a handler; the handler parses, asks the engine,
//! and shapes the answer. What goes wrong becomes an answer in one place, `error`.

mod accept;
mod call_state;
pub mod check;
pub mod config;
mod cors;
mod error;
mod feeds;
mod front;
mod intake;
pub mod js_worker;
mod known_feeds;
pub mod logging;
mod multipart;
mod pages;
mod query;
mod reply;
mod request;
mod request_id;
mod routes;
#[doc(hidden)]
pub mod seam;
mod server;
mod state;
mod takeover;
mod telemetry;

use std::io::Write;
use std::net::SocketAddr;

use futures_util::{Stream, stream};
pub use server::{StartError, open, serve};

use crate::config::Config;

/// Runs the server until SIGTERM or SIGINT.
///
/// # Errors
/// [`StartError`], in one line.
pub fn run(config: Config) -> Result<(), StartError> {
    // Before the engine, whose metrics it records.
    telemetry::install()?;
    actix_web::rt::System::new().block_on(async {
        let (listener, engine) = open(&config)?;
        // Who reads the banner may send a signal at once.
        let terminated = terminated()?;
        print_banner(&config, listener.local_addr()?);
        serve(config, listener, engine, terminated).await
    })
}

/// Says where the server listens, where its data is, and one line to try. A reader that has gone away does not matter.
fn print_banner(config: &Config, address: SocketAddr) {
    let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
    let _ = writeln!(
        std::io::stdout(),
        "seqtide {} listening on http://{address}\ndata in {}\ntry: curl -X PUT http://{address}/demo",
        env!("CARGO_PKG_VERSION"),
        data.display()
    );
}

/// Gives every SIGTERM and SIGINT.
fn terminated() -> std::io::Result<impl Stream<Item = ()> + Unpin> {
    use tokio::signal::unix::{SignalKind, signal};
    let both = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(Box::pin(stream::unfold(both, async |(mut terminate, mut interrupt)| {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Some(((), (terminate, interrupt)))
    })))
}
