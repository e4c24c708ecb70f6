//! Turns, keys and commands.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use platen::app::message::{Effect, Msg};
use platen::config::Config;
use platen::engine::command::{Command, RequestId};
use platen::engine::event::{
    EngineError, Event, PrefillProgress, Reread, RereadReason, StopReason,
};
use platen::engine::token::{Role, TokenId, TokenRun};

use crate::person::{Person, stats};

fn user(text: &str) -> (Role, String) {
    (Role::User, text.to_owned())
}

fn reply(text: &str) -> (Role, String) {
    (Role::Assistant, text.to_owned())
}

fn temperatures(person: &Person) -> Vec<String> {
    let set = person.effects.iter().filter_map(|effect| match effect {
        Effect::Engine(Command::SetSampling { sampling }) => {
            Some(format!("{:.2}", sampling.temperature))
        }
        _ => None,
    });
    set.collect()
}

fn quits(person: &Person) -> bool {
    person.effects.contains(&Effect::Quit)
}

#[test]
fn a_turn_goes_from_enter_to_a_reply_with_its_numbers() {
    let mut person = Person::ready(140, 40);
    person.wait(5_000);
    person.say("What is the capital of France?");
    assert_eq!(
        person.last_prompt(),
        [user("What is the capital of France?")]
    );
    assert_eq!(person.requests()[0].1.submitted.0, 5_000_000);
    person.sees("◌ preparing");
    person.prefill(57, 57, 298);
    person.sees("▶ reading 57/57");
    person.sees("prefill  191 tok/s       57 tok");
    person.wait(312);
    person.token("Paris");
    person.sees("TTFT     312 ms");
    person.sees("decode   –                1 tok");
    person.wait(16);
    person.token("!");
    person.sees("● decoding  61.2 tok/s");
    person.sees("decode   61.2 tok/s       2 tok");
    person.sees("Paris!▌");
    person.finish(StopReason::Eog);
    person.sees("2 tok · TTFT 312 ms · 61.2 tok/s");
    person.sees("p50 16 · p95 19 · p99 31 ms");
    person.sees("reused 1,147 · read 57 · saved 6.0 s");
    person.sees("27.1 MiB of 184 MiB · f16 · 14.7 %");
    person.sees("○ idle");
}

#[test]
fn the_next_prompt_carries_the_reply_with_its_tokens() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["Hi", "!"]);
    person.say("Again");
    assert_eq!(
        person.last_prompt(),
        [user("Hello"), reply("Hi!"), user("Again")]
    );
    let requests = person.requests();
    let run = TokenRun {
        ids: vec![TokenId(0), TokenId(1)],
        text_len: 3,
    };
    assert_eq!(requests[1].1.messages[1].tokens, Some(run));
}

#[test]
fn what_is_typed_during_a_reply_is_kept_and_what_is_sent_waits_its_turn() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.prefill(57, 57, 298);
    person.token("1");
    person.say("Two");
    person.say("Three");
    person.type_str("Four, not sent");
    person.sees("queued Two");
    person.sees("queued Three");
    person.sees("> Four, not sent");
    assert_eq!(person.requests().len(), 1);
    person.finish(StopReason::Eog);
    assert_eq!(person.last_prompt(), [user("One"), reply("1"), user("Two")]);
    person.sees_not("queued Two");
    person.sees("queued Three");
    person.prefill(57, 57, 298);
    person.token("2");
    person.finish(StopReason::Eog);
    assert_eq!(person.requests().len(), 3);
    assert_eq!(person.last_prompt().last(), Some(&user("Three")));
    person.sees_not("queued");
    person.sees("> Four, not sent");
}

#[test]
fn a_message_sent_while_the_model_loads_is_sent_once_when_it_is_ready() {
    let mut person = Person::loading(80, 24);
    person.say("Hello");
    person.sees("queued Hello");
    assert!(person.requests().is_empty());
    let id = person.load_id();
    let ready = Event::Ready {
        id,
        facts: Box::new(crate::person::facts()),
        load: Duration::ZERO,
    };
    person.hear(ready.clone());
    person.hear(ready);
    assert_eq!(person.requests().len(), 1);
    person.sees_not("queued");
}

