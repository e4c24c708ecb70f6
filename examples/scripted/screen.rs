//! A bare screen: what is typed, what comes, and the temperature, as plain lines.

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use platen::app::message::{Effect, Msg};
use platen::clock::Timestamp;
use platen::engine::command::{Command, GenerateRequest, RequestId};
use platen::engine::event::Event;
use platen::engine::options::LoadOptions;
use platen::engine::sampling::Sampling;
use platen::engine::token::{ChatKey, PromptMessage, Role};
use platen::runtime::Program;
use ratatui::Frame;
use ratatui::style::Stylize as _;
use ratatui::text::{Line, Text};

#[derive(Default)]
pub struct Screen {
    state: &'static str,
    draft: String,
    sent: u64,
    reply: String,
    temperatures: Vec<f32>,
    sampling: Sampling,
    log: Vec<String>,
    last_token: Option<Timestamp>,
    longest_gap: Duration,
    size: (u16, u16),
}

impl Screen {
    fn send(&mut self, now: Timestamp) -> Vec<Effect> {
        self.sent += 1;
        self.reply.clear();
        self.temperatures.clear();
        let request = GenerateRequest {
            chat: ChatKey::default(),
            messages: vec![PromptMessage::new(
                Role::User,
                std::mem::take(&mut self.draft),
            )],
            sampling: self.sampling.clone(),
            stop: Vec::new(),
            max_tokens: 2048,
            submitted: now,
        };
        vec![Effect::Engine(Command::Generate {
            id: RequestId(1 + self.sent),
            request,
        })]
    }

    fn engine(&mut self, event: Event) {
        match event {
            Event::Loading { .. } => self.state = "loading",
            Event::Ready { .. } => self.state = "ready",
            Event::Token { token, .. } => {
                self.state = "generating";
                if let Some(last) = self.last_token.replace(token.at) {
                    self.longest_gap = self.longest_gap.max(token.at.since(last));
                }
                self.reply.push_str(&token.text);
                if self.temperatures.last() != Some(&token.temperature) {
                    self.temperatures.push(token.temperature);
                }
            }
            Event::Finished { .. } => self.state = "finished",
            Event::Notice { .. }
            | Event::Prefill { .. }
            | Event::Failed { .. }
            | Event::Prompt { .. }
            | Event::ReadAhead { .. }
            | Event::Restored { .. }
            | Event::NotRestored { .. }
            | Event::Cache { .. }
            | Event::Stopped => {}
        }
    }
}

impl Program for Screen {
    fn start(&mut self, _: Timestamp) -> Vec<Effect> {
        self.state = "starting";
        let load = Command::Load {
            id: RequestId(1),
            path: PathBuf::new(),
            options: LoadOptions::default(),
        };
        vec![Effect::Engine(load)]
    }

    fn update(&mut self, message: Msg, now: Timestamp) -> Vec<Effect> {
        match message {
            Msg::Key(key) => match (key.code, key.modifiers) {
                (KeyCode::Char('q'), KeyModifiers::CONTROL) => return vec![Effect::Quit],
                (KeyCode::Char('z'), KeyModifiers::CONTROL) => return vec![Effect::Suspend],
                (KeyCode::Char('o'), KeyModifiers::CONTROL) => {
                    std::hint::black_box(super::engine::overflow(0));
                }
                (KeyCode::Char('p'), KeyModifiers::CONTROL) => panic!("a key wants a panic"),
                (KeyCode::Char('y'), KeyModifiers::CONTROL) => {
                    return vec![Effect::Copy(self.reply.clone())];
                }
                (KeyCode::Char('j'), KeyModifiers::CONTROL) => self.draft.push('\n'),
                (KeyCode::Char(character), _) => self.draft.push(character),
                (KeyCode::Enter, KeyModifiers::NONE) => return self.send(now),
                (KeyCode::Esc, _) => return vec![Effect::CancelThrough(RequestId(1 + self.sent))],
                (KeyCode::Up, _) => {
                    self.sampling.nudge_temperature(1);
                    return vec![Effect::Engine(Command::SetSampling {
                        sampling: self.sampling.clone(),
                    })];
                }
                _ => {}
            },
            Msg::Paste(text) => self.draft.push_str(&text),
            Msg::Resize { width, height } => self.size = (width, height),
            Msg::Engine(event) => self.engine(event),
            Msg::Log(lines) => self.log.extend(lines.into_iter().map(|line| line.text)),
            Msg::Gauges(_) | Msg::Models(_) | Msg::Download(_) | Msg::Store(_) | Msg::Tick => {}
        }
        Vec::new()
    }

    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    fn draw(&self, frame: &mut Frame) {
        let mut lines = vec![
            Line::from(format!("state {}", self.state)).green(),
            Line::from(format!(
                "sent {} size {}x{} log {}",
                self.sent,
                self.size.0,
                self.size.1,
                self.log.len()
            )),
            Line::from(format!("temperatures {:.2?}", self.temperatures)),
            Line::from(format!("longest gap {} ms", self.longest_gap.as_millis())),
            Line::from(format!("length {}", self.draft.chars().count())),
            Line::from(format!("draft {:?}", self.draft)),
        ];
        let height = usize::from(frame.area().height).saturating_sub(lines.len());
        let reply: Vec<&str> = self.reply.lines().collect();
        lines.extend(
            reply[reply.len().saturating_sub(height)..]
                .iter()
                .map(|line| Line::from((*line).to_owned())),
        );
        frame.render_widget(Text::from(lines), frame.area());
    }
}
