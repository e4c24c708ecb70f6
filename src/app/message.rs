//! What reaches the state, and what the state asks for. `App::update` takes a [`Msg`] and returns [`Effect`]s;
//! the runtime alone carries them out.

use crossterm::event::KeyEvent;

use crate::chat::keeper::{StoreCommand, StoreEvent};
use crate::engine::command::{Command, RequestId};
use crate::engine::event::{Event, Gauges};
use crate::logging::LogLine;
use crate::models::discover::FoundModel;
use crate::models::download::DownloadEvent;

/// Something happened outside the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Msg {
    /// A key was pressed or repeats (releases never arrive here).
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has a new size, in cells.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// The engine said something.
    Engine(Event),
    /// The engine's latest values.
    Gauges(Gauges),
    /// New log lines.
    Log(Vec<LogLine>),
    /// The models found on this machine.
    Models(Vec<FoundModel>),
    /// A download moved on.
    Download(DownloadEvent),
    /// What became of something that was to be kept.
    Store(StoreEvent),
    /// Time passed; only sent while [`super::App::tick_interval`] asks for it.
    Tick,
}

/// Something the state wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send the engine a command.
    Engine(Command),
    /// Cancel the engine's requests up to this one.
    CancelThrough(RequestId),
    /// Look for models on this machine; answered by [`Msg::Models`].
    ScanModels,
    /// Fetch a model of the catalogue; answered by [`Msg::Download`].
    Download {
        /// Its name in the catalogue.
        name: String,
    },
    /// Stop the running download.
    CancelDownload,
    /// Keep something on disk; answered by [`Msg::Store`].
    Store(StoreCommand),
    /// Put text on the clipboard (OSC 52).
    Copy(String),
    /// Clear the terminal and draw everything again.
    Redraw,
    /// Stop the process as the shell's Ctrl-Z does, with the terminal given back.
    Suspend,
    /// Leave the program.
    Quit,
}
