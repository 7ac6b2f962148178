//! Many subscriptions on one connection: rows and events of several feeds, each with its subscription's name as `sub`.
//!
//! A [`Client`](asked::Client)'s request names the subscriptions that are [`wanted`] first, and messages name others
//! later: each becomes a feed of its own, opened by whoever asks. The [`Handle`](connections::Handle) is where they
//! meet the connection: it knows the names, and takes feeds in for [`Subscriptions`](together::Subscriptions), which
//! has the feeds take [`turns`] and makes messages of what they give.

mod any_feed;
pub mod asked;
pub mod connections;
pub mod message;
pub mod resume_id;
pub mod together;
mod turns;
pub mod wanted;
pub mod websocket;
