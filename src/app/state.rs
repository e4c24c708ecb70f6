//! The states that the screen can be in, as enums: what can't be said can't go wrong.

use std::path::PathBuf;

use crate::clock::Timestamp;
use crate::engine::command::RequestId;
use crate::engine::event::{EngineError, ModelFacts};

/// What the engine holds.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineState {
    /// Nothing.
    NoModel,
    /// A model is being loaded.
    Loading(Load),
    /// A model.
    Ready(Box<ModelFacts>),
    /// Nothing, for loading failed or the engine ended.
    Failed(EngineError),
}

/// A model being loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The request.
    pub id: RequestId,
    /// The file.
    pub path: PathBuf,
    /// From 0 to 1.
    pub progress: f32,
    /// Whether it is still wanted.
    pub wish: Wish,
}

/// Whether something that runs is still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// It is.
    Wanted,
    /// The user stopped it.
    Stopped,
}

/// Where the turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing runs.
    Idle,
    /// The engine has the request; nothing was heard yet.
    Waiting(Active),
    /// The prompt is being read.
    Prefill(Active),
    /// Tokens come.
    Decoding(Active),
    /// The user stopped it; its end was not heard yet.
    Stopping(Active),
}

/// The request of a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The request.
    pub id: RequestId,
    /// When it was submitted.
    pub submitted: Timestamp,
}

impl Turn {
    /// The running request.
    #[must_use]
    pub fn active(self) -> Option<Active> {
        match self {
            Turn::Idle => None,
            Turn::Waiting(active)
            | Turn::Prefill(active)
            | Turn::Decoding(active)
            | Turn::Stopping(active) => Some(active),
        }
    }

    /// Whether it is this request's turn.
    #[must_use]
    pub fn is(self, id: RequestId) -> bool {
        self.active().is_some_and(|active| active.id == id)
    }
}

/// What lies over the chat; one at most.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// The keys and commands.
    Help {
        /// The first row on screen.
        top: usize,
    },
    /// The log.
    Log {
        /// How many of the latest lines are below the screen.
        below: usize,
    },
    /// The models of this machine.
    ModelPicker(Picker),
    /// The models that can be fetched.
    Catalogue {
        /// The chosen row.
        selected: usize,
    },
    /// Ctrl-C was pressed with nothing to stop.
    ConfirmQuit,
}

/// The models of this machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picker {
    /// The chosen row; the row after the last model opens the catalogue.
    pub selected: usize,
    /// Why the model chosen before could not be loaded.
    pub error: Option<EngineError>,
}

/// Whether the machine's models are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// It is being searched.
    Running,
    /// It was searched.
    Done,
}

/// Which model is opened when the search for models ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// None: one is loaded or the user chooses.
    Nothing,
    /// The only one, or the one that the user then chooses.
    Any,
    /// The one of this name.
    Named(String),
}

/// A model that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name in the catalogue.
    pub name: String,
    /// Its name as the user reads it.
    pub title: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its licence.
    pub licence: String,
    /// What it is good for, in a sentence.
    pub description: String,
}

/// A model being fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Its name in the catalogue.
    pub name: String,
    /// How far it is.
    pub stage: DownloadStage,
}

impl Download {
    /// When its bytes began to come, and how many were there already.
    #[must_use]
    pub fn began(&self) -> Option<(Timestamp, u64)> {
        match self.stage {
            DownloadStage::Fetching { began, .. } => Some(began),
            DownloadStage::Connecting { .. }
            | DownloadStage::Verifying
            | DownloadStage::Failed { .. } => None,
        }
    }

    /// Whether it goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self.stage {
            DownloadStage::Connecting { .. }
            | DownloadStage::Fetching { .. }
            | DownloadStage::Verifying => true,
            DownloadStage::Failed { .. } => false,
        }
    }
}

/// How far a download is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadStage {
    /// A source is being asked.
    Connecting {
        /// The source; empty before the first one.
        source: String,
    },
    /// Bytes arrive.
    Fetching {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
        /// When the first bytes came, and how many were there already.
        began: (Timestamp, u64),
    },
    /// The checksum is being computed.
    Verifying,
    /// It failed.
    Failed {
        /// What went wrong and what to do.
        message: String,
    },
}

/// Something to tell the user that is no part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How bad it is.
    pub level: NoticeLevel,
    /// What happened.
    pub text: String,
    /// What to do; empty where there is nothing.
    pub hint: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something failed.
    Error,
}

/// Where the panels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panels {
    /// Shown as the size allows.
    Shown,
    /// Hidden.
    Hidden,
}
