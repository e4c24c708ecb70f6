//! A terminal chat for local GGUF models that shows inference while it happens.
//!
//! [`engine`] runs the model in a thread of its own; [`app`] is the state of the screen and how messages change
//! it; [`ui`] draws that state; [`runtime`] is the one loop that does IO. docs/architecture.md shows how they
//! meet.

pub mod app;
pub mod chat;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod engine;
pub mod failure;
pub mod keymap;
pub mod llama;
pub mod logging;
pub mod models;
pub mod paths;
pub mod runtime;
pub mod terminal;
pub mod text;
pub mod ui;
