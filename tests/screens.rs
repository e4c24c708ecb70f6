//! The screen as a person meets it: keys and engine events go in, the drawn screen and the effects come out.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "screens/ahead.rs"]
mod ahead;
#[path = "screens/anything.rs"]
mod anything;
#[path = "screens/behaviour.rs"]
mod behaviour;
#[path = "screens/emulator.rs"]
mod emulator;
#[path = "screens/keeping.rs"]
mod keeping;
#[path = "screens/loading.rs"]
mod loading;
#[path = "screens/person.rs"]
mod person;
#[path = "screens/sizes.rs"]
mod sizes;
#[path = "screens/snapshots.rs"]
mod snapshots;
