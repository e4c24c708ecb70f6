//! What runs without the screen: one module a command.

pub mod inspect;
pub mod models;
pub mod output;
pub mod pull;
