//! What of the chat goes to the disk, and what the screen says when it doesn't.

use std::time::Duration;

use platen::app::App;
use platen::app::keeping::States;
use platen::app::message::{Effect, Msg};
use platen::chat::keeper::{Keeping, StoreCommand, StoreEvent};
use platen::chat::record::{
    Change, ChatHead, ChatId, ChatSlot, MessageNo, ModelRef, Node, StoredChat,
};
use platen::chat::{Author, Message};
use platen::config::Config;
use platen::engine::command::Command;
use platen::engine::event::{EngineError, Event, StopReason};
use platen::engine::token::{Role, TokenId, TokenRun};

use crate::person::{Person, facts};

/// What the screen wants kept, in order.
fn kept(person: &Person) -> Vec<(u64, ChatHead, Vec<Change>)> {
    person
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Store(StoreCommand::Keep {
                slot,
                head,
                changes,
            }) => Some((slot.0, head.clone(), changes.clone())),
            _ => None,
        })
        .collect()
}

/// One word for each change: `put 2 assistant`, `grow 2 Hi`, `remove 1`.
fn words(changes: &[Change]) -> Vec<String> {
    changes
        .iter()
        .map(|change| match change {
            Change::Put(node) => format!(
                "put {} {} {}",
                node.no.0,
                node.message.role.name(),
                node.message.text
            ),
            Change::Grow(no, growth) => format!("grow {} {}", no.0, growth.text),
            Change::Remove(no) => format!("remove {}", no.0),
        })
        .collect()
}

fn all_words(person: &Person) -> Vec<String> {
    let kept = kept(person);
    kept.iter()
        .flat_map(|(_, _, changes)| words(changes))
        .collect()
}

fn keeping() -> Person {
    let mut person = Person::ready(80, 24);
    person.alter(App::with_keeping);
    person
}

fn broken() -> Msg {
    Msg::Store(StoreEvent::State(Keeping::NotSaved(EngineError::new(
        "The disk of /data/chats.db is full.",
        "Make room; it is tried again by itself.",
    ))))
}

#[test]
fn a_turn_is_kept_as_it_happens() {
    let mut person = keeping();
    person.say("Hello");
    person.prefill(57, 57, 298);
    person.token("Hi");
    person.token(" there");
    person.finish(StopReason::Eog);
    assert_eq!(
        all_words(&person),
        [
            "put 1 user Hello",
            "put 2 assistant ",
            "grow 2 Hi",
            "grow 2  there",
            "put 2 assistant Hi there",
        ]
    );
    let (slot, head, changes) = kept(&person).pop().unwrap();
    assert_eq!((slot, head.leaf), (1, Some(MessageNo(2))));
    assert_eq!(head.model.unwrap().name, facts().name);
    let Change::Put(reply) = &changes[0] else {
        panic!("{changes:?}");
    };
    assert_eq!(reply.parent, Some(MessageNo(1)));
    assert_eq!(reply.message.stop, Some(StopReason::Eog));
    assert!(reply.message.tokens.is_some() && reply.message.sampling.is_some());
}

#[test]
fn a_reply_that_is_made_anew_is_an_alternative_to_the_one_before() {
    let mut person = keeping();
    person.turn("Hello", ["Hi", "."]);
    person.say("/regen");
    person.prefill(57, 57, 298);
    person.token("Hey");
    person.finish(StopReason::Eog);
    assert!(
        !all_words(&person)
            .iter()
            .any(|word| word.starts_with("remove"))
    );
    let (_, head, changes) = kept(&person).pop().unwrap();
    let Change::Put(reply) = &changes[0] else {
        panic!("{changes:?}");
    };
    assert_eq!((reply.no, reply.parent), (MessageNo(3), Some(MessageNo(1))));
    assert_eq!(head.leaf, Some(MessageNo(3)));
}

#[test]
fn a_reply_that_says_nothing_and_a_message_that_is_given_back_are_forgotten() {
    let mut person = keeping();
    person.say("Hello");
    let id = person.turn_id();
    person.hear(Event::Failed {
        id,
        error: EngineError::new("no", "try"),
    });
    assert_eq!(all_words(&person), ["put 1 user Hello", "remove 1"]);
}

