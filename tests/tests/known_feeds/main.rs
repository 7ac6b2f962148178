//! `/_feeds`: which feeds are open, how they stand, and the end of one.

mod ending;
mod lag;
mod listing;
