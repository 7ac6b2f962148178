//! The server from its first line to its last: the engine, the listener, and an orderly end.

use std::future::Future;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::web::{self, Data};
use seqtide::functions::{FunctionsOptions, WorkerCommand};
use seqtide::storage::{Durability, ReclaimPolicy, StorageError, StoreOptions, TransactionLimits};
use seqtide::{Engine, EngineOptions};
use tokio::time::timeout;

use crate::config::{self, Config};
use crate::cors::cors;
use crate::dashboard::{self, Figures};
use crate::front::Front;
use crate::routes;
use crate::state::State;
use crate::takeover::listener::{self, Settings};
use crate::telemetry::Metrics;

/// Why the server did not start, or did not end well: one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The data folder cannot be used.
    #[error("{0}")]
    Engine(#[from] seqtide::Error),
    /// The metrics' recorder.
    #[error("cannot install the metrics recorder: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
    /// The server itself.
    #[error("the server failed: {0}")]
    Serve(#[from] std::io::Error),
}

/// How the engine is to run.
fn engine_options(config: &Config) -> EngineOptions {
    let Config { storage, limits, functions, .. } = config;
    let defaults = EngineOptions::new(&config.data);
    EngineOptions {
        store: StoreOptions {
            map_bytes: storage.map_bytes,
            map_bytes_max: storage.map_bytes_max,
            readers_max: storage.readers_max,
            revs_limit: storage.revs_limit,
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
        reclaim: ReclaimPolicy {
            garbage_percent: storage.reclaim_garbage_percent,
            floor_bytes: storage.reclaim_floor_bytes,
        },
        write_queue_edits_max: limits.write_queue_edits_max,
        write_queue_bytes_max: limits.write_queue_bytes_max,
        databases_open_max: limits.databases_open_max,
        feeds_max: limits.feeds_max,
        committers: if storage.committers == 0 { defaults.committers } else { storage.committers },
        functions: FunctionsOptions {
            worker: this_program().map(|program| worker_command(program, functions)),
            workers_max: functions.workers_max,
            batch_timeout: functions.batch_timeout,
            ..FunctionsOptions::default()
        },
        ..defaults
    }
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
    let listener = TcpListener::bind(address).map_err(|source| StartError::Listen { address, source })?;
    let engine = Engine::start_with(engine_options(config)).map_err(|error| name_folder(error, config))?;
    Ok((listener, engine))
}

/// An error of the file system names a file in the folder; who started the server knows the folder.
fn name_folder(error: seqtide::Error, config: &Config) -> StartError {
    if let seqtide::Error::Storage(cause) = &error
        && let StorageError::Io { source, .. } = &**cause
    {
        tracing::debug!(data = %config.data.display(), %source, "the data folder cannot be used");
    }
    StartError::Engine(error)
}

/// Serves until `shutdown` is ready, then ends: feeds first, then requests under way, then the engine, which commits
/// what is queued.
///
/// # Errors
/// [`StartError`].
pub async fn serve(
    config: Config,
    listener: TcpListener,
    engine: Engine,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let (metrics, figures) = (Metrics::install()?, Arc::new(Figures::default()));
    let upkeep = actix_web::rt::spawn(metrics.clone().keep_up());
    let sampling = actix_web::rt::spawn(dashboard::sample(Arc::clone(&figures), metrics.clone(), engine.clone()));
    let state =
        Data::new(State { engine: engine.clone(), config: config.clone(), metrics, figures: Arc::clone(&figures) });
    let origins = config.cors_origins.clone();
    let app = move || {
        App::new()
            .app_data(state.clone())
            .wrap(Front { cors: cors(origins.clone()) })
            .default_service(web::to(routes::dispatch))
    };
    let shutdown_timeout_secs = config.shutdown_timeout.as_secs().max(1);
    let server = listener::serve(listener, &Settings { workers: config.workers, shutdown_timeout_secs }, app)?;
    let handle = server.handle();
    let ended = engine.clone();
    let mut running = actix_web::rt::spawn(server);
    let result = tokio::select! {
        ended = &mut running => ended,
        () = shutdown => {
            tracing::info!("shutting down");
            // Whoever comes back when its feed ends must not be let in again.
            handle.pause().await;
            ended.end_feeds();
            figures.end();
            let in_time = timeout(Duration::from_secs(shutdown_timeout_secs), ended.feeds_closed()).await.is_ok();
            handle.stop(in_time).await;
            running.await
        }
    };
    upkeep.abort();
    sampling.abort();
    engine.shutdown().await?;
    result.map_err(std::io::Error::other)?.map_err(StartError::Serve)
}
