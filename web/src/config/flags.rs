//! The options of `seqtide serve` as they were typed: every one may be absent and nothing is checked beyond its
//! type. [`Config`](super::Config) is what the program uses.
//!
//! An option's id is its key in the configuration file; its flag and its variable follow from the key
//! ([`keys`](super::keys)). The line above an option is its help and its comment in `--print-config`. Numbers are
//! `i64` because that is TOML's integer.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{Durability, LogFormat, listen};

/// Options of `seqtide serve`.
#[derive(Debug, Default, Args, Serialize)]
pub struct ServeFlags {
    /// TOML file with settings; variables win over it, flags win over both
    #[arg(value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Print the effective configuration as TOML and exit
    #[arg(long)]
    #[serde(skip)]
    pub print_config: bool,

    /// End, as at SIGTERM, when standard input does: for a server that is not to outlive who has started it
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub until_stdin_ends: bool,

    /// Address and port to listen on; loopback only
    #[arg(value_name = "ADDRESS:PORT", value_parser = listen::parse)]
    pub listen: Option<SocketAddr>,

    /// Folder of the databases, made if it does not exist
    #[arg(value_name = "FOLDER")]
    pub data: Option<String>,

    /// What an acknowledged write survives: "full" a power cut; with "relaxed" one may cost the last commits
    #[arg(value_name = "MODE", hide_possible_values = true)]
    pub durability: Option<Durability>,

    /// What to log, as a tracing filter such as "info" or "warn,seqtide=debug"
    #[arg(value_name = "FILTER")]
    pub log: Option<String>,

    /// Form of the log on stderr: "text" for people, "json" for machines
    #[arg(value_name = "FORMAT", hide_possible_values = true)]
    pub log_format: Option<LogFormat>,

    /// Web threads; 0 for one a core
    #[arg(value_name = "THREADS")]
    pub workers: Option<i64>,

    /// Origins (separated by commas) whose web pages may use this server; none for any origin on a loopback host
    #[arg(value_name = "ORIGIN", value_delimiter = ',')]
    pub cors_origins: Option<Vec<String>>,

    /// How long open requests may take to end at a shutdown, in milliseconds
    #[arg(value_name = "MS")]
    pub shutdown_timeout_ms: Option<i64>,

    #[command(flatten)]
    limits: LimitsFlags,

    #[command(flatten)]
    feeds: FeedsFlags,

    #[command(flatten)]
    functions: FunctionsFlags,

    #[command(flatten)]
    storage: StorageFlags,
}

/// Options of the section `[limits]`.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Limits")]
struct LimitsFlags {
    /// Largest document accepted, in bytes
    #[arg(id = "limits.document_bytes_max", value_name = "BYTES")]
    document_bytes_max: Option<i64>,

    /// Largest request body accepted, such as a bulk write's, in bytes
    #[arg(id = "limits.request_bytes_max", value_name = "BYTES")]
    request_bytes_max: Option<i64>,

    /// Bytes that the bodies of all requests may take together, but for those that come in one piece
    #[arg(id = "limits.bodies_bytes_max", value_name = "BYTES")]
    bodies_bytes_max: Option<i64>,

    /// Most documents one request may name, as to _bulk_docs or in `keys`, and most revisions, to _revs_diff or _purge
    #[arg(id = "limits.bulk_docs_max", value_name = "DOCUMENTS")]
    bulk_docs_max: Option<i64>,

    /// Deepest nesting of objects and arrays in a document
    #[arg(id = "limits.nesting_max", value_name = "LEVELS")]
    nesting_max: Option<i64>,

    /// Feeds open at once
    #[arg(id = "limits.feeds_max", value_name = "FEEDS")]
    feeds_max: Option<i64>,

    /// Subscriptions of one connection to /_feed/many
    #[arg(id = "limits.subscriptions_max", value_name = "SUBSCRIPTIONS")]
    subscriptions_max: Option<i64>,

    /// Databases open at once; the one idle longest is closed to open another
    #[arg(id = "limits.databases_open_max", value_name = "DATABASES")]
    databases_open_max: Option<i64>,

    /// Edits that may wait for one database's writer
    #[arg(id = "limits.write_queue_edits_max", value_name = "EDITS")]
    write_queue_edits_max: Option<i64>,

    /// Bytes of bodies, and of the _revisions of replicated ones, that may wait for one database's writer
    #[arg(id = "limits.write_queue_bytes_max", value_name = "BYTES")]
    write_queue_bytes_max: Option<i64>,

    /// Most databases one POST to /_dbs_info may name
    #[arg(id = "limits.dbs_info_max", value_name = "DATABASES")]
    dbs_info_max: Option<i64>,

    /// Most ids one request to /_uuids may ask for
    #[arg(id = "limits.uuids_max", value_name = "IDS")]
    uuids_max: Option<i64>,

    /// Largest body of a feed request, such as a selector, in bytes
    #[arg(id = "limits.feed_body_bytes_max", value_name = "BYTES")]
    feed_body_bytes_max: Option<i64>,

