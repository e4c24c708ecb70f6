//! What Enter does with the draft: sends it, or carries out the command that it is.

use crate::keymap::Action;

use super::App;
use super::message::Effect;
use super::slash::{self, COMMANDS, Completion, Input, SlashCommand};
use super::state::{EngineState, Overlay};

impl App {
    pub(super) fn send(&mut self) -> Vec<Effect> {
        if self.composer.text().trim().is_empty() {
            return self.send_next();
        }
        self.take_completion();
        match slash::interpret(self.composer.text()) {
            Input::Text(text) => {
                self.clear_draft();
                self.submit(text)
            }
            Input::Command(command) => {
                self.clear_draft();
                self.notices.clear();
                self.run(command)
            }
            Input::Invalid(reason) => {
                self.tell(reason);
                Vec::new()
            }
        }
    }

    fn clear_draft(&mut self) {
        self.composer.submit();
        self.completion = Completion::default();
    }

    /// A command's name that is not typed out yet becomes the chosen completion.
    fn take_completion(&mut self) {
        let draft = self.composer.text();
        let is_whole = COMMANDS
            .iter()
            .any(|command| draft.strip_prefix('/') == Some(command.name));
        if is_whole || draft.contains(' ') {
            return;
        }
        if let Some(text) = self.completion.chosen().map(str::to_owned) {
            self.composer.set_text(&text);
        }
    }

    fn run(&mut self, command: SlashCommand) -> Vec<Effect> {
        match command {
            SlashCommand::New => self.new_chat(),
            SlashCommand::ShowSystem => {
                let text = match &self.system {
                    Some(text) => format!("System prompt: {text}"),
                    None => "There is no system prompt; /system TEXT sets one.".to_owned(),
                };
                self.tell(text);
                Vec::new()
            }
            SlashCommand::SetSystem(text) => {
                self.tell(match text {
                    Some(_) => "The system prompt is set; it counts from the next message on.",
                    None => "The system prompt is removed.",
                });
                self.system = text;
                Vec::new()
            }
            SlashCommand::Set { key, value } => match self.settings.set(&key, &value) {
                Ok(()) => {
                    self.tell(format!("{key} is {value} now."));
                    self.sampling_changed()
                }
                Err(reason) => {
                    self.tell(reason);
                    Vec::new()
                }
            },
            SlashCommand::ChooseModel => self.choose_model(None),
            SlashCommand::LoadModel(name) => self.open_model(name),
            SlashCommand::Regenerate => self.regenerate(),
            SlashCommand::Help => {
                self.overlay = Some(Overlay::Help { top: 0 });
                Vec::new()
            }
            SlashCommand::Save(file) => self.save(file),
            SlashCommand::Quit => self.quit(),
        }
    }

    fn new_chat(&mut self) -> Vec<Effect> {
        let mut effects = self.abandon_turn();
        effects.extend(self.begin_chat());
        self.queue.clear();
        self.meter.begin(0);
        self.transcript.to_end();
        if let EngineState::NoModel | EngineState::Failed(_) = self.engine {
            let key = self.key_name(Action::Models);
            self.tell(format!("No model is loaded; {key} shows the models."));
        }
        effects
    }
}
