//! Somebody at the keyboard, an engine that says what it is told to, and a terminal that can be read.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use platen::app::App;
use platen::app::message::{Effect, Msg};
use platen::app::state::Offer;
use platen::clock::{Clock, FakeClock};
use platen::config::Config;
use platen::engine::command::{Command, GenerateRequest, RequestId};
use platen::engine::event::{
    Alternative, CacheSnapshot, CacheSpan, Event, Gauges, MemoryKind, ModelFacts, Phase,
    PrefillProgress, SampledToken, StopReason, TemplateSource,
};
use platen::engine::options::{FlashAttention, KvType};
use platen::engine::sampling::{Sampling, SamplingPatch};
use platen::engine::stats::{CacheStats, Gaps, SamplingStats, Threads, TurnStats};
use platen::engine::token::{Role, TokenId, TokenRun};
use platen::models::discover::FoundModel;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

pub struct Person {
    pub app: App,
    pub clock: FakeClock,
    pub effects: Vec<Effect>,
    size: (u16, u16),
    sampled: Vec<TokenId>,
    text: String,
    temperature: f32,
}

impl Person {
    /// In front of a fresh screen, nothing started.
    pub fn at(width: u16, height: u16, config: &Config) -> Self {
        let app = App::new(config, (width, height)).with_offers(offers());
        Person {
            app,
            clock: FakeClock::default(),
            effects: Vec::new(),
            size: (width, height),
            sampled: Vec::new(),
            text: String::new(),
            temperature: 0.7,
        }
    }

    /// In front of a screen that loads the configured model.
    pub fn loading(width: u16, height: u16) -> Self {
        let config = Config {
            model: Some("models/SmolLM2-135M-Instruct.gguf".into()),
            ..Config::default()
        };
        let mut person = Person::at(width, height, &config);
        person.start();
        person
    }

    /// In front of a screen with a model.
    pub fn ready(width: u16, height: u16) -> Self {
        let mut person = Person::loading(width, height);
        let id = person.load_id();
        person.hear(Event::Ready {
            id,
            facts: Box::new(facts()),
            load: Duration::from_millis(900),
        });
        person.hear(cache(0, &[]));
        person.effects.clear();
        person
    }

    pub fn start(&mut self) {
        let effects = self.app.start(self.clock.now());
        self.effects.extend(effects);
    }

    /// Before anything happens, the state is changed like this.
    pub fn alter(&mut self, change: impl FnOnce(App) -> App) {
        let app = std::mem::replace(&mut self.app, App::new(&Config::default(), (1, 1)));
        self.app = change(app);
    }

    pub fn tell(&mut self, msg: Msg) {
        let effects = self.app.update(msg, self.clock.now());
        self.effects.extend(effects);
    }

    pub fn hear(&mut self, event: Event) {
        self.tell(Msg::Engine(event));
    }

    pub fn press(&mut self, code: KeyCode) {
        self.press_with(KeyModifiers::NONE, code);
    }

    pub fn press_with(&mut self, modifiers: KeyModifiers, code: KeyCode) {
        self.tell(Msg::Key(KeyEvent::new(code, modifiers)));
    }

    pub fn ctrl(&mut self, letter: char) {
        self.press_with(KeyModifiers::CONTROL, KeyCode::Char(letter));
    }

    pub fn type_str(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
    }

    /// Types and presses Enter.
    pub fn say(&mut self, text: &str) {
        self.type_str(text);
        self.press(KeyCode::Enter);
    }

    pub fn wait(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.tell(Msg::Resize { width, height });
    }

