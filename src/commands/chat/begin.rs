//! How a chat begins: new or from the store, and where it will be kept. A store that fails never keeps anybody from
//! chatting.

use std::path::Path;

use anyhow::bail;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::keeping::States;
use crate::chat::keeper::{Resumed, Resumption, Setup};
use crate::chat::record::StoredChat;
use crate::chat::store::{Access, ChatLock, Locking, Opened, Store, StoreError};
use crate::cli::flags::ChatName;
use crate::config::Config;
use crate::paths::Paths;
use crate::text::hex;

/// A chat to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The chat.
    pub name: ChatName,
    /// What was chosen for it anew.
    pub chosen: Chosen,
}

/// What the command line chose; it goes before what the chat was held with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chosen {
    /// A model.
    pub model: bool,
    /// A system prompt.
    pub system: bool,
}

/// What a chat begins with.
#[derive(Debug)]
pub(super) struct Beginning {
    setup: Option<Setup>,
    /// A chat to go on with, where nothing is kept.
    unkept: Option<StoredChat>,
    /// Where the states of its chats are kept.
    states: Option<States>,
    notices: Vec<String>,
}

/// Opens the store and finds the chat to go on with; its model and its system prompt become the configuration's,
/// unless others were chosen.
///
/// # Errors
/// There is no chat of that number.
pub(super) fn begin(
    config: &mut Config,
    paths: Option<&Paths>,
    resume: Option<Resume>,
) -> anyhow::Result<Beginning> {
    if !config.chats.save && resume.is_none() {
        return Ok(Beginning {
            setup: None,
            unkept: None,
            states: None,
            notices: Vec::new(),
        });
    }
    let usual_path = paths.map(Paths::chats_file);
    let path = config.chats.file.clone().or_else(|| usual_path.clone());
    let store = match &path {
        Some(path) => Store::open(path),
        None => Err(StoreError::NoPlace),
    };
    let mut notices = Vec::new();
    let resumed = match (resume, &store) {
        (Some(resume), Ok(opened)) => found(resume, opened, &mut notices)?,
        (Some(_), Err(_)) => {
            notices
                .push("The chat can't be opened, for the store can't; this is a new one.".into());
            None
        }
        (None, _) => None,
    };
    if let (Some(resumed), Some(resume)) = (&resumed, resume) {
        adopt(config, &resumed.chat, resume.chosen);
    }
    if !config.chats.save {
        return Ok(Beginning {
            setup: None,
            unkept: resumed.map(|resumed| resumed.chat),
            states: None,
            notices,
        });
    }
    Ok(Beginning {
        unkept: None,
        states: states(config, paths, path.as_deref()),
        setup: Some(Setup {
            path,
            usual_path,
            store,
            resumed,
        }),
        notices,
    })
}

/// Where the states of this store's chats are kept, where any are.
fn states(config: &Config, paths: Option<&Paths>, store: Option<&Path>) -> Option<States> {
    let (paths, store) = (paths?, store?);
    let budget = u64::from(config.chats.cache_disk) << 20;
    let store = std::path::absolute(store).ok()?;
    let name = Sha256::digest(store.as_os_str().as_encoded_bytes());
    (budget > 0).then(|| States {
        folder: paths.states_dir(),
        store: hex(&name[..8]),
        budget,
    })
}

fn found(
    resume: Resume,
    opened: &Opened,
    notices: &mut Vec<String>,
) -> anyhow::Result<Option<Resumed>> {
    let store = &opened.store;
    let id = match resume.name {
        ChatName::Number(id) => Some(id),
        ChatName::Last => store.latest()?,
    };
    let Some(id) = id else {
        notices.push("There is no earlier chat; this is a new one.".into());
        return Ok(None);
    };
    let lock = match store.access() {
        Access::ReadWrite => ChatLock::of(store.path(), id),
        Access::ReadOnly(_) => Locking::Taken,
    };
    // Read only now: whoever had it before has written all of it.
    let Some(chat) = store.chat(id)? else {
        bail!("there is no chat {id}; platen chats lists them");
    };
    let standing = match (lock, store.access()) {
        (Locking::Granted(lock), _) => Resumption::Itself(Some(lock)),
        (Locking::Unknown(error), Access::ReadWrite) => {
            tracing::warn!("the chat goes on without a lock: {error}");
            Resumption::Itself(None)
        }
        (Locking::Taken, Access::ReadWrite) => {
            notices.push(
                "This chat is open in another platen; what you write here goes on in a copy."
                    .into(),
            );
            Resumption::Copy
        }
        (Locking::Taken | Locking::Unknown(_), Access::ReadOnly(_)) => Resumption::Copy,
    };
    Ok(Some(Resumed { chat, standing }))
}

/// The chat's model and system prompt, where none were chosen for it.
fn adopt(config: &mut Config, chat: &StoredChat, chosen: Chosen) {
    if let (false, Some(model)) = (chosen.model, &chat.head.model) {
        config.model = Some(if model.path.is_file() {
            model.path.to_string_lossy().into_owned()
        } else {
            model.name.clone()
        });
    }
    if !chosen.system {
        config.system.clone_from(&chat.head.system);
    }
}

impl Beginning {
    /// The state of the screen with the chat in it, and what keeps it.
    pub(super) fn apply(self, mut app: App) -> (App, Option<Setup>) {
        if let Some(setup) = &self.setup {
            app = app.with_keeping();
            if let Some(states) = self.states {
                app = app.with_states(states);
            }
            if let Some(resumed) = &setup.resumed {
                app = app.with_chat(&resumed.chat);
            }
        }
        if let Some(chat) = &self.unkept {
            app = app.with_chat(chat);
        }
        let app = self.notices.into_iter().fold(app, App::with_notice);
        (app, self.setup)
    }
}
