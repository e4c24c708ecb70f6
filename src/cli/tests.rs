//! What was typed against what it asks for.

#![allow(clippy::unwrap_used, reason = "tests")]

use toml::Value;

use super::terminals::Stream;
use super::*;
use crate::chat::record::ChatId;

const TERMINAL: Terminals = Terminals {
    stdin: Stream::Terminal,
    stdout: Stream::Terminal,
};
const PIPES: Terminals = Terminals {
    stdin: Stream::Other,
    stdout: Stream::Other,
};

fn parse(line: &str) -> Result<Invocation, clap::Error> {
    Invocation::parse(
        ["platen"].into_iter().chain(line.split_whitespace()),
        TERMINAL,
    )
}

fn model(name: &str) -> Layer {
    Layer::from([(
        "model".to_owned(),
        (Value::from(name), Origin::Flag("--model")),
    )])
}

#[test]
fn the_grammar_is_sound() {
    Cli::grammar().debug_assert();
}

#[test]
fn a_word_that_is_no_command_is_a_model() {
    for line in [
        "smollm2",
        "--model smollm2",
        "--model=smollm2",
        "-- smollm2",
    ] {
        let chat = Invocation::Chat {
            flags: model("smollm2"),
            resume: None,
            surface: ChatSurface::Screen,
            report: Report::default(),
        };
        assert_eq!(parse(line).unwrap(), chat, "{line}");
    }
}

#[test]
fn a_model_that_is_called_like_a_command_can_be_opened_by_its_flag() {
    let Invocation::Chat { flags, .. } = parse("--model ask").unwrap() else {
        panic!("no chat")
    };
    assert_eq!(flags, model("ask"));
}

#[test]
fn the_screen_needs_two_terminals() {
    for stdin in [Stream::Terminal, Stream::Other] {
        for stdout in [Stream::Terminal, Stream::Other] {
            let terminals = Terminals { stdin, stdout };
            let Invocation::Chat { surface, .. } =
                Invocation::parse(["platen"], terminals).unwrap()
            else {
                panic!("no chat")
            };
            let expected = if terminals == TERMINAL {
                ChatSurface::Screen
            } else {
                ChatSurface::Plain
            };
            assert_eq!(surface, expected);
        }
    }
}

#[test]
fn the_plain_chat_takes_stats_and_events_and_the_screen_does_not() {
    let report = Report {
        stats: StatsFormat::Json,
        events: Some(EventsFormat::Json),
    };
    let plain = Invocation::Chat {
        flags: Layer::new(),
        resume: None,
        surface: ChatSurface::Plain,
        report,
    };
    assert_eq!(parse("--plain --stats json --events json").unwrap(), plain);
    let error = parse("--stats json").unwrap_err().to_string();
    assert!(error.contains("need --plain"), "{error}");
    let piped = Invocation::parse(["platen", "--stats", "json", "--events", "json"], PIPES);
    assert_eq!(piped.unwrap(), plain);
}

#[test]
fn every_run_flag_becomes_its_setting() {
    let line = "--no-save --store f --model m --ctx 64 --threads 2 --batch 32 --ubatch 16 --kv-type-k q8_0 --kv-type-v bf16 \
        --flash-attn on --swa-cache small --cache-ram 5 --gpu-layers 0 --force --temp 0.2 --top-k 5 --top-p 0.9 --min-p 0.1 --repeat-penalty 1.1 --seed 7 \
        --max-tokens 9 --system S --stop A --stop B";
    let Invocation::Chat { flags, .. } = parse(line).unwrap() else {
        panic!("no chat")
    };
    for setting in &crate::config::settings::SETTINGS {
        let origin = flags.get(setting.name).map(|(_, origin)| origin.clone());
        assert_eq!(origin, setting.flag.map(Origin::Flag), "{}", setting.name);
    }
    let stop = Value::Array(vec!["A".into(), "B".into()]);
    assert_eq!(flags["generation.stop"].0, stop);
    assert_eq!(flags["load.context"].0, Value::Integer(64));
}

