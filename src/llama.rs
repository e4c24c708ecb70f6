//! The only module that names llama.cpp's bindings, and the only one with unsafe code.

pub mod crash;
