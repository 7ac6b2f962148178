//! What a store promises, through its public interface.

mod data_folder;
mod db;
mod grow;
mod history;
mod model;
mod pages;
mod purge;
mod reclaim;
mod store;
mod transactions;
mod updates;
