//! Our own safe layer over llama.cpp: the only module that names its bindings, and the only unsafe code.
//!
//! llama.cpp answers many misuses with `abort()`. Here each of them is impossible by type or an `Err`: token and
//! sequence ids are checked against the model, batches against the context, cache types are an enum of those that
//! decode correctly, and samplers only ever see arrays that we built.
#![expect(
    unsafe_code,
    reason = "llama.cpp is a C library; every block says why it is sound"
)]

/// The version of the bindings, pinned in Cargo.toml: the form of a saved state is llama.cpp's own and may change with it.
pub const VERSION: &str = "llama-cpp-sys-2 0.1.161";

pub mod backend;
pub mod context;
pub mod crash;
pub mod heap;
pub mod interrupt;
pub mod log;
pub mod model;
pub mod sampler;
pub mod state;
pub mod vocab;
