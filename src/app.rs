//! The state of the screen and how messages change it. No IO, no clock, no terminal.

pub mod message;
