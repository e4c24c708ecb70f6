//! How the screen looks, at three sizes.

use std::collections::BTreeSet;

use crossterm::event::KeyCode;
use platen::app::message::Msg;
use platen::config::Config;
use platen::engine::event::{EngineError, Event, Reread, RereadReason, StopReason};
use platen::logging::{LogLevel, LogLine};
use platen::models::download::DownloadEvent;
use platen::ui::palette::Palette;

use crate::person::{Person, cache, model};

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (140, 40)];

/// Draws what `story` leads to at each size.
fn snapshots(name: &str, story: impl Fn(u16, u16) -> Person) {
    for (width, height) in SIZES {
        let person = story(width, height);
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), person.screen());
        });
    }
}

#[test]
fn the_first_frame_shows_the_model_loading() {
    snapshots("loading", |width, height| {
        let mut person = Person::loading(width, height);
        let id = person.load_id();
        person.hear(Event::Loading { id, progress: 0.43 });
        person
    });
}

#[test]
fn an_empty_chat_tells_what_is_loaded() {
    snapshots("idle", Person::ready);
}

#[test]
fn while_the_prompt_is_read_it_is_told_how_far_and_how_long() {
    snapshots("prefill", |width, height| {
        let mut person = Person::ready(width, height);
        person.turn("What is the capital of France?", ["It is", " Paris."]);
        person.say("Summarise this text for me, please.");
        person.prefill(0, 2_048, 0);
        person.wait(1_000);
        person.prefill(512, 2_048, 1_000);
        person.wait(1_200);
        person.prefill(1_024, 2_048, 2_200);
        person.wait(200);
        person.tell(Msg::Tick);
        person
    });
}

#[test]
fn while_tokens_come_the_panels_move() {
    snapshots("decoding", |width, height| {
        let mut person = Person::ready(width, height);
        person.turn("Hello!", ["Hi", "!"]);
        person.say("What is the capital of France?");
        person.prefill(30, 57, 150);
        person.prefill(57, 57, 298);
        person.wait(312);
        for (gap, token) in [
            (16, "The"),
            (15, " capital"),
            (300, " of"),
            (17, " France"),
            (260, " is"),
            (16, " Paris"),
        ] {
            person.token(token);
            person.wait(gap);
        }
        person
    });
}

#[test]
fn a_finished_turn_keeps_its_numbers() {
    snapshots("finished", |width, height| {
        let mut person = Person::ready(width, height);
        person.turn(
            "What is the capital of France?",
            ["The capital of France is", " Paris."],
        );
        person.say("And of Italy?");
        person.prefill(57, 57, 298);
        person.wait(312);
        person.token("Rome");
        person.wait(16);
        person.token_at(", and", 0.85);
        person.press(KeyCode::Esc);
        person.finish(StopReason::Cancelled);
        person
    });
}

#[test]
fn a_prompt_that_is_read_again_says_why() {
    snapshots("reread", |width, height| {
        let mut person = Person::ready(width, height);
        person.say("What is the capital of France?");
        let id = person.turn_id();
        let progress = platen::engine::event::PrefillProgress {
            prompt_tokens: 900,
            reused_tokens: 588,
            read_ahead_tokens: 0,
            read_tokens: 312,
            to_read_tokens: 312,
            elapsed: std::time::Duration::from_secs(1),
            queue: std::time::Duration::from_millis(1),
            template: std::time::Duration::from_millis(2),
            reread: Some(Reread {
                tokens: 312,
                reason: RereadReason::Edited { message: 2 },
            }),
        };
        person.hear(Event::Prefill { id, progress });
        person
    });
}

#[test]
fn the_help_lists_keys_and_commands() {
    snapshots("help", |width, height| {
        let mut person = Person::ready(width, height);
        person.press(KeyCode::F(1));
        person
    });
}

#[test]
fn the_log_shows_its_latest_lines() {
    snapshots("log", |width, height| {
        let mut person = Person::ready(width, height);
        let line = |level, target: &str, text: &str| LogLine {
            level,
            target: target.into(),
            text: text.into(),
        };
        person.tell(Msg::Log(vec![
            line(LogLevel::Info, "llama.cpp", "llama_model_loader: loaded meta data with 37 key-value pairs and 272 tensors from SmolLM2-135M-Instruct.gguf"),
            line(LogLevel::Warn, "llama.cpp", "special_eos_id is not in special_eog_ids \u{1b}[31mred\u{1b}[0m"),
            line(LogLevel::Error, "engine", "decode failed with code 1"),
        ]));
        person.press(KeyCode::F(2));
        person
    });
}