    /// How long a write may wait for its answer, in milliseconds
    #[arg(id = "limits.write_timeout_ms", value_name = "MS")]
    write_timeout_ms: Option<i64>,
}

/// Options of the section `[feeds]`.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Feeds")]
struct FeedsFlags {
    /// Heartbeat of a `_feed` that names none, in milliseconds
    #[arg(id = "feeds.heartbeat_ms", value_name = "MS")]
    heartbeat_ms: Option<i64>,

    /// Longest wait of a `_changes` feed for a change, in milliseconds (CouchDB's changes_timeout)
    #[arg(id = "feeds.changes_timeout_ms", value_name = "MS")]
    changes_timeout_ms: Option<i64>,

    /// How long a WebSocket opened without options waits for its first message before it starts, in milliseconds
    #[arg(id = "feeds.websocket_start_ms", value_name = "MS")]
    websocket_start_ms: Option<i64>,

    /// How long it is to take at most to give new rows to all live feeds, in milliseconds; answers to writes wait while
    /// they are further behind. 0 for no bound
    #[arg(id = "feeds.round_ms", value_name = "MS")]
    round_ms: Option<i64>,

    /// Shortest time after which a reader of Server-Sent Events comes back when its connection breaks, in milliseconds
    #[arg(id = "feeds.retry_ms", value_name = "MS")]
    retry_ms: Option<i64>,

    /// How long ending all feeds takes at a shutdown, one after the other, in milliseconds; 0 for at once
    #[arg(id = "feeds.drain_ms", value_name = "MS")]
    drain_ms: Option<i64>,
}

/// Options of the section `[functions]`.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Functions")]
struct FunctionsFlags {
    /// Worker processes that run functions of design documents, at once
    #[arg(id = "functions.workers_max", value_name = "PROCESSES")]
    workers_max: Option<i64>,

    /// Longest run of a function over one batch of documents, in milliseconds; its worker is killed then
    #[arg(id = "functions.batch_timeout_ms", value_name = "MS")]
    batch_timeout_ms: Option<i64>,

    /// Memory the functions of one design document may take, in bytes
    #[arg(id = "functions.memory_bytes_max", value_name = "BYTES")]
    memory_bytes_max: Option<i64>,
}

/// Options of the section `[storage]`.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Storage")]
struct StorageFlags {
    /// Address space reserved for each open database, grown when needed, in bytes; a multiple of 4096
    #[arg(id = "storage.map_bytes", value_name = "BYTES")]
    map_bytes: Option<i64>,

    /// Most a database grows to, in bytes; a multiple of 4096. A sixteenth is kept for deleting
    #[arg(id = "storage.map_bytes_max", value_name = "BYTES")]
    map_bytes_max: Option<i64>,

    /// Newest changes kept in memory for each open database, in bytes; without feeds there are none
    #[arg(id = "storage.tail_bytes_max", value_name = "BYTES")]
    tail_bytes_max: Option<i64>,

    /// Revisions remembered on each branch of a document, in a new database
    #[arg(id = "storage.revs_limit", value_name = "REVISIONS")]
    revs_limit: Option<i64>,

    /// Share of garbage in a database's file from which space is reclaimed, in percent; 100 for never
    #[arg(id = "storage.reclaim_garbage_percent", value_name = "PERCENT")]
    reclaim_garbage_percent: Option<i64>,

    /// Garbage of a database up to which no space is reclaimed, in bytes
    #[arg(id = "storage.reclaim_floor_bytes", value_name = "BYTES")]
    reclaim_floor_bytes: Option<i64>,

    /// Threads that commit writes; 0 for a number that fits the machine
    #[arg(id = "storage.committers", value_name = "THREADS")]
    committers: Option<i64>,

    /// Processors kept awake while commits of few requests follow each other closely; 0 for none
    #[arg(id = "storage.awake_processors_max", value_name = "PROCESSORS")]
    awake_processors_max: Option<i64>,

    /// Reads under way at once in one database
    #[arg(id = "storage.readers_max", value_name = "READERS")]
    readers_max: Option<i64>,

    /// How long the answer to a write with an Idempotency-Key is kept, in seconds
    #[arg(id = "storage.idempotency_age_secs", value_name = "SECONDS")]
    idempotency_age_secs: Option<i64>,

    /// Idempotency-Keys kept in one database; the oldest go first
    #[arg(id = "storage.idempotency_keys_max", value_name = "KEYS")]
    idempotency_keys_max: Option<i64>,

    /// What Idempotency-Keys and their answers take in one database, in bytes; the oldest go first
    #[arg(id = "storage.idempotency_bytes_max", value_name = "BYTES")]
    idempotency_bytes_max: Option<i64>,

    /// Size of a database's file up to which all of it is checked before it is opened, in bytes; 0 for never
    #[arg(id = "storage.verify_at_open_bytes_max", value_name = "BYTES")]
    verify_at_open_bytes_max: Option<i64>,
}
