//! Seqtide's server: CouchDB's document API and feeds, and the native door, over HTTP.
//!
//! A request's way: [`routes`](crate) takes its path apart and names a handler; the handler parses, asks the engine,
//! and shapes the answer. What goes wrong becomes an answer in one place, `error`.

mod accept;
mod bodies;
mod call;
mod call_state;
pub mod check;
pub mod config;
mod connection;
mod cors;
mod cut_short;
mod dashboard;
mod demo;
mod error;
mod feed_options;
mod feeds;
mod front;
mod ids;
mod intake;
pub mod js_worker;
mod json;
mod known_feeds;
pub mod logging;
pub mod memory;
mod multipart;
mod nearest;
mod pages;
mod plain_put;
mod query;
mod reply;
mod request;
mod request_id;
mod routes;
#[doc(hidden)]
pub mod seam;
mod server;
pub mod signals;
mod state;
mod subscriptions;
mod takeover;
mod telemetry;
mod wire;

use std::io::Write;
use std::net::SocketAddr;

use seqtide::Engine;

pub use server::{StartError, open, serve};

use crate::config::Config;

/// Runs the server until it is [asked to end](signals).
///
/// # Errors
/// [`StartError`], in one line.
pub fn run(config: Config) -> Result<(), StartError> {
    run_with(config, |_, address| format!("try: curl -X PUT http://{address}/demo"))
}

/// Runs the server with a database that follows this machine's figures, until it is [asked to end](signals).
///
/// # Errors
/// [`StartError`], in one line.
pub fn run_demo(config: Config) -> Result<(), StartError> {
    let folder = config.data.clone();
    run_with(config, move |engine, address| {
        actix_web::rt::spawn(demo::follow(engine.clone(), folder));
        let demo = demo::DATABASE;
        format!("demo: http://{address}/_dashboard/#/db/{demo} and http://{address}/_dashboard/examples/host.html")
    })
}

/// Runs the server; what comes beside it is begun once the engine runs, and gives the banner's last line.
fn run_with(config: Config, beside: impl FnOnce(&Engine, SocketAddr) -> String) -> Result<(), StartError> {
    // Before the engine, whose metrics it records.
    telemetry::Metrics::install()?;
    actix_web::rt::System::new().block_on(async {
        outlive_full_files()?;
        let (listener, engine) = open(&config)?;
        // Who reads the banner may send a signal at once.
        let terminated = signals::terminated()?;
        let address = listener.local_addr()?;
        print_banner(&config, address, &beside(&engine, address));
        serve(config, listener, engine, terminated).await
    })
}

/// Says where the server listens, where its data is, and something to try. A reader that has gone away does not matter.
fn print_banner(config: &Config, address: SocketAddr, last: &str) {
    let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
    let _ = writeln!(
        std::io::stdout(),
        "seqtide {} listening on http://{address}\ndata in {}\ndashboard: http://{address}/_dashboard/\n\
         {last}",
        env!("CARGO_PKG_VERSION"),
        data.display()
    );
}

/// A file that may not grow is to be an error of whoever writes it, as a full disk is, and not the end of the process.
fn outlive_full_files() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}