    /// The screen's cells.
    pub fn buffer(&self) -> Buffer {
        let (width, height) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| platen::ui::draw(frame, &self.app))
            .unwrap();
        terminal.backend().buffer().clone()
    }

    /// What is on the screen, row by row, without the blanks at the end of rows.
    pub fn screen(&self) -> String {
        let (width, height) = self.size;
        let buffer = self.buffer();
        let mut screen = String::new();
        for y in 0..height {
            let mut row = String::new();
            let mut covered = 0;
            for x in 0..width {
                let symbol = buffer[(x, y)].symbol();
                if covered == 0 {
                    row.push_str(symbol);
                }
                covered = platen::text::width(symbol).max(covered).saturating_sub(1);
            }
            screen.push_str(row.trim_end());
            screen.push('\n');
        }
        screen
    }

    #[track_caller]
    pub fn sees(&self, text: &str) {
        let screen = self.screen();
        assert!(
            screen.contains(text),
            "'{text}' is not on the screen:\n{screen}"
        );
    }

    #[track_caller]
    pub fn sees_not(&self, text: &str) {
        let screen = self.screen();
        assert!(
            !screen.contains(text),
            "'{text}' is on the screen:\n{screen}"
        );
    }

    /// The id of the last load.
    pub fn load_id(&self) -> RequestId {
        let ids = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Engine(Command::Load { id, .. }) => Some(*id),
            _ => None,
        });
        ids.unwrap()
    }

    /// The requests for a reply, oldest first.
    pub fn requests(&self) -> Vec<(RequestId, &GenerateRequest)> {
        let requests = self.effects.iter().filter_map(|effect| match effect {
            Effect::Engine(Command::Generate { id, request }) => Some((*id, request)),
            _ => None,
        });
        requests.collect()
    }

    /// What the last request says, message by message.
    pub fn last_prompt(&self) -> Vec<(Role, String)> {
        let requests = self.requests();
        let (_, request) = requests.last().unwrap();
        request
            .messages
            .iter()
            .map(|message| (message.role, message.text.clone()))
            .collect()
    }

    pub fn turn_id(&self) -> RequestId {
        self.requests().last().unwrap().0
    }

    /// The prompt is read so far, `millis` after the first prefill call.
    pub fn prefill(&mut self, read: u32, to_read: u32, millis: u64) {
        let id = self.turn_id();
        let progress = PrefillProgress {
            prompt_tokens: 1_147 + to_read,
            reused_tokens: 1_147,
            read_ahead_tokens: 0,
            read_tokens: read,
            to_read_tokens: to_read,
            elapsed: Duration::from_millis(millis),
            queue: Duration::from_millis(1),
            template: Duration::from_millis(2),
            reread: None,
        };
        self.tell(Msg::Gauges(Gauges {
            phase: Phase::Prefill,
            cache_used: 1_147 + read,
            ..Gauges::default()
        }));
        self.hear(Event::Prefill { id, progress });
    }

    /// A token comes.
    pub fn token(&mut self, text: &str) {
        self.token_at(text, 0.7);
    }

    /// A token of the model's thinking comes.
    pub fn thought(&mut self, text: &str) {
        let token = self.sample(text, 0.7);
        let id = self.turn_id();
        let token = SampledToken {
            thinking_len: token.text.len(),
            ..token
        };
        self.hear(Event::Token { id, token });
    }

    pub fn token_at(&mut self, text: &str, temperature: f32) {
        let token = self.sample(text, temperature);
        let id = self.turn_id();
        self.hear(Event::Token { id, token });
        let cache_used = 1_204 + u32::try_from(self.sampled.len()).unwrap();
        self.tell(Msg::Gauges(Gauges {
            phase: Phase::Decode,
            prefill_tok_s: Some(191.3),
            decode_tok_s: Some(61.2),
            cache_used,
        }));
    }

    fn sample(&mut self, text: &str, temperature: f32) -> SampledToken {
        let id = TokenId(i32::try_from(self.sampled.len()).unwrap());
        self.sampled.push(id);
        self.text.push_str(text);
        let sampling = (temperature.to_bits() != self.temperature.to_bits()).then(|| {
            Box::new(Sampling {
                temperature,
                ..Sampling::default()
            })
        });
        self.temperature = temperature;
        SampledToken {
            id,
            bytes: text.as_bytes().to_vec(),
            text: text.to_owned(),
            thinking_len: 0,
            probability: 0.81,
            alternatives: vec![
                alternative(id, text, 0.81, 0.92),
                alternative(TokenId(9_001), " the", 0.06, 0.05),
                alternative(TokenId(9_002), "\n", 0.04, 0.03),
                alternative(TokenId(9_003), " a", 0.01, 0.0),
            ],
            at: self.clock.now(),
            temperature,
            sampling,
        }
    }

    /// The reply ends.
    pub fn finish(&mut self, stop: StopReason) {
        let id = self.turn_id();
        let tokens = TokenRun {
            ids: std::mem::take(&mut self.sampled),
            text_len: self.text.len(),
        };
        self.text.clear();
        let generated = u32::try_from(tokens.ids.len()).unwrap();
        let stats = Box::new(stats(stop, generated));
        self.hear(Event::Finished {
            id,
            stop,
            tail: String::new(),
            tail_thinking_len: 0,
            tokens,
            stats,
        });
        self.hear(cache(
            1_204 + generated,
            &[
                (Some(Role::System), 120),
                (Some(Role::User), 300),
                (Some(Role::Assistant), 727),
                (Some(Role::User), 57),
                (Some(Role::Assistant), generated),
            ],
        ));
    }

    /// A whole turn of two tokens.
    pub fn turn(&mut self, question: &str, answer: [&str; 2]) {
        self.say(question);
        self.prefill(57, 57, 298);
        self.wait(312);
        for token in answer {
            self.token(token);
            self.wait(16);
        }
        self.finish(StopReason::Eog);
    }
}

