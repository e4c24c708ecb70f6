//! Bad inputs, each through what it was made for: none may panic, hang or use up the memory.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/fuzzed.rs"]
mod fuzzed;

use std::path::Path;

use fuzzed::TARGETS;
use proptest::prelude::*;

#[test]
fn every_bad_input_that_was_ever_met_is_withstood() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus")
            .join(name);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0, "{} is empty", folder.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_withstood(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        for (_, target) in TARGETS {
            target(&data);
        }
    }

    #[test]
    fn any_text_is_withstood(text in "(\\PC|[\\x00-\\x7f\u{9b}\u{202e}\u{200d}]){0,120}") {
        for (_, target) in TARGETS {
            target(text.as_bytes());
        }
    }
}
