//! Models: chosen, loaded, fetched.

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use platen::app::message::{Effect, Msg};
use platen::config::Config;
use platen::engine::command::Command;
use platen::engine::event::{EngineError, Event, StopReason};
use platen::engine::sampling::SamplingPatch;
use platen::models::download::DownloadEvent;

use crate::person::{Person, facts, model};

fn loads(person: &Person) -> Vec<PathBuf> {
    let paths = person.effects.iter().filter_map(|effect| match effect {
        Effect::Engine(Command::Load { path, .. }) => Some(path.clone()),
        _ => None,
    });
    paths.collect()
}

fn asking_for(name: Option<&str>) -> Person {
    let config = Config {
        model: name.map(str::to_owned),
        ..Config::default()
    };
    let mut person = Person::at(80, 24, &config);
    person.start();
    person
}

fn ready(person: &mut Person) {
    let id = person.load_id();
    person.hear(Event::Ready {
        id,
        facts: Box::new(facts()),
        load: Duration::ZERO,
    });
}

#[test]
fn a_path_is_loaded_at_once_and_a_name_once_the_machine_was_searched() {
    assert_eq!(
        loads(&asking_for(Some("./some model"))),
        [PathBuf::from("./some model")]
    );
    assert_eq!(
        loads(&asking_for(Some("m.gguf"))),
        [PathBuf::from("m.gguf")]
    );
    let mut person = asking_for(Some("org/model"));
    assert!(loads(&person).is_empty());
    person.tell(Msg::Models(Vec::new()));
    assert_eq!(loads(&person), [PathBuf::from("org/model")]);
    let mut person = asking_for(Some("Smol"));
    assert_eq!(person.effects, [Effect::ScanModels]);
    person.tell(Msg::Models(vec![model("qwen3"), model("smollm2")]));
    assert_eq!(loads(&person), [PathBuf::from("/models/smollm2.gguf")]);
}

#[test]
fn a_name_that_no_model_has_opens_the_list_with_the_nearest() {
    let mut person = asking_for(Some("smolm2"));
    person.tell(Msg::Models(vec![model("qwen3"), model("smollm2")]));
    person.sees("! There is no model 'smolm2' on this machine.");
    person.sees("Did you mean smollm2?");
    assert!(loads(&person).is_empty());
}

#[test]
fn with_one_model_it_is_loaded_and_with_several_one_is_chosen() {
    let mut person = asking_for(None);
    person.tell(Msg::Models(vec![model("only")]));
    assert_eq!(loads(&person), [PathBuf::from("/models/only.gguf")]);
    let mut person = asking_for(None);
    person.tell(Msg::Models(vec![model("one"), model("two")]));
    person.sees("▸ one");
    person.press(KeyCode::Down);
    person.sees("▸ two");
    person.press(KeyCode::Enter);
    assert_eq!(loads(&person), [PathBuf::from("/models/two.gguf")]);
    person.sees("two.gguf");
}

#[test]
fn a_model_that_fails_to_load_leaves_the_others_to_choose_from() {
    let mut person = Person::loading(80, 24);
    let id = person.load_id();
    person.hear(Event::Failed {
        id,
        error: EngineError::new("unknown architecture 'zzz'", "Update platen."),
    });
    person.tell(Msg::Models(vec![model("zzz"), model("good")]));
    person.sees("! unknown architecture 'zzz'");
    person.sees("Update platen.");
    person.press(KeyCode::Down);
    person.press(KeyCode::Enter);
    ready(&mut person);
    person.say("Hello");
    assert_eq!(person.requests().len(), 1);
    person.sees_not("zzz");
}

#[test]
fn loading_can_be_stopped() {
    let mut person = Person::loading(80, 24);
    let id = person.load_id();
    person.ctrl('c');
    assert!(person.effects.contains(&Effect::CancelThrough(id)));
    person.sees("■ stopping");
    person.hear(Event::Failed {
        id,
        error: EngineError::new("cancelled", ""),
    });
    person.tell(Msg::Models(vec![model("one")]));
    person.sees("▸ one");
    person.sees_not("! ");
    assert_eq!(person.app.tick_interval(), None);
}

