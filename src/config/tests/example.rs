//! The example that is shipped says what is true.

use super::*;
use crate::engine::options::DEFAULT_CONTEXT;
use crate::engine::sampling::Sampling;

const EXAMPLE: &str = include_str!("../../../config.example.toml");

#[test]
fn the_example_is_the_default() {
    assert_eq!(parsed(EXAMPLE), Config::default());
}

#[test]
fn the_defaults_that_the_example_shows_are_the_built_in_ones() {
    let shown = |line: &&str| {
        line.starts_with("# ")
            && line[2..]
                .split_once(" = ")
                .is_some_and(|(key, _)| is_key(key))
    };
    let uncommented: Vec<&str> = EXAMPLE
        .lines()
        .map(|line| if shown(&line) { &line[2..] } else { line })
        .collect();
    let config = parsed(&uncommented.join("\n"));
    assert_eq!(
        Sampling::default().patched(&config.sampling),
        Sampling::default()
    );
    let load = LoadOptions {
        context: Some(DEFAULT_CONTEXT),
        batch: Some(512),
        ubatch: Some(512),
        ..LoadOptions::default()
    };
    assert_eq!(config.load, load);
    assert_eq!(
        Config {
            load: LoadOptions::default(),
            sampling: SamplingPatch::default(),
            ..config
        },
        Config::default()
    );
    let set = uncommented
        .iter()
        .filter(|line| line.split_once(" = ").is_some_and(|(key, _)| is_key(key)))
        .count();
    assert_eq!(set, 20, "every line `# key = value` was taken in");
}

fn is_key(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_ascii_lowercase() || character == '_')
}

#[test]
fn the_example_names_every_setting_variable_and_flag() {
    for setting in &settings::SETTINGS {
        let key = format!("{} = ", settings::split(setting.name).1);
        for name in [Some(key.as_str()), setting.variable, setting.flag]
            .into_iter()
            .flatten()
        {
            assert!(EXAMPLE.contains(name), "{name}");
        }
    }
}

#[test]
fn the_examples_of_the_example_are_valid() {
    let examples: Vec<&str> = EXAMPLE
        .lines()
        .map(|line| {
            line.split_once("Example:   ")
                .map_or(line, |(_, example)| example)
        })
        .collect();
    let config = parsed(&examples.join("\n"));
    assert_eq!(config.load.threads, Some(4));
    assert_eq!(
        rules::check(
            &Loaded {
                config,
                origins: Origins::new()
            },
            |_, _| Ok(())
        ),
        []
    );
}
