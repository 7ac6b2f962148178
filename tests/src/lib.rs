//! Helpers of the end-to-end tests: the server as a process, and the clients that read it.

pub mod bench;
pub mod changes_text;
pub mod database;
pub mod doors;
pub mod http;
pub mod known_feeds;
pub mod pages;
pub mod preload;
mod process;
pub mod prometheus;
pub mod proxy;
pub mod raw;
pub mod script;
pub mod server;
pub mod sse;
pub mod states;
pub mod vectors;
pub mod words;
pub mod workload;

pub use database::Database;
pub use http::Api;
pub use process::eventually;
pub use server::Server;