#[test]
fn a_new_chat_is_another_one_and_the_reply_it_cuts_off_is_marked() {
    let mut person = keeping();
    person.say("Hello");
    person.prefill(57, 57, 298);
    person.token("Hi");
    person.say("/new");
    person.say("Again");
    let kept = kept(&person);
    let (slot, _, changes) = &kept[kept.len() - 2];
    let Change::Put(reply) = &changes[0] else {
        panic!("{changes:?}");
    };
    assert_eq!(
        (*slot, reply.message.stop),
        (1, Some(StopReason::Cancelled))
    );
    assert_eq!(reply.message.tokens.as_ref().unwrap().ids.len(), 1);
    let (slot, head, changes) = &kept[kept.len() - 1];
    assert_eq!(
        (*slot, words(changes)),
        (2, vec!["put 3 user Again".to_owned()])
    );
    assert_eq!(head.leaf, Some(MessageNo(3)));
}

#[test]
fn the_system_prompt_is_kept_once_there_is_a_chat() {
    let mut person = keeping();
    person.say("/system be brief");
    assert_eq!(kept(&person), []);
    person.turn("Hello", ["Hi", "."]);
    person.say("/system be long");
    let (_, head, changes) = kept(&person).pop().unwrap();
    assert_eq!(head.system.as_deref(), Some("be long"));
    assert_eq!(changes, []);
}

#[test]
fn nothing_is_kept_that_is_not_to_be() {
    let mut person = Person::ready(80, 24);
    person.turn("Hello", ["Hi", "."]);
    assert_eq!(kept(&person), []);
    person.say("/save");
    person.sees("Saving is switched off");
}

#[test]
fn what_is_not_saved_is_said_all_the_time_and_before_leaving() {
    let mut person = keeping();
    person.turn("Hello", ["Hi", "."]);
    person.tell(broken());
    person.sees("! not saved");
    person.sees("Not saved: The disk of /data/chats.db is full.");
    person.turn("And?", ["Yes", "."]);
    person.sees("! not saved");
    person.say("/quit");
    person.sees("This chat is not saved.");
    person.sees("/save FILE");
    assert!(!person.effects.contains(&Effect::Quit));
    person.say("/save /tmp/here.db");
    let asked = StoreCommand::SaveTo("/tmp/here.db".into());
    assert!(person.effects.contains(&Effect::Store(asked)));
    person.tell(Msg::Store(StoreEvent::State(Keeping::Saved)));
    person.sees("Everything is saved again.");
    person.sees_not("! not saved");
    person.say("/quit");
    assert!(person.effects.contains(&Effect::Quit));
}

#[test]
fn not_saved_fits_into_every_title_bar() {
    for width in [20, 30, 40, 80] {
        let mut person = Person::ready(width, 24);
        person.alter(App::with_keeping);
        person.tell(broken());
        let title = person
            .screen()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        assert!(title.contains("! not"), "{width}: {title}");
    }
}

#[test]
fn a_chat_that_was_read_goes_on_where_it_was() {
    let mut reply = Message::new(Role::Assistant, "Hi");
    reply.author = Some(Author {
        model: facts().name,
        vocabulary: facts().vocabulary,
    });
    reply.tokens = Some(TokenRun {
        ids: vec![TokenId(7)],
        text_len: 2,
    });
    let chat = stored(
        Some(ModelRef {
            name: facts().name,
            path: facts().path,
        }),
        vec![
            node(1, None, Message::new(Role::User, "Hello")),
            node(2, Some(1), reply),
            node(3, Some(1), Message::new(Role::Assistant, "another")),
        ],
        1,
    );
    let config = Config {
        model: Some("models/SmolLM2-135M-Instruct.gguf".into()),
        ..Config::default()
    };
    let mut person = Person::at(80, 24, &config);
    person.alter(|app| app.with_keeping().with_chat(&chat));
    person.start();
    person.sees("Hello");
    person.sees("cut off: platen ended here");
    person.sees("1 message of an unknown kind is left out.");
    let id = person.load_id();
    person.hear(Event::Ready {
        id,
        facts: Box::new(facts()),
        load: Duration::ZERO,
    });
    assert_eq!(kept(&person), [], "nothing has happened to it");
    person.tell(broken());
    person.sees("! not saved");
    person.say("/quit");
    person.sees_not("This chat is not saved.");
    assert!(
        person.effects.contains(&Effect::Quit),
        "nothing of it would be lost"
    );
    person.say("Go on");
    let prompt = &person.requests().last().unwrap().1.messages;
    assert_eq!(prompt[1].tokens.as_ref().unwrap().ids, [TokenId(7)]);
    let (slot, _, changes) = kept(&person).pop().unwrap();
    assert_eq!(slot, ChatSlot(1).0);
    assert_eq!(words(&changes), ["put 4 user Go on"]);
    person.say("/quit");
    person.sees("This chat is not saved.");
}