#[test]
fn a_queued_message_comes_back_with_up() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.say("Two");
    person.press(KeyCode::Up);
    person.sees_not("queued");
    person.sees("> Two");
    person.finish(StopReason::Eog);
    assert_eq!(person.requests().len(), 1);
}

#[test]
fn escape_stops_the_reply_and_keeps_what_came() {
    let mut person = Person::ready(80, 24);
    person.say("Count");
    person.prefill(57, 57, 298);
    person.token("1 2");
    person.press(KeyCode::Esc);
    person.sees("■ stopping");
    person.press(KeyCode::Esc);
    let id = person.turn_id();
    let cancels = person
        .effects
        .iter()
        .filter(|effect| **effect == Effect::CancelThrough(id))
        .count();
    assert_eq!(cancels, 1);
    person.token(" 3");
    person.finish(StopReason::Cancelled);
    person.sees("1 2 3");
    person.sees("stopped by you");
    person.say("Go on");
    assert_eq!(
        person.last_prompt(),
        [user("Count"), reply("1 2 3"), user("Go on")]
    );
}

#[test]
fn a_turn_stopped_before_its_first_token_leaves_no_empty_reply() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.prefill(10, 57, 100);
    person.press(KeyCode::Esc);
    person.finish(StopReason::Cancelled);
    person.sees("○ idle");
    person.sees("i Stopped before the first token; Ctrl-R asks again.");
    person.say("Two");
    assert_eq!(person.last_prompt(), [user("One"), user("Two")]);
}

#[test]
fn a_reply_without_a_word_never_enters_the_conversation() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.prefill(57, 57, 298);
    person.token("");
    person.finish(StopReason::Eog);
    person.sees("i The model ended its turn without a word.");
    person.say("Two");
    assert_eq!(person.last_prompt(), [user("One"), user("Two")]);
}

#[test]
fn text_held_back_until_the_end_belongs_to_the_reply() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    let id = person.turn_id();
    let tokens = TokenRun {
        ids: vec![TokenId(7)],
        text_len: 2,
    };
    let stats = Box::new(stats(StopReason::Eog, 1));
    person.hear(Event::Finished {
        id,
        stop: StopReason::Eog,
        tail: "Us".into(),
        tail_thinking_len: 0,
        tokens,
        stats,
    });
    person.sees("Us");
    person.sees("1 tok");
    person.sees_not("without a word");
}

#[test]
fn tokens_of_another_request_are_not_heard() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.prefill(57, 57, 298);
    person.token("stale");
    person.say("/new");
    let stale = person.turn_id();
    assert!(person.effects.contains(&Effect::CancelThrough(stale)));
    person.token("stale");
    person.finish(StopReason::Cancelled);
    person.sees_not("stale");
    person.sees("○ idle");
    person.say("Fresh");
    assert_eq!(person.last_prompt(), [user("Fresh")]);
    assert!(person.turn_id() > stale);
}

#[test]
fn a_refused_message_comes_back_into_the_draft() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["Hi", "!"]);
    person.say("Too long");
    let id = person.turn_id();
    let error = EngineError::new(
        "It needs 9,120 tokens; the context has 8,192.",
        "Shorten it.",
    );
    person.hear(Event::Failed { id, error });
    person.sees("! It needs 9,120 tokens; the context has 8,192. Shorten it.");
    person.sees("> Too long");
    person.ctrl('u');
    person.say("Short");
    assert_eq!(
        person.last_prompt(),
        [user("Hello"), reply("Hi!"), user("Short")]
    );
    person.sees_not("9,120");
}

#[test]
fn a_message_refused_while_it_is_stopped_comes_back_as_well() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["Hi", "!"]);
    person.say("Too long");
    person.say("Next");
    person.press(KeyCode::Esc);
    let id = person.turn_id();
    let error = EngineError::new("It needs 9,120 tokens.", "Shorten it.");
    person.hear(Event::Failed { id, error });
    person.sees("> Too long");
    person.sees("held   Next");
    person.ctrl('u');
    person.press(KeyCode::Enter);
    assert_eq!(
        person.last_prompt(),
        [user("Hello"), reply("Hi!"), user("Next")]
    );
}

