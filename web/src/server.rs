//! The server from its first line to its last: the engine, the listener, and an orderly end.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::web::{self, Data};
use futures_util::{Stream, StreamExt};
use seqtide::functions::{FunctionsOptions, WorkerCommand};
use seqtide::storage::{Durability, ReclaimPolicy, StoreOptions, TransactionLimits};
use seqtide::{Engine, EngineOptions};
use socket2::SockRef;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bodies::Bodies;
use crate::config::{self, Config};
use crate::connection::Shortcut;
use crate::connection::listener::{self, Settings};
use crate::cors::cors;
use crate::dashboard::{self, Figures};
use crate::front::Front;
use crate::logging;
use crate::memory;
use crate::plain_put::PlainPuts;
use crate::routes;
use crate::state::State;
use crate::subscriptions::connections::Connections;
use crate::takeover::roll::Workers;
use crate::takeover::worker::Worker;
use crate::telemetry::Metrics;

/// Connections that wait to be taken, where the system allows so many: after a restart thousands of readers come back.
const BACKLOG: i32 = 4096;

/// Why the server did not start, or did not end well: one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; `--listen` chooses another address")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The data folder cannot be used.
    #[error("{0}")]
    Engine(#[from] seqtide::Error),
    /// The metrics' recorder.
    #[error("cannot install the metrics recorder: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
    /// The server itself.
    #[error("the server failed: {0}")]
    Serve(#[from] io::Error),
}

/// How the engine is to run.
fn engine_options(config: &Config) -> EngineOptions {
    let Config { storage, limits, functions, .. } = config;
    let defaults = EngineOptions::new(&config.data);
    EngineOptions {
        store: StoreOptions {
            map_bytes: storage.map_bytes,
            map_bytes_max: storage.map_bytes_max,
            readers_max: bounded(storage.readers_max),
            revs_limit: bounded(storage.revs_limit),
            transactions: TransactionLimits {
                age_secs_max: storage.idempotency_age_secs,
                count_max: storage.idempotency_keys_max,
                bytes_max: storage.idempotency_bytes_max,
            },
            verify_at_open_bytes_max: storage.verify_at_open_bytes_max,
            durability: match config.durability {
                config::Durability::Full => Durability::Full,
                config::Durability::Relaxed => Durability::Relaxed,
            },
            ..defaults.store
        },
        tail_bytes_max: storage.tail_bytes_max,
        round: config.feeds.round,
        reclaim: ReclaimPolicy {
            garbage_percent: storage.reclaim_garbage_percent.min(100) as u8,
            floor_bytes: storage.reclaim_floor_bytes,
        },
        write_queue_edits_max: limits.write_queue_edits_max,
        write_queue_bytes_max: limits.write_queue_bytes_max,
        databases_open_max: limits.databases_open_max,
        feeds_max: limits.feeds_max,
        committers: if storage.committers == 0 { defaults.committers } else { storage.committers },
        awake_processors_max: storage.awake_processors_max,
        at_rest: memory::give_back,
        functions: FunctionsOptions {
            worker: this_program().map(|program| worker_command(program, functions)),
            workers_max: functions.workers_max,
            batch_timeout: functions.batch_timeout,
            ..FunctionsOptions::default()
        },
        ..defaults
    }
}

/// A setting whose check has found it in this type's range.
fn bounded(setting: u64) -> u32 {
    u32::try_from(setting).unwrap_or(u32::MAX)
}

/// The program that runs, also when another one lies where it was started from.
fn this_program() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Some(running) } else { std::env::current_exe().ok() }
}

/// Functions are run by this program in another role.
fn worker_command(program: PathBuf, limits: &config::Functions) -> WorkerCommand {
    let (memory, timeout) = (limits.memory_bytes_max, limits.batch_timeout.as_millis());
    let arguments =
        ["js-worker".to_owned(), format!("--memory-bytes-max={memory}"), format!("--batch-timeout-ms={timeout}")];
    WorkerCommand::new(program, arguments)
}

