//! A home in which everything that has a name or a text tries to steer the terminal.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "shared by tests that each use a part"
)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use platen::chat::record::{ChatHead, MessageNo, ModelRef, Node};
use platen::chat::store::{Batch, Store};
use platen::chat::{Author, Message};
use platen::engine::event::StopReason;
use platen::engine::token::Role;
use tempfile::TempDir;

use crate::tiny_gguf::{TinyGguf, TinyKind, Value};
use crate::wire::HOSTILE;

pub struct Home {
    folder: TempDir,
}

impl Home {
    pub fn new() -> Home {
        let home = Home {
            folder: TempDir::new().unwrap(),
        };
        let at = home.path();
        fs::create_dir_all(at.join("data/models")).unwrap();
        fs::create_dir_all(at.join("config")).unwrap();
        let text = |text: &str| Value::Text(text.to_owned());
        let tiny = || TinyGguf::new(TinyKind::Llama).set("general.name", text(HOSTILE));
        let models = at.join("data/models");
        tiny().write(&home.model());
        tiny()
            .set(
                "tokenizer.chat_template",
                Value::Texts(vec![HOSTILE.into()]),
            )
            .set("general.type", text(HOSTILE))
            .set(HOSTILE, text(HOSTILE))
            .write(&models.join(broken_name(1)));
        tiny()
            .set("general.architecture", text(HOSTILE))
            .write(&models.join(broken_name(2)));
        let mut twice = tiny();
        for _ in 0..2 {
            twice.metadata.push((HOSTILE.to_owned(), text(HOSTILE)));
        }
        twice.write(&models.join(broken_name(3)));
        tiny()
            .set(
                "tokenizer.chat_template",
                text("{{ raise_exception(messages[0].content) }}"),
            )
            .write(&models.join(broken_name(4)));
        tiny()
            .set(
                "tokenizer.chat_template",
                text(&format!("{{% {HOSTILE} %}}")),
            )
            .write(&models.join(broken_name(5)));
        tiny()
            .set("general.alignment", text(HOSTILE))
            .set("general.type", text("adapter"))
            .write(&models.join(broken_name(6)));
        home.write_chat();
        let config = format!(
            "system = {0}\n[generation]\nstop = [{0}]\n[keys]\n",
            quoted(HOSTILE)
        );
        fs::write(at.join("config/config.toml"), config).unwrap();
        let messages = serde_json::json!([{ "role": "user", "content": HOSTILE }]);
        fs::write(home.messages(), messages.to_string()).unwrap();
        let broken = format!(
            "{0} = 1\nsystem = 3 # {HOSTILE}\n[load]\nflash_attention = {0}\n[keys]\n{0} = [\"{HOSTILE}\"]\n",
            quoted(HOSTILE)
        );
        fs::write(home.broken_config(), broken).unwrap();
        home
    }

    /// Its folder, whose name is as bad as a name can be.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(HOSTILE)
    }

    /// A model that works.
    pub fn model(&self) -> PathBuf {
        self.path().join(format!("data/models/{HOSTILE}.gguf"))
    }

    pub fn models(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.path().join("data/models")).unwrap();
        folder.map(|entry| entry.unwrap().path()).collect()
    }

    pub fn store(&self) -> PathBuf {
        self.path().join("data/chats.db")
    }

    pub fn messages(&self) -> PathBuf {
        self.path().join("messages.json")
    }

    pub fn broken_config(&self) -> PathBuf {
        self.path().join(format!("{HOSTILE}.toml"))
    }

    fn write_chat(&self) {
        let node = |no: u64, role| Node {
            no: MessageNo(no),
            parent: (no > 1).then(|| MessageNo(no - 1)),
            message: Message::new(role, HOSTILE),
        };
        let question = node(1, Role::User);
        let mut reply = node(2, Role::Assistant);
        reply.message.stop = Some(StopReason::Eog);
        reply.message.author = Some(Author {
            model: HOSTILE.into(),
            vocabulary: HOSTILE.into(),
        });
        let batch = Batch {
            title: HOSTILE.into(),
            head: ChatHead {
                system: Some(HOSTILE.into()),
                model: Some(ModelRef {
                    name: "tiny".into(),
                    path: self.model(),
                }),
                leaf: Some(MessageNo(2)),
            },
            put: vec![&question, &reply],
            ..Batch::default()
        };
        let mut store = Store::open(&self.store()).unwrap().store;
        store.write(&batch).unwrap();
    }
}

fn broken_name(number: u8) -> OsString {
    // A name that is no text can only be found, not given as an argument.
    let odd: &[u8] = if number == 6 { b"\xff" } else { b"" };
    OsString::from_vec([HOSTILE.as_bytes(), odd, &[b'0' + number], b".gguf"].concat())
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().fold(String::new(), |mut escaped, c| {
        let _ = write!(escaped, "\\U{:08X}", u32::from(c));
        escaped
    });
    format!("\"{escaped}\"")
}