fn alternative(id: TokenId, text: &str, probability: f32, chance: f32) -> Alternative {
    Alternative {
        id,
        text: text.to_owned(),
        probability,
        chance,
    }
}

pub fn cache(used: u32, spans: &[(Option<Role>, u32)]) -> Event {
    let spans = spans
        .iter()
        .map(|(role, tokens)| CacheSpan {
            role: *role,
            tokens: *tokens,
        })
        .collect();
    let (bytes, capacity_bytes) = (u64::from(used) * 23_552, 8_192 * 23_552);
    Event::Cache {
        cache: CacheSnapshot {
            used,
            size: 8_192,
            bytes,
            capacity_bytes,
            spans,
            ..CacheSnapshot::default()
        },
    }
}

pub fn facts() -> ModelFacts {
    ModelFacts {
        name: "SmolLM2-135M-Instruct".into(),
        path: "models/SmolLM2-135M-Instruct.gguf".into(),
        architecture: "llama".into(),
        quantization: "Q4_1".into(),
        parameters: 134_515_008,
        model_bytes: 98_348_032,
        layers: 30,
        vocab: 49_152,
        vocabulary: "scripted".into(),
        fingerprint: "scripted".into(),
        context_train: 8_192,
        context: 8_192,
        batch: 512,
        ubatch: 512,
        threads_prefill: 4,
        threads_decode: 4,
        type_k: KvType::F16,
        type_v: KvType::F16,
        flash_attention: FlashAttention::Auto,
        memory: MemoryKind::Attention,
        kv_bytes_per_token: 23_552,
        state_bytes: 0,
        kv_capacity_bytes: 8_192 * 23_552,
        template: TemplateSource::Model,
        recommended: SamplingPatch::default(),
    }
}

pub fn stats(stop: StopReason, generated: u32) -> TurnStats {
    TurnStats {
        model: "SmolLM2-135M-Instruct".into(),
        prompt_tokens: 1_204,
        reused_tokens: 1_147,
        read_tokens: 57,
        read_ahead_tokens: 0,
        reread_reason: None,
        reread_tokens: 0,
        generated_tokens: generated,
        stop,
        load_ms: 900.0,
        ttft_ms: None,
        queue_ms: 1.0,
        template_ms: 2.0,
        prefill_ms: 298.0,
        first_sample_ms: Some(11.0),
        prefill_tok_s: Some(191.3),
        decode_tok_s: (generated > 1).then_some(61.2),
        gap_ms: (generated > 1).then_some(Gaps {
            p50: 16.0,
            p95: 19.0,
            p99: 31.0,
        }),
        saved_ms: Some(5_997.0),
        cache: CacheStats {
            used: 1_204 + generated,
            size: 8_192,
            bytes: u64::from(1_204 + generated) * 23_552,
            capacity_bytes: 8_192 * 23_552,
            type_k: KvType::F16,
            type_v: KvType::F16,
        },
        threads: Threads {
            prefill: 4,
            decode: 4,
        },
        sampling: SamplingStats {
            temperature: 0.7,
            seed: 42,
        },
    }
}

pub fn model(name: &str) -> FoundModel {
    FoundModel {
        name: name.into(),
        path: format!("/models/{name}.gguf").into(),
        bytes: 98_348_032,
        architecture: "llama".into(),
        quantization: "Q4_1".into(),
        source: "folder".into(),
        problem: None,
    }
}

fn offers() -> Vec<Offer> {
    let offer = |name: &str, title: &str, megabytes: u64, description: &str| Offer {
        name: name.into(),
        title: title.into(),
        bytes: megabytes << 20,
        licence: "Apache-2.0".into(),
        description: description.into(),
    };
    vec![
        offer(
            "smollm2-135m",
            "SmolLM2 135M Instruct",
            94,
            "Tiny and quick; good for a first look.",
        ),
        offer("qwen3-0.6b", "Qwen3 0.6B", 484, "Thinks before it answers."),
    ]
}
