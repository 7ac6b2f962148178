//! How feeds look on the wire: CouchDB's forms, and those of the native door.

pub mod body;
pub mod changes_body;
mod cut_short;
pub mod form;
pub mod heard;
pub mod native;
pub mod pieces;
pub mod stopping;
pub mod websocket;
pub mod wire;