#[test]
fn commands_ask_for_what_they_say() {
    assert_eq!(
        parse("models --json").unwrap(),
        Invocation::Models {
            output: Output::Json
        }
    );
    assert_eq!(
        parse("pull hf:a/b:c.gguf").unwrap(),
        Invocation::Pull {
            source: "hf:a/b:c.gguf".into()
        }
    );
    let inspect = Invocation::Inspect {
        model: "m".into(),
        contexts: vec![2048, 4096],
        kv_types: vec![KvType::F16, KvType::Q8_0],
        output: Output::Text,
    };
    assert_eq!(
        parse("inspect m --ctx 2048,4096 --kv f16,q8_0").unwrap(),
        inspect
    );
    let prompt = Invocation::Prompt {
        flags: model("m"),
        messages: Some("talk.json".into()),
    };
    assert_eq!(parse("prompt m --messages talk.json").unwrap(), prompt);
    assert_eq!(
        parse("config").unwrap(),
        Invocation::ConfigShow {
            flags: Layer::new()
        }
    );
    assert_eq!(parse("config path").unwrap(), Invocation::ConfigPath);
    assert_eq!(parse("config check").unwrap(), Invocation::ConfigCheck);
    assert_eq!(
        parse("completions zsh").unwrap(),
        Invocation::Completions { shell: Shell::Zsh }
    );
    let ask = Invocation::Ask {
        flags: model("m"),
        prompt: PromptSource::Given("hi".into()),
        report: Report {
            stats: StatsFormat::Text,
            events: None,
        },
    };
    assert_eq!(parse("ask hi --model m --stats text").unwrap(), ask);
}

#[test]
fn a_flag_before_the_command_is_refused_by_name() {
    for (line, named) in [
        ("--model m ask hi", "--model"),
        ("--temp 0 ask hi", "--temp"),
        ("--plain ask hi", "--plain"),
        ("--stats json ask hi", "--stats"),
        ("m ask hi", "'m'"),
    ] {
        let error = parse(line).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{named} stands before the command")),
            "{line}: {error}"
        );
    }
}

#[test]
fn chats_are_listed_shown_and_exported_with_flags_at_any_place() {
    let request = |line: &str| match parse(line).unwrap() {
        Invocation::Chats { flags, request } => (
            flags.get("chats.file").map(|(value, _)| value.to_string()),
            request,
        ),
        other => panic!("{other:?}"),
    };
    let file = || Some("\"f\"".to_owned());
    let number = ChatName::Number(ChatId(7));
    assert_eq!(request("chats"), (None, ChatsRequest::List(Output::Text)));
    assert_eq!(
        request("chats --json --store f"),
        (file(), ChatsRequest::List(Output::Json))
    );
    assert_eq!(
        request("chats list --store f"),
        (file(), ChatsRequest::List(Output::Text))
    );
    assert_eq!(
        request("chats --store f show 7 --json"),
        (file(), ChatsRequest::Show(number, Output::Json))
    );
    assert_eq!(
        request("chats export last"),
        (None, ChatsRequest::Export(ChatName::Last, ExportFormat::Md))
    );
    assert_eq!(
        request("chats export 7 --format json"),
        (None, ChatsRequest::Export(number, ExportFormat::Json))
    );
    assert!(parse("chats show 0").is_err() && parse("chats show x").is_err());
}

#[test]
fn a_chat_goes_on_by_its_number_or_as_the_last_one() {
    let resumed = |line: &str| match parse(line).unwrap() {
        Invocation::Chat { resume, .. } => resume,
        other => panic!("{other:?}"),
    };
    assert_eq!(resumed(""), None);
    assert_eq!(resumed("--continue"), Some(ChatName::Last));
    assert_eq!(
        resumed("--continue=12 m"),
        Some(ChatName::Number(ChatId(12)))
    );
    assert!(parse("--continue=0").is_err());
    assert!(parse("--plain --continue").is_err());
}
