//! Keys and pastes: each becomes an action by the keymap, or a character of the draft.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::engine::command::Command;
use crate::engine::token::Role;
use crate::keymap::Action;

use super::App;
use super::layout::Layout;
use super::message::Effect;
use super::slash::{self, Completion};
use super::state::{Overlay, Panels, Turn};

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let action = self.keymap.action(key, self.context());
        if self.overlay == Some(Overlay::ConfirmQuit) {
            self.overlay = None;
            let again = matches!(action, Some(Action::Interrupt | Action::Quit));
            let is_typed = matches!(key.code, KeyCode::Char(_)) && types(key.modifiers);
            if again || !is_typed || !self.is_unsaved() {
                return if again { self.leave() } else { Vec::new() };
            }
        }
        if let Some(action) = action {
            return self.act(action);
        }
        if let (KeyCode::Char(letter), None) = (key.code, &self.overlay)
            && types(key.modifiers)
        {
            self.edit(|composer| composer.insert_char(letter));
        }
        Vec::new()
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.overlay == Some(Overlay::ConfirmQuit) {
            self.overlay = None;
        }
        if self.overlay.is_none()
            && let Err(too_long) = self.composer.insert_str(text)
        {
            self.tell(too_long.to_string());
        }
        self.complete_anew();
        Vec::new()
    }

    fn edit(&mut self, change: impl FnOnce(&mut crate::text::Composer)) {
        change(&mut self.composer);
        self.complete_anew();
    }

    fn complete_anew(&mut self) {
        if !self.composer.text().starts_with('/') {
            self.completion = Completion::default();
            return;
        }
        let names: Vec<String> = self.models.iter().map(|model| model.name.clone()).collect();
        self.completion = Completion::of(self.composer.text(), &names);
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        let chat_rows = self.layout().chat.height;
        match action {
            Action::Send => return self.send(),
            Action::Stop => return self.escape(),
            Action::Interrupt => return self.interrupt(),
            Action::Quit if self.composer.is_empty() => return self.quit(),
            Action::Quit | Action::Delete => self.edit(crate::text::Composer::delete),
            Action::Regenerate => return self.regenerate(),
            Action::CopyReply => return self.copy_reply(),
            Action::Complete => self.complete(),
            Action::Warmer => return self.nudge(1),
            Action::Cooler => return self.nudge(-1),
            Action::ScrollPageUp => self.transcript.page_up(chat_rows),
            Action::ScrollPageDown => self.transcript.page_down(chat_rows),
            Action::ScrollToStart => self.transcript.to_start(chat_rows),
            Action::ScrollToEnd => self.transcript.to_end(),
            Action::Help => self.toggle(Overlay::Help { top: 0 }),
            Action::Log => self.toggle(Overlay::Log { below: 0 }),
            Action::Panels => {
                self.panels = match self.panels {
                    Panels::Shown => Panels::Hidden,
                    Panels::Hidden => Panels::Shown,
                }
            }
            Action::Models => return self.choose_model(None),
            Action::Suspend => return vec![Effect::Suspend],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Newline => self.edit(crate::text::Composer::newline),
            Action::CursorUp => self.up(),
            Action::CursorDown => self.down(),
            Action::CursorLeft => self.composer.left(),
            Action::CursorRight => self.composer.right(),
            Action::WordLeft => self.composer.word_left(),
            Action::WordRight => self.composer.word_right(),
            Action::LineStart => self.composer.home(),
            Action::LineEnd if self.composer.is_empty() => self.transcript.to_end(),
            Action::LineEnd => self.composer.end(),
            Action::Backspace => self.edit(crate::text::Composer::backspace),
            Action::DeleteWord => self.edit(crate::text::Composer::kill_word_back),
            Action::DeleteToStart => self.edit(crate::text::Composer::kill_to_start),
            Action::DeleteToEnd => self.edit(crate::text::Composer::kill_to_end),
            Action::Yank => {
                if let Err(too_long) = self.composer.yank() {
                    self.tell(too_long.to_string());
                }
                self.complete_anew();
            }
            Action::Undo => {
                self.composer.undo();
                self.complete_anew();
            }
            Action::ListUp => self.list_move(-1),
            Action::ListDown => self.list_move(1),
            Action::ListPageUp => self.list_move(-self.page_rows()),
            Action::ListPageDown => self.list_move(self.page_rows()),
            Action::ListStart => self.list_move(isize::MIN),
            Action::ListEnd => self.list_move(isize::MAX),
            Action::Accept => return self.accept(),
            Action::Close => return self.close(),
        }
        Vec::new()
    }

    /// Esc: the completions go first, then the reply stops, then a held queue comes back.
    fn escape(&mut self) -> Vec<Effect> {
        if !self.completion.is_empty() {
            self.completion = Completion::default();
        } else if self.turn != Turn::Idle {
            return self.stop_turn();
        } else if self.queue.is_empty() {
            self.notices.clear();
        } else {
            self.recall();
        }
        Vec::new()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        let mut effects = self.stop_loading();
        if effects.is_empty() {
            effects = self.stop_turn();
        }
        if effects.is_empty() && self.overlay.is_none() && !self.composer.is_empty() {
            self.edit(|composer| composer.set_text(""));
        } else if effects.is_empty() {
            self.overlay = Some(Overlay::ConfirmQuit);
        }
        effects
    }

    fn toggle(&mut self, overlay: Overlay) {
        let is_open = self
            .overlay
            .as_ref()
            .is_some_and(|open| std::mem::discriminant(open) == std::mem::discriminant(&overlay));
        self.overlay = (!is_open).then_some(overlay);
    }

    fn complete(&mut self) {
        if let Some(text) = self.completion.chosen().map(str::to_owned) {
            self.edit(|composer| composer.set_text(&text));
        }
    }

    fn up(&mut self) {
        let width = Layout::composer_width(self.size, self.panels);
        if !self.completion.is_empty() {
            self.completion.move_by(-1);
        } else if self.composer.is_empty() && !self.queue.is_empty() {
            self.recall();
        } else if !self.composer.up(width) {
            self.composer.history_prev();
        }
    }

    fn down(&mut self) {
        let width = Layout::composer_width(self.size, self.panels);
        if !self.completion.is_empty() {
            self.completion.move_by(1);
        } else if !self.composer.down(width) {
            self.composer.history_next();
        }
    }

    /// Brings the message queued last back into the draft, in front of what stands there.
    fn recall(&mut self) {
        if let Some(text) = self.queue.pop_back() {
            let draft = self.composer.text();
            let gap = if draft.is_empty() { "" } else { "\n" };
            let whole = format!("{}{gap}{draft}", slash::draft_of(&text));
            self.composer.set_text(&whole);
        }
    }

    fn nudge(&mut self, steps: i32) -> Vec<Effect> {
        self.settings.nudge_temperature(steps);
        self.sampling_changed()
    }

    /// A running reply gets the new sampling from its next token on.
    pub(super) fn sampling_changed(&mut self) -> Vec<Effect> {
        match self.turn {
            Turn::Idle | Turn::Stopping(_) => Vec::new(),
            Turn::Waiting(_) | Turn::Prefill(_) | Turn::Decoding(_) => {
                let sampling = self.settings.sampling();
                vec![Effect::Engine(Command::SetSampling { sampling })]
            }
        }
    }

    fn copy_reply(&mut self) -> Vec<Effect> {
        let reply = self
            .conversation
            .messages()
            .iter()
            .rfind(|message| message.role == Role::Assistant);
        let Some(reply) = reply else {
            self.tell("There is no reply to copy yet.");
            return Vec::new();
        };
        let text = reply.text[reply.thinking_len..].trim().to_owned();
        self.tell("The reply is copied.");
        vec![Effect::Copy(text)]
    }
}

/// Whether a character pressed with these is typed: `AltGr` comes as Ctrl and Alt together.
fn types(modifiers: KeyModifiers) -> bool {
    let both = KeyModifiers::CONTROL | KeyModifiers::ALT;
    modifiers.contains(both) || !modifiers.intersects(both)
}
