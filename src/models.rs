//! Model files: what is on this machine, what can be fetched, what is in them. Nothing here calls llama.cpp.

pub mod discover;
pub mod download;