#[test]
fn after_a_failure_queued_messages_wait_for_enter() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.say("Two");
    person.type_str("draft");
    let id = person.turn_id();
    person.hear(Event::Failed {
        id,
        error: EngineError::new("No.", ""),
    });
    assert_eq!(person.requests().len(), 1);
    person.sees("held   Two");
    person.sees("The message is in the history.");
    person.ctrl('u');
    person.press(KeyCode::Enter);
    assert_eq!(person.last_prompt(), [user("Two")]);
}

#[test]
fn a_message_queued_during_a_failing_turn_is_not_lost() {
    let mut person = Person::ready(80, 24);
    person.say("One");
    person.hear(Event::Stopped);
    person.sees("! The engine ended unexpectedly.");
    person.say("Two");
    person.sees("queued Two");
}

#[test]
fn the_temperature_moves_from_a_key_also_in_mid_reply() {
    let mut person = Person::ready(80, 24);
    person.press_with(KeyModifiers::CONTROL, KeyCode::Up);
    person.sees("temp 0.75");
    assert!(temperatures(&person).is_empty());
    person.say("Hello");
    let asked = person.requests()[0].1.sampling.temperature;
    assert!((asked - 0.75).abs() < 1e-6);
    person.prefill(57, 57, 298);
    person.token_at("a", 0.75);
    person.press_with(KeyModifiers::ALT, KeyCode::Down);
    person.press_with(KeyModifiers::CONTROL, KeyCode::Down);
    assert_eq!(temperatures(&person), ["0.70", "0.65"]);
    person.sees("temp 0.65");
    person.token_at("b", 0.65);
    person.token_at("c", 0.65);
    person.finish(StopReason::Eog);
    person.sees("temp 0.65 from token 2");
    person.press_with(KeyModifiers::CONTROL, KeyCode::Down);
    assert_eq!(temperatures(&person).len(), 2);
}

#[test]
fn the_temperature_stops_at_its_limits() {
    let mut person = Person::ready(80, 24);
    for _ in 0..20 {
        person.press_with(KeyModifiers::CONTROL, KeyCode::Down);
    }
    person.sees("temp 0.00");
}

#[test]
fn ctrl_c_stops_a_reply_and_else_asks_before_it_quits() {
    let mut person = Person::ready(80, 24);
    person.say("Hello");
    person.ctrl('c');
    person.sees("■ stopping");
    person.finish(StopReason::Cancelled);
    person.ctrl('c');
    person.sees("Press Ctrl-C again to quit");
    person.type_str("x");
    person.sees_not("again to quit");
    person.sees_not("> x");
    assert!(!quits(&person));
    person.ctrl('c');
    person.ctrl('c');
    assert!(quits(&person));
}

#[test]
fn ctrl_c_empties_a_draft_which_can_be_undone() {
    let mut person = Person::ready(80, 24);
    person.tell(Msg::Paste("three\nlines of\ntext".into()));
    person.ctrl('c');
    person.sees_not("lines of");
    person.sees_not("again to quit");
    person.ctrl('_');
    person.sees("lines of");
    person.ctrl('c');
    person.ctrl('c');
    person.sees("again to quit");
}

#[test]
fn ctrl_c_quits_also_when_the_engine_does_not_answer() {
    let mut person = Person::loading(80, 24);
    for _ in 0..3 {
        person.ctrl('c');
    }
    assert!(quits(&person));
}

#[test]
fn characters_typed_with_altgr_arrive() {
    let mut person = Person::ready(80, 24);
    let altgr = KeyModifiers::CONTROL | KeyModifiers::ALT;
    person.press_with(altgr, KeyCode::Char('@'));
    person.press_with(KeyModifiers::SHIFT, KeyCode::Char('A'));
    person.sees("> @A");
}

