//! Every fuzz target; `PLATEN_FUZZ_TARGET` names the one that runs. One program, since linking llama.cpp takes longer
//! than anything else here.
#![no_main]

#[path = "../../tests/support/fuzzed.rs"]
mod fuzzed;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("PLATEN_FUZZ_TARGET").unwrap_or_default();
    match fuzzed::TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, target)) => *target,
        None => {
            let names: Vec<&str> = fuzzed::TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("PLATEN_FUZZ_TARGET is '{name}'; it must be one of {}", names.join(", "));
            std::process::exit(2);
        }
    }
});

fuzz_target!(|data: &[u8]| TARGET(data));