/// Takes the address and the data folder.
///
/// # Errors
/// [`StartError`]: one of them is in use or not to be had.
pub fn open(config: &Config) -> Result<(TcpListener, Engine), StartError> {
    let address = config.listen;
    let listener = listen(address).map_err(|source| StartError::Listen { address, source })?;
    let engine = Engine::start_with(engine_options(config))?;
    Ok((listener, engine))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    SockRef::from(&listener).listen(BACKLOG)?;
    Ok(listener)
}

/// Serves until `shutdown` says so, then ends: feeds first, one after the other, then requests under way, then the
/// engine, which commits what is queued. When it says so again, the feeds that are left end at once.
///
/// # Errors
/// [`StartError`].
pub async fn serve(
    config: Config,
    listener: TcpListener,
    engine: Engine,
    mut shutdown: impl Stream<Item = ()> + Unpin,
) -> Result<(), StartError> {
    let (metrics, figures) = (Metrics::install()?, Arc::new(Figures::default()));
    let upkeep = actix_web::rt::spawn(metrics.clone().keep_up());
    let telling = actix_web::rt::spawn(logging::tell_what_is_lost());
    let workers = Workers::default();
    let connections = Arc::<Connections>::default();
    let ending = CancellationToken::new();
    let state = Data::new(State {
        engine: engine.clone(),
        config: config.clone(),
        bodies: Bodies::new(config.limits.bodies_bytes_max),
        metrics,
        figures: Arc::clone(&figures),
        connections: Arc::clone(&connections),
        workers: workers.clone(),
        ending: ending.clone(),
    });
    let sampling = actix_web::rt::spawn(dashboard::sample(state.clone()));
    let (origins, plain_puts) = (config.cors_origins.clone(), TaskTracker::new());
    let shortcut = {
        let (state, under_way) = (state.clone(), plain_puts.clone());
        move || -> Rc<dyn Shortcut> { Rc::new(PlainPuts::new(state.clone(), under_way.clone())) }
    };
    let app = move || {
        App::new()
            .app_data(state.clone())
            .wrap(Front { cors: cors(origins.clone()) })
            .default_service(web::to(routes::dispatch))
    };
    let shutdown_timeout_secs = config.shutdown_timeout.as_secs().max(1);
    let settings = Settings { workers: config.web_threads(), shutdown_timeout_secs };
    let server = {
        let workers = workers.clone();
        listener::serve(listener, &settings, move || Worker::start(&workers), shortcut, app)?
    };
    let handle = server.handle();
    let mut running = actix_web::rt::spawn(server);
    let result = tokio::select! {
        ended = &mut running => ended,
        _ = shutdown.next() => {
            tracing::info!("shutting down");
            drain(&engine, &workers, config.feeds.drain, shutdown.next()).await;
            // Whoever comes back when its feed ends must not be let in again.
            handle.pause().await;
            engine.end_feeds();
            ending.cancel();
            connections.end();
            figures.end();
            plain_puts.close();
            let within = Duration::from_secs(shutdown_timeout_secs);
            // Of a client that does not read its answers nobody else is to know.
            let (feeds, _) = tokio::join!(timeout(within, engine.feeds_closed()), timeout(within, plain_puts.wait()));
            handle.stop(feeds.is_ok()).await;
            running.await
        }
    };
    upkeep.abort();
    telling.abort();
    sampling.abort();
    engine.shutdown().await?;
    result.map_err(io::Error::other)?.map_err(StartError::Serve)
}

/// Ends the feeds one after the other over so long, and opens no more; until none is left, or there is a hurry.
async fn drain(engine: &Engine, workers: &Workers, over: Duration, hurry: impl Future<Output = Option<()>>) {
    if over.is_zero() {
        return;
    }
    let drain = engine.drain_feeds(over);
    workers.drain(drain);
    tokio::select! {
        () = engine.feeds_closed() => {}
        () = sleep_until(drain.until()) => {}
        _ = hurry => tracing::info!("told again: shutting down at once"),
    }
}
