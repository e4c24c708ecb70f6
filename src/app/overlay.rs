//! The keys of the lists and pages that lie over the chat.

use super::App;
use super::help;
use super::message::Effect;
use super::state::{Download, Overlay};

impl App {
    /// The rows that a page moves by.
    pub(super) fn page_rows(&self) -> isize {
        isize::try_from(self.layout().page().height.saturating_sub(1))
            .unwrap_or(1)
            .max(1)
    }

    /// Moves the choice of a list or the text of a page, down where positive.
    pub(super) fn list_move(&mut self, rows: isize) {
        let (models, offers, log) = (self.models.len(), self.offers.len(), self.log.len());
        let help_end = help::last_top(&self.keymap, self.layout().page());
        match &mut self.overlay {
            Some(Overlay::Help { top }) => *top = moved(*top, rows, help_end),
            Some(Overlay::Log { below }) => {
                *below = moved(*below, rows.saturating_neg(), log.saturating_sub(1));
            }
            Some(Overlay::ModelPicker(picker)) => {
                picker.selected = moved(picker.selected, rows, models);
            }
            Some(Overlay::Catalogue { selected }) => {
                *selected = moved(*selected, rows, offers.saturating_sub(1));
            }
            Some(Overlay::ConfirmQuit) | None => {}
        }
    }

    pub(super) fn accept(&mut self) -> Vec<Effect> {
        match &self.overlay {
            Some(Overlay::ModelPicker(picker)) => {
                let row = picker.selected;
                self.accept_model(row)
            }
            Some(Overlay::Catalogue { selected }) => {
                let row = *selected;
                self.accept_offer(row)
            }
            Some(Overlay::Help { .. } | Overlay::Log { .. }) => self.close(),
            Some(Overlay::ConfirmQuit) | None => Vec::new(),
        }
    }

    pub(super) fn close(&mut self) -> Vec<Effect> {
        let downloading = self.download.as_ref().is_some_and(Download::is_running);
        match &self.overlay {
            Some(Overlay::Catalogue { .. }) if downloading => self.stop_download(),
            Some(
                Overlay::Help { .. }
                | Overlay::Log { .. }
                | Overlay::ModelPicker(_)
                | Overlay::Catalogue { .. }
                | Overlay::ConfirmQuit,
            )
            | None => {
                self.overlay = None;
                Vec::new()
            }
        }
    }
}

fn moved(from: usize, rows: isize, last: usize) -> usize {
    from.saturating_add_signed(rows).min(last)
}
