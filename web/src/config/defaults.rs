//! The default of every setting.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use toml::Table;

use super::{Config, CorsOrigins, Durability, Feeds, Functions, Limits, LogFormat, Storage};

impl Default for Functions {
    fn default() -> Functions {
        Functions { workers_max: 4, batch_timeout: Duration::from_millis(5_000), memory_bytes_max: 256 << 20 }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 5984)),
            data: PathBuf::from("./seqtide-data"),
            durability: Durability::Full,
            log: "info,actix_server=warn".to_owned(),
            log_format: LogFormat::Text,
            workers: 0,
            cors_origins: CorsOrigins::default(),
            shutdown_timeout: Duration::from_millis(5_000),
            limits: Limits {
                document_bytes_max: 8_000_000,
                request_bytes_max: 64_000_000,
                bulk_docs_max: 100_000,
                nesting_max: 512,
                feeds_max: 20_000,
                subscriptions_max: 200,
                databases_open_max: 500,
                write_queue_edits_max: 10_000,
                write_queue_bytes_max: 268_435_456,
                dbs_info_max: 100,
                uuids_max: 1_000,
                feed_body_bytes_max: 1_000_000,
                write_timeout: Duration::from_millis(30_000),
            },
            feeds: Feeds {
                heartbeat: Duration::from_millis(30_000),
                changes_timeout: Duration::from_millis(60_000),
                websocket_start: Duration::from_millis(10_000),
                round: Duration::from_millis(20),
                retry: Duration::from_millis(1_000),
                drain: Duration::from_millis(5_000),
            },
            functions: Functions::default(),
            storage: Storage {
                map_bytes: 64 << 30,
                map_bytes_max: 16 << 40,
                tail_bytes_max: 32 << 20,
                revs_limit: 1_000,
                reclaim_garbage_percent: 50,
                reclaim_floor_bytes: 64 << 20,
                committers: 0,
                awake_processors_max: 2,
                readers_max: 200,
                idempotency_age_secs: 86_400,
                idempotency_keys_max: 1_000_000,
                idempotency_bytes_max: 268_435_456,
                verify_at_open_bytes_max: 1 << 30,
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