#[test]
fn ctrl_d_quits_only_with_an_empty_draft() {
    let mut person = Person::ready(80, 24);
    person.type_str("ab");
    person.press(KeyCode::Home);
    person.ctrl('d');
    person.sees("> b");
    assert!(!quits(&person));
    person.ctrl('d');
    person.ctrl('d');
    assert!(quits(&person));
}

#[test]
fn the_release_of_a_key_does_nothing() {
    let mut person = Person::ready(80, 24);
    let mut key = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    person.tell(Msg::Key(key));
    key.kind = KeyEventKind::Release;
    person.tell(Msg::Key(key));
    key.kind = KeyEventKind::Repeat;
    person.tell(Msg::Key(key));
    person.sees("> aa");
    person.sees_not("> aaa");
}

#[test]
fn a_paste_of_many_lines_is_one_draft_and_is_not_sent() {
    let mut person = Person::ready(80, 24);
    person.tell(Msg::Paste("/usr/bin/env: not found\r\nwhy?".into()));
    assert!(person.requests().is_empty());
    person.sees("> /usr/bin/env: not found");
    person.sees("  why?");
    person.press(KeyCode::Enter);
    assert_eq!(
        person.last_prompt(),
        [user("/usr/bin/env: not found\nwhy?")]
    );
}

#[test]
fn alt_enter_and_ctrl_j_begin_a_line() {
    let mut person = Person::ready(80, 24);
    person.type_str("a");
    person.press_with(KeyModifiers::ALT, KeyCode::Enter);
    person.type_str("b");
    person.ctrl('j');
    person.type_str("c");
    person.press(KeyCode::Enter);
    assert_eq!(person.last_prompt(), [user("a\nb\nc")]);
}

#[test]
fn up_walks_the_draft_and_then_the_history_and_down_returns() {
    let mut person = Person::ready(80, 24);
    person.turn("First", ["a", "b"]);
    person.turn("Second", ["a", "b"]);
    person.type_str("draft");
    person.press(KeyCode::Up);
    person.sees("> Second");
    person.press(KeyCode::Up);
    person.sees("> First");
    person.press(KeyCode::Down);
    person.press(KeyCode::Down);
    person.sees("> draft");
}

#[test]
fn while_scrolled_up_the_view_stays_and_end_follows_again() {
    let mut person = Person::ready(60, 16);
    for number in 0..10 {
        person.turn(&format!("Question {number}"), ["Answer", "."]);
    }
    person.say("Last");
    person.prefill(57, 57, 298);
    person.token("x");
    person.press(KeyCode::PageUp);
    person.press(KeyCode::PageUp);
    person.sees("↓ ");
    let top = person.screen().lines().nth(4).unwrap().to_owned();
    for _ in 0..100 {
        person.token(" more");
    }
    assert_eq!(person.screen().lines().nth(4).unwrap(), top);
    person.press(KeyCode::End);
    person.sees("more▌");
    person.sees_not("↓ ");
}

#[test]
fn commands_complete_and_run() {
    let mut person = Person::ready(80, 24);
    person.type_str("/te");
    person.sees("set the temperature");
    person.press(KeyCode::Tab);
    person.type_str("0.3");
    person.press(KeyCode::Enter);
    person.sees("temp 0.30");
    person.say("/set top_p 0.5");
    person.sees("top-p 0.50");
    person.say("/set max_tokens 64");
    person.sees("max 64");
    person.say("/temp 9");
    person.sees("i temperature is 9; it must be from 0 to 5");
    person.sees("temp 0.30");
    person.say("/modle");
    person.sees("did you mean /model?");
    person.sees("> /modle");
    assert!(person.requests().is_empty());
}

#[test]
fn enter_takes_the_chosen_completion() {
    let mut person = Person::ready(80, 24);
    person.say("/he");
    person.sees("Keys and commands");
    person.press(KeyCode::Esc);
    person.type_str("/");
    person.press(KeyCode::Up);
    person.press(KeyCode::Enter);
    assert!(quits(&person));
}

