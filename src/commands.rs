//! What runs without the screen: one module a command.

pub mod ask;
pub mod chat;
pub mod chats;
pub mod completions;
pub mod config;
pub mod headless;
pub mod inspect;
pub mod models;
pub mod output;
pub mod plain;
pub mod printer;
pub mod prompt;
pub mod pull;
