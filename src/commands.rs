//! What runs without the screen: one module a command.

pub mod completions;
pub mod config;
