//! What a store promises, through its public interface.

mod damage;
mod data_folder;
mod db;
mod every_kind;
mod feed_index;
mod grow;
mod history;
mod model;
mod old_formats;
mod pages;
mod purge;
mod reclaim;
mod store;
mod times;
mod transactions;
mod updates;
