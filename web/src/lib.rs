//! Seqtide's server: CouchDB's document API and feeds, and the native door, over HTTP.
//!
//! A request's way: [`routes`](crate) takes its path apart and names a handler; the handler parses, asks the engine,
//! and shapes the answer. What goes wrong becomes an answer in one place, `error`.

mod accept;
mod call_state;
pub mod check;
pub mod config;
mod cors;
mod dashboard;
mod error;
mod feeds;
mod front;
mod intake;
pub mod js_worker;
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
mod subscriptions;
mod takeover;
mod telemetry;

use std::io::Write;
use std::net::SocketAddr;

pub use server::{StartError, open, serve};

use crate::config::Config;

/// Runs the server until SIGTERM or SIGINT.
///
/// # Errors
/// [`StartError`], in one line.
pub fn run(config: Config) -> Result<(), StartError> {
    // Before the engine, whose metrics it records.
    telemetry::Metrics::install()?;
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
        "seqtide {} listening on http://{address}\ndata in {}\ndashboard: http://{address}/_dashboard/\n\
         try: curl -X PUT http://{address}/demo",
        env!("CARGO_PKG_VERSION"),
        data.display()
    );
}

/// Ready at the first SIGTERM or SIGINT.
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