#[test]
fn changing_the_model_in_mid_reply_keeps_the_text_without_its_tokens() {
    let mut person = Person::ready(80, 24);
    person.say("Hello");
    person.prefill(57, 57, 298);
    person.token("Hi");
    person.say("/model other.gguf");
    let turn = person.turn_id();
    assert!(person.effects.contains(&Effect::CancelThrough(turn)));
    person.finish(StopReason::Cancelled);
    let id = person.load_id();
    let mut other = facts();
    other.path = "other.gguf".into();
    other.vocabulary = "another".into();
    person.hear(Event::Ready {
        id,
        facts: Box::new(other),
        load: Duration::ZERO,
    });
    person.sees("Hi");
    person.say("Go on");
    let requests = person.requests();
    let prompt = &requests.last().unwrap().1.messages;
    assert_eq!(prompt[1].text, "Hi");
    assert_eq!(prompt[1].tokens, None);
}

#[test]
fn live_changes_of_the_sampling_outlive_a_change_of_model() {
    let mut person = Person::loading(80, 24);
    let id = person.load_id();
    let mut recommending = facts();
    recommending.recommended = SamplingPatch {
        temperature: Some(0.3),
        top_p: Some(0.8),
        ..SamplingPatch::default()
    };
    person.hear(Event::Ready {
        id,
        facts: Box::new(recommending),
        load: Duration::ZERO,
    });
    person.sees("temp 0.30");
    person.sees("top-p 0.80");
    person.press_with(KeyModifiers::CONTROL, KeyCode::Up);
    person.say("/model other.gguf");
    ready(&mut person);
    person.sees("temp 0.35");
    person.sees("top-p 0.95");
}

#[test]
fn with_no_model_one_is_fetched_and_loaded() {
    let mut person = asking_for(None);
    person.tell(Msg::Models(Vec::new()));
    person.sees("▸ SmolLM2 135M Instruct");
    person.press(KeyCode::Enter);
    person.press(KeyCode::Enter);
    let fetches: Vec<&Effect> = person
        .effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Download { .. }))
        .collect();
    assert_eq!(
        fetches,
        [&Effect::Download {
            name: "smollm2-135m".into()
        }]
    );
    assert!(person.app.tick_interval().is_some());
    person.tell(Msg::Download(DownloadEvent::Progress {
        done: 0,
        total: 100 << 20,
    }));
    person.wait(1_000);
    person.tell(Msg::Download(DownloadEvent::Progress {
        done: 25 << 20,
        total: 100 << 20,
    }));
    person.sees("25.0 MiB of 100 MiB · 25.0 MiB/s · ≈3.0 s left");
    person.tell(Msg::Download(DownloadEvent::Verifying));
    person.sees("checking their SHA-256");
    person.tell(Msg::Download(DownloadEvent::Done {
        path: "/data/smollm2.gguf".into(),
    }));
    assert_eq!(loads(&person), [PathBuf::from("/data/smollm2.gguf")]);
    ready(&mut person);
    person.sees("Type a message.");
}

#[test]
fn a_download_can_be_stopped_and_one_that_fails_can_be_tried_again() {
    let mut person = asking_for(None);
    person.tell(Msg::Models(Vec::new()));
    person.press(KeyCode::Enter);
    person.press(KeyCode::Esc);
    assert!(person.effects.contains(&Effect::CancelDownload));
    person.tell(Msg::Download(DownloadEvent::Failed {
        message: "stopped".into(),
    }));
    person.sees_not("stopped");
    person.press(KeyCode::Down);
    person.press(KeyCode::Enter);
    person.tell(Msg::Download(DownloadEvent::Failed {
        message: "The disk is full: 484 MiB are needed.".into(),
    }));
    person.sees("! The disk is full: 484 MiB are needed.");
    assert_eq!(person.app.tick_interval(), None);
    person.press(KeyCode::Enter);
    let last = person.effects.last();
    assert_eq!(
        last,
        Some(&Effect::Download {
            name: "qwen3-0.6b".into()
        })
    );
}

#[test]
fn the_list_of_models_leads_to_those_that_can_be_fetched() {
    let mut person = Person::ready(80, 24);
    person.press(KeyCode::F(4));
    person.tell(Msg::Models(vec![model("one")]));
    person.press(KeyCode::End);
    person.press(KeyCode::Enter);
    person.sees("Qwen3 0.6B");
    person.press(KeyCode::Esc);
    person.sees("○ idle");
    person.sees_not("Qwen3");
}

#[test]
fn a_search_that_ends_late_opens_no_model_by_itself() {
    let mut person = Person::loading(80, 24);
    let id = person.load_id();
    person.ctrl('c');
    person.hear(Event::Failed {
        id,
        error: EngineError::new("cancelled", ""),
    });
    person.press(KeyCode::Esc);
    person.tell(Msg::Models(vec![model("only")]));
    assert_eq!(loads(&person).len(), 1);
    person.sees("F4 shows the models");
}
