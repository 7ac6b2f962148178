//! The engine as a program embeds it.

mod commits;
mod databases;
mod documents;
mod feed_index;
mod feeds;
mod idempotence;
mod known;
mod model;
mod support;
mod updates;