#[test]
fn with_no_model_at_all_one_is_offered() {
    snapshots("catalogue", |width, height| {
        let mut person = Person::at(width, height, &Config::default());
        person.start();
        person.tell(Msg::Models(Vec::new()));
        person
    });
}

#[test]
fn a_download_shows_how_far_it_is() {
    snapshots("download", |width, height| {
        let mut person = Person::at(width, height, &Config::default());
        person.start();
        person.tell(Msg::Models(Vec::new()));
        person.press(KeyCode::Enter);
        person.tell(Msg::Download(DownloadEvent::Trying {
            source: "the first source".into(),
        }));
        person.tell(Msg::Download(DownloadEvent::Progress {
            done: 0,
            total: 94 << 20,
        }));
        person.wait(2_000);
        person.tell(Msg::Download(DownloadEvent::Progress {
            done: 40 << 20,
            total: 94 << 20,
        }));
        person
    });
}

#[test]
fn a_model_that_fails_to_load_returns_to_the_list_with_the_reason() {
    snapshots("load_failed", |width, height| {
        let mut person = Person::loading(width, height);
        let id = person.load_id();
        let error = EngineError::new(
            "models/SmolLM2-135M-Instruct.gguf is cut off: 98,348,032 bytes are needed, 4,096 are there.",
            "Fetch it again.",
        );
        person.hear(Event::Failed { id, error });
        person.tell(Msg::Models(vec![
            model("qwen3-0.6b-q8"),
            model("smollm2-135m-q4"),
        ]));
        person
    });
}

#[test]
fn an_error_stands_apart_from_the_replies() {
    snapshots("error", |width, height| {
        let mut person = Person::ready(width, height);
        person.turn("Hello!", ["Hi", "!"]);
        person.say("A very long text");
        let id = person.turn_id();
        let error = EngineError::new(
            "The message needs 9,120 tokens; the context has 8,192.",
            "Shorten it or start with a larger --ctx.",
        );
        person.hear(Event::Failed { id, error });
        person
    });
}

#[test]
fn what_is_queued_and_what_can_be_completed_is_in_sight() {
    snapshots("queued", |width, height| {
        let mut person = Person::ready(width, height);
        person.say("Tell me a story.");
        person.prefill(57, 57, 298);
        person.token("Once");
        person.say("Make it short.");
        person.say("And funny.");
        person.type_str("/s");
        person
    });
}

#[test]
fn a_model_with_one_state_is_not_said_to_have_cells() {
    let mut person = Person::loading(140, 40);
    let id = person.load_id();
    let mut facts = crate::person::facts();
    facts.memory = platen::engine::event::MemoryKind::Recurrent;
    person.hear(Event::Ready {
        id,
        facts: Box::new(facts),
        load: std::time::Duration::ZERO,
    });
    person.hear(cache(57, &[]));
    person.sees("57 tokens read into it");
    person.sees("state, not cells");
    person.sees_not("57 / 8,192");
}

#[test]
fn only_the_sixteen_colours_are_used_and_without_colours_none() {
    for (palette, coloured) in [(Palette::Ansi, true), (Palette::Mono, false)] {
        let mut person = Person::ready(140, 40);
        person.app = person.app.with_palette(palette);
        person.turn("Hello!", ["Hi", "!"]);
        person.say("Again");
        person.prefill(20, 57, 100);
        let mut seen = BTreeSet::new();
        for cell in person.buffer().content() {
            seen.extend([format!("{:?}", cell.fg), format!("{:?}", cell.bg)]);
        }
        let allowed = ["Reset", "Cyan", "Green", "Yellow", "Magenta", "Red"];
        assert!(
            seen.iter().all(|colour| allowed.contains(&colour.as_str())),
            "{seen:?}"
        );
        assert_eq!(seen.len() > 1, coloured, "{seen:?}");
    }
}
