//! Loads at a server whose answers are made up.

mod answers;
mod fake;
mod pace;