fn node(no: u64, parent: Option<u64>, message: Message) -> Node {
    Node {
        no: MessageNo(no),
        parent: parent.map(MessageNo),
        message,
    }
}

/// A chat in the store, at its second message.
fn stored(model: Option<ModelRef>, nodes: Vec<Node>, unknown: usize) -> StoredChat {
    StoredChat {
        id: ChatId(4),
        title: "Hello".into(),
        created_ms: 0,
        updated_ms: 0,
        head: ChatHead {
            system: None,
            model,
            leaf: Some(MessageNo(2)),
        },
        nodes,
        unknown,
    }
}

fn states() -> States {
    States {
        folder: "/cache/kv".into(),
        store: "ab12".into(),
        budget: 1 << 30,
    }
}

/// The files that states are written to and read from, in order.
fn state_files(person: &Person) -> Vec<String> {
    person
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Engine(Command::Save { chat, file, .. }) => {
                Some(format!("save {} {}", chat.0, file.display()))
            }
            Effect::Engine(Command::Restore { chat, file, .. }) => {
                Some(format!("restore {} {}", chat.0, file.display()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn the_state_of_a_chat_is_kept_when_it_is_left() {
    let mut person = keeping();
    person.alter(|app| app.with_states(states()));
    person.say("/new");
    assert_eq!(state_files(&person), [""; 0], "nothing was said");
    person.say("Hello");
    person.prefill(57, 57, 298);
    person.token("Hi there");
    person.finish(StopReason::Eog);
    let kept = |slot: u64, id: i64| {
        Msg::Store(StoreEvent::Kept {
            slot: ChatSlot(slot),
            id: ChatId(id),
            reopen: String::new(),
        })
    };
    person.tell(kept(2, 7));
    person.say("/new");
    assert_eq!(state_files(&person), ["save 2 /cache/kv/ab12-7.kv"]);
    person.say("Again");
    person.prefill(57, 57, 298);
    person.token("Yes");
    person.finish(StopReason::Eog);
    person.tell(kept(3, 8));
    person.say("/quit");
    assert_eq!(state_files(&person)[1..], ["save 3 /cache/kv/ab12-8.kv"]);
    assert_eq!(person.effects.last(), Some(&Effect::Quit), "written first");
}

#[test]
fn the_state_of_a_chat_is_taken_back_when_it_is_opened() {
    let mut reply = Message::new(Role::Assistant, "Hi");
    reply.stop = Some(StopReason::Eog);
    let chat = stored(
        None,
        vec![
            node(1, None, Message::new(Role::User, "Hello")),
            node(2, Some(1), reply),
        ],
        0,
    );
    let config = Config {
        model: Some("models/SmolLM2-135M-Instruct.gguf".into()),
        ..Config::default()
    };
    let mut person = Person::at(80, 24, &config);
    person.alter(|app| app.with_keeping().with_states(states()).with_chat(&chat));
    person.start();
    let id = person.load_id();
    person.hear(Event::Ready {
        id,
        facts: Box::new(facts()),
        load: Duration::ZERO,
    });
    assert_eq!(state_files(&person), ["restore 1 /cache/kv/ab12-4.kv"]);
    let asked = person.effects.iter().find_map(|effect| match effect {
        Effect::Engine(Command::Restore { id, messages, .. }) => Some((*id, messages.len())),
        _ => None,
    });
    let (id, messages) = asked.unwrap();
    assert_eq!(messages, 2);
    person.hear(Event::Restored {
        id,
        tokens: 4_102,
        took: Duration::from_millis(50),
        saved: Some(Duration::from_millis(16_050)),
    });
    person.sees("Restored 4,102 tokens in 0.05 s, 16 s saved.");
    person.hear(Event::NotRestored {
        id,
        reason: Some("overdue".into()),
    });
    person.sees_not("overdue");
}
