//! The default of every setting.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use seqtide::EngineOptions;
use seqtide::functions::FunctionsOptions;
use toml::Table;

use super::{Config, CorsOrigins, Durability, Feeds, Functions, Limits, LogFormat, Storage};

impl Default for Functions {
    fn default() -> Functions {
        let FunctionsOptions { batch_timeout, .. } = FunctionsOptions::default();
        // An engine has one a core by itself.
        Functions { workers_max: 4, batch_timeout, memory_bytes_max: 256 << 20 }
    }
}

impl Default for Config {
    /// What an engine has by itself is the same here, but for `functions.workers_max` and `storage.readers_max`.
    fn default() -> Config {
        let engine = EngineOptions::new("");
        let store = engine.store;
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 5984)),
            data: PathBuf::from("./seqtide-data"),
            durability: Durability::Full,
            log: "info,actix_server=warn,actix_http=off".to_owned(),
            log_format: LogFormat::Text,
            workers: 0,
            cors_origins: CorsOrigins::default(),
            shutdown_timeout: Duration::from_millis(5_000),
            limits: Limits {
                document_bytes_max: 8_000_000,
                request_bytes_max: 64_000_000,
                bodies_bytes_max: 512 << 20,
                bulk_docs_max: 100_000,
                nesting_max: 512,
                feeds_max: engine.feeds_max,
                subscriptions_max: 200,
                databases_open_max: engine.databases_open_max,
                write_queue_edits_max: engine.write_queue_edits_max,
                write_queue_bytes_max: engine.write_queue_bytes_max,
                dbs_info_max: 100,
                uuids_max: 1_000,
                feed_body_bytes_max: 1_000_000,
                write_timeout: Duration::from_millis(30_000),
            },
            feeds: Feeds {
                heartbeat: Duration::from_millis(30_000),
                changes_timeout: Duration::from_millis(60_000),
                websocket_start: Duration::from_millis(10_000),
                round: engine.round,
                retry: Duration::from_millis(1_000),
                drain: Duration::from_millis(5_000),
            },
            functions: Functions::default(),
            storage: Storage {
                map_bytes: store.map_bytes,
                map_bytes_max: store.map_bytes_max,
                tail_bytes_max: engine.tail_bytes_max,
                revs_limit: store.revs_limit.into(),
                reclaim_garbage_percent: engine.reclaim.garbage_percent.into(),
                reclaim_floor_bytes: engine.reclaim.floor_bytes,
                committers: 0,
                awake_processors_max: engine.awake_processors_max,
                readers_max: 200,
                idempotency_age_secs: store.transactions.age_secs_max,
                idempotency_keys_max: store.transactions.count_max,
                idempotency_bytes_max: store.transactions.bytes_max,
                verify_at_open_bytes_max: store.verify_at_open_bytes_max,
            },
        }
    }
}

impl Config {
    /// The defaults of the demo, which has a folder of its own.
    pub fn for_demo() -> Config {
        Config { data: PathBuf::from("./seqtide-demo"), ..Config::default() }
    }
}

/// The defaults as TOML: the lowest layer, and the list of the keys there are.
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Config::default().to_table());
    &TABLE
}
