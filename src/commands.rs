//! What runs without the screen: one module a command.

pub mod ask;
pub mod completions;
pub mod config;
pub mod headless;
pub mod plain;
pub mod printer;
pub mod prompt;