#[test]
fn escape_closes_the_completions_before_it_stops_a_reply() {
    let mut person = Person::ready(80, 24);
    person.say("Hello");
    person.type_str("/");
    person.press(KeyCode::Esc);
    person.sees_not("start a new chat");
    person.sees("◌ preparing");
    person.press(KeyCode::Esc);
    person.sees("■ stopping");
}

#[test]
fn two_slashes_send_a_message_that_begins_with_one() {
    let mut person = Person::ready(80, 24);
    person.say("//new is a command");
    assert_eq!(person.last_prompt(), [user("/new is a command")]);
}

#[test]
fn the_system_prompt_leads_every_turn_from_the_next_on() {
    let config = Config {
        system: Some("Be brief.".into()),
        model: Some("m.gguf".into()),
        ..Config::default()
    };
    let mut person = Person::at(80, 24, &config);
    person.start();
    let id = person.load_id();
    person.hear(Event::Ready {
        id,
        facts: Box::new(crate::person::facts()),
        load: Duration::ZERO,
    });
    person.say("/system");
    person.sees("System prompt: Be brief.");
    person.turn("One", ["a", "b"]);
    assert_eq!(
        person.last_prompt()[0],
        (Role::System, "Be brief.".to_owned())
    );
    person.say("/system Speak like a pirate.");
    person.turn("Two", ["a", "b"]);
    assert_eq!(
        person.last_prompt()[0],
        (Role::System, "Speak like a pirate.".to_owned())
    );
    person.say("/system -");
    person.say("Three");
    assert_eq!(person.last_prompt()[0], user("One"));
}

#[test]
fn regenerating_asks_the_same_again_without_the_reply() {
    let mut person = Person::ready(80, 24);
    person.say("/regen");
    person.sees("There is no message to answer again yet.");
    person.turn("Hello", ["Hi", "!"]);
    person.say("/regen");
    assert_eq!(person.last_prompt(), [user("Hello")]);
    assert_eq!(person.requests().len(), 2);
    person.say("/regen");
    person.sees("The reply is still coming; stop it first.");
}

#[test]
fn a_reply_comes_back_where_its_regeneration_brings_nothing() {
    for ending in ["stopped", "refused"] {
        let mut person = Person::ready(80, 24);
        person.turn("Hello", ["The first", " answer"]);
        person.say("/regen");
        person.sees_not("The first answer");
        if ending == "stopped" {
            person.press(KeyCode::Esc);
            person.finish(StopReason::Cancelled);
        } else {
            let id = person.turn_id();
            let error = EngineError::new("Reading the prompt failed.", "Send it again.");
            person.hear(Event::Failed { id, error });
        }
        person.sees("The first answer");
        person.say("More");
        assert_eq!(person.last_prompt().len(), 3, "{ending}");
    }
}

#[test]
fn a_regenerated_reply_takes_the_place_of_the_old_one() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["The first", " answer"]);
    person.say("/regen");
    person.token("Another");
    person.press(KeyCode::Esc);
    person.finish(StopReason::Cancelled);
    person.sees("Another");
    person.sees_not("The first answer");
}

#[test]
fn the_last_reply_can_be_copied_raw() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["**Hi**", "\n\tthere"]);
    person.press_with(KeyModifiers::ALT, KeyCode::Char('c'));
    assert!(
        person
            .effects
            .contains(&Effect::Copy("**Hi**\n\tthere".into()))
    );
}

#[test]
fn nothing_ticks_while_nothing_runs() {
    let mut person = Person::loading(80, 24);
    assert!(person.app.tick_interval().is_some());
    let id = person.load_id();
    person.hear(Event::Ready {
        id,
        facts: Box::new(crate::person::facts()),
        load: Duration::ZERO,
    });
    assert_eq!(person.app.tick_interval(), None);
    person.say("Hello");
    assert!(person.app.tick_interval().is_some());
    person.finish(StopReason::Eog);
    assert_eq!(person.app.tick_interval(), None);
}

#[test]
fn what_a_model_or_a_file_writes_never_reaches_the_terminal_raw() {
    let mut person = Person::loading(140, 40);
    let evil = "\u{1b}]52;c;QQ==\u{7}\u{1b}[2J\u{9b}31m\u{202e}x\u{8}\u{7f}";
    let id = person.load_id();
    let mut facts = crate::person::facts();
    facts.name = format!("evil{evil}");
    facts.quantization = evil.into();
    facts.architecture = evil.into();
    person.hear(Event::Ready {
        id,
        facts: Box::new(facts),
        load: Duration::ZERO,
    });
    let harmless = |person: &Person| {
        let screen = person.screen();
        assert!(
            !screen
                .chars()
                .any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{screen:?}"
        );
    };
    harmless(&person);
    person.hear(Event::Notice { text: evil.into() });
    person.tell(Msg::Paste(evil.into()));
    harmless(&person);
    person.press(KeyCode::Enter);
    person.prefill(57, 57, 298);
    person.token(evil);
    person.say(evil);
    harmless(&person);
    let id = person.turn_id();
    person.hear(Event::Failed {
        id,
        error: EngineError::new(evil, evil),
    });
    harmless(&person);
    person.press(KeyCode::F(2));
    harmless(&person);
    person.press(KeyCode::F(4));
    let mut model = crate::person::model(evil);
    model.source = evil.into();
    person.tell(Msg::Models(vec![model]));
    harmless(&person);
}

#[test]
fn wrong_keys_in_the_configuration_are_told_and_leave_the_defaults() {
    let mut config = Config::default();
    config.keys.insert("sned".into(), vec!["enter".into()]);
    let mut person = Person::at(80, 24, &config);
    person.sees("! keys.sned: there is no such action");
    person.type_str("x");
    person.sees("> x");
}

#[test]
fn configured_keys_show_in_the_hints() {
    let mut config = Config {
        model: Some("m.gguf".into()),
        ..Config::default()
    };
    config.keys.insert("send".into(), vec!["ctrl-s".into()]);
    let mut person = Person::at(80, 24, &config);
    person.sees("Ctrl-S send");
    person.type_str("Hello");
    person.ctrl('s');
    person.sees("queued Hello");
}

#[test]
fn every_request_has_a_greater_id_than_the_one_before() {
    let mut person = Person::loading(80, 24);
    let load = person.load_id();
    person.hear(Event::Ready {
        id: load,
        facts: Box::new(crate::person::facts()),
        load: Duration::ZERO,
    });
    person.turn("One", ["a", "b"]);
    person.turn("Two", ["a", "b"]);
    let ids: Vec<RequestId> = person.requests().iter().map(|(id, _)| *id).collect();
    assert!(load < ids[0] && ids[0] < ids[1]);
}

#[test]
fn messages_read_again_are_counted_as_the_user_sees_them() {
    let reread = |person: &mut Person, message| {
        let id = person.turn_id();
        let reread = Reread {
            tokens: 312,
            reason: RereadReason::Edited { message },
        };
        let progress = PrefillProgress {
            reread: Some(reread),
            ..PrefillProgress::default()
        };
        person.hear(Event::Prefill { id, progress });
    };
    let mut person = Person::ready(100, 24);
    person.say("/system Be brief.");
    person.say("One");
    reread(&mut person, 1);
    person.sees("read 312 again: another chat was");
    person.finish(StopReason::Cancelled);
    person.say("Two");
    reread(&mut person, 2);
    person.sees("read 312 again: message 2 was");
    person.finish(StopReason::Cancelled);
    person.say("/system Be rude.");
    person.say("Three");
    reread(&mut person, 0);
    person.sees("read 312 again: the system");
}

#[test]
fn thinking_stands_before_the_answer_and_is_not_copied_with_it() {
    let mut person = Person::ready(80, 24);
    person.say("Hello");
    person.prefill(57, 57, 298);
    person.thought("Let me see.");
    person.token("日本");
    person.thought("語 is no thinking");
    person.finish(StopReason::Eog);
    person.press_with(KeyModifiers::ALT, KeyCode::Char('c'));
    let copied = Effect::Copy("日本語 is no thinking".into());
    assert!(person.effects.contains(&copied));
}
