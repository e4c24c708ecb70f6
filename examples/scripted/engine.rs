//! An engine without a model: it loads, counts tokens at a given rate, and fails in a given way at a given moment.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use platen::clock::{Clock as _, SystemClock};
use platen::engine::EngineOutput;
use platen::engine::command::{Command, GenerateRequest, RequestId};
use platen::engine::event::{
    CacheSnapshot, Event, Gauges, MemoryKind, ModelFacts, Phase, PrefillProgress, SampledToken,
    StopReason, TemplateSource,
};
use platen::engine::options::{FlashAttention, KvType};
use platen::engine::sampling::SamplingPatch;
use platen::engine::stats::{CacheStats, SamplingStats, Threads, TurnStats};
use platen::engine::token::{TokenId, TokenRun};
use platen::runtime::EngineLink;
use tokio::sync::{mpsc, watch};

/// What the engine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Panic,
    Abort,
    GgmlAbort,
    StackOverflow,
    /// Ends as an exception of C++ does that nobody catches.
    CppException,
    /// Prints on standard output and standard error, itself and through a child process.
    Noise,
    /// Never comes back, whatever it is asked.
    Hang,
}

/// When it does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Idle,
    Loading,
    Generating,
}

/// The engine's behaviour: `load_ms=0,rate=100,tokens=50,at=idle|loading|generating,fault=…`.
/// `SCRIPT_REPLY` names a file with what is said instead of counted words, a token for each character.
#[derive(Debug, Clone)]
pub struct Script {
    load: Duration,
    tokens_per_second: u32,
    tokens: u32,
    reply: Vec<char>,
    moment: Moment,
    fault: Fault,
}

impl Script {
    pub fn of_environment() -> Script {
        let text = std::env::var("SCRIPT").unwrap_or_default();
        let mut script = Script {
            load: Duration::ZERO,
            tokens_per_second: 100,
            tokens: 50,
            reply: Vec::new(),
            moment: Moment::Idle,
            fault: Fault::None,
        };
        for (key, value) in text.split(',').filter_map(|part| part.split_once('=')) {
            let number = || {
                value
                    .parse()
                    .unwrap_or_else(|_| panic!("SCRIPT: {key}={value} is no number"))
            };
            match (key, value) {
                ("load_ms", _) => script.load = Duration::from_millis(u64::from(number())),
                ("rate", _) => script.tokens_per_second = number(),
                ("tokens", _) => script.tokens = number(),
                ("at", "idle") => script.moment = Moment::Idle,
                ("at", "loading") => script.moment = Moment::Loading,
                ("at", "generating") => script.moment = Moment::Generating,
                ("fault", "panic") => script.fault = Fault::Panic,
                ("fault", "abort") => script.fault = Fault::Abort,
                ("fault", "ggml-abort") => script.fault = Fault::GgmlAbort,
                ("fault", "stack-overflow") => script.fault = Fault::StackOverflow,
                ("fault", "cpp-exception") => script.fault = Fault::CppException,
                ("fault", "noise") => script.fault = Fault::Noise,
                ("fault", "hang") => script.fault = Fault::Hang,
                _ => panic!("SCRIPT: {key}={value} means nothing"),
            }
        }
        if let Some(file) = std::env::var_os("SCRIPT_REPLY") {
            let reply = std::fs::read_to_string(file).expect("SCRIPT_REPLY is a file of text");
            script.reply = reply.chars().collect();
            script.tokens = u32::try_from(script.reply.len()).unwrap_or(u32::MAX);
        }
        script
    }

    fn word(&self, number: u32) -> String {
        match self
            .reply
            .get(usize::try_from(number).unwrap_or(usize::MAX))
        {
            Some(character) => character.to_string(),
            None if number % 8 == 7 => format!("w{number}\n"),
            None => format!("w{number} "),
        }
    }

    fn reach(&self, moment: Moment) {
        if self.moment == moment {
            self.fault.happen();
        }
    }
}

impl Fault {
    fn happen(self) {
        match self {
            Fault::None => {}
            Fault::Panic => panic!("the script wants a panic"),
            Fault::Abort => std::process::abort(),
            Fault::GgmlAbort => ggml_abort(),
            Fault::StackOverflow => {
                std::hint::black_box(overflow(0));
            }
            Fault::CppException => uncaught_exception(),
            Fault::Noise => {
                println!("FOREIGN-STDOUT");
                eprintln!("FOREIGN-STDERR");
                let _ = Process::new("sh")
                    .args(["-c", "echo FOREIGN-CHILD; echo FOREIGN-CHILD >&2"])
                    .status();
            }
            Fault::Hang => loop {
                thread::sleep(Duration::from_mins(1));
            },
        }
    }
}

/// Asks llama.cpp for a key that isn't there, which it answers by aborting.
fn ggml_abort() {
    let path = std::env::temp_dir().join(format!("platen-empty-{}.gguf", std::process::id()));
    let header = [b"GGUF".as_slice(), &3u32.to_le_bytes(), &[0; 16]].concat();
    std::fs::write(&path, header).expect("the temporary folder is writable");
    let context = llama_cpp_2::gguf::GgufContext::from_file(&path);
    let _ = std::fs::remove_file(&path);
    let _ = context.expect("an empty GGUF file is valid").key_at(12_345);
}

/// What the C++ runtime calls for an exception that nobody catches; llama.cpp brings the runtime along.
#[expect(unsafe_code, reason = "a function of the C++ runtime")]
fn uncaught_exception() {
    unsafe extern "C" {
        #[link_name = "_ZSt9terminatev"]
        fn terminate() -> !;
    }
    // SAFETY: it ends the process.
    unsafe { terminate() }
}

#[expect(unconditional_recursion, reason = "it is meant to end the stack")]
pub fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + frame[511]
}

/// The way to the engine; dropping it ends the thread.
pub struct Link {
    commands: Sender<Command>,
    cancelled: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl EngineLink for Link {
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    fn cancel_through(&self, id: RequestId) {
        self.cancelled.fetch_max(id.0, Ordering::SeqCst);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cancel_through(RequestId(u64::MAX));
        self.send(Command::Shutdown);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn spawn(script: Script) -> (Link, EngineOutput) {
    let (commands, inbox) = channel();
    let (events, event_output) = mpsc::unbounded_channel();
    let (gauges, gauge_output) = watch::channel(Gauges::default());
    let cancelled = Arc::new(AtomicU64::new(0));
    let worker = Worker {
        script,
        inbox,
        events,
        gauges,
        cancelled: cancelled.clone(),
    };
    let thread = thread::Builder::new()
        .name("engine".into())
        .spawn(move || worker.work());
    let thread = Some(thread.expect("a thread can be started"));
    (
        Link {
            commands,
            cancelled,
            thread,
        },
        EngineOutput {
            events: event_output,
            gauges: gauge_output,
        },
    )
}

struct Worker {
    script: Script,
    inbox: Receiver<Command>,
    events: mpsc::UnboundedSender<Event>,
    gauges: watch::Sender<Gauges>,
    cancelled: Arc<AtomicU64>,
}

impl Worker {
    fn work(&self) {
        while let Ok(command) = self.inbox.recv() {
            match command {
                Command::Load { id, path, .. } => self.load(id, &path),
                Command::Generate { id, request } => self.generate(id, &request),
                Command::SetSampling { .. }
                | Command::Tokenize { .. }
                | Command::ReadAhead { .. }
                | Command::Save { .. }
                | Command::Restore { .. }
                | Command::Clear => {}
                Command::Shutdown => break,
            }
        }
        self.say(Event::Stopped);
    }

    fn say(&self, event: Event) {
        let _ = self.events.send(event);
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.cancelled.load(Ordering::SeqCst) >= id.0
    }

    fn load(&self, id: RequestId, path: &Path) {
        self.phase(Phase::Loading);
        let start = Instant::now();
        self.say(Event::Loading { id, progress: 0.0 });
        self.script.reach(Moment::Loading);
        while start.elapsed() < self.script.load && !self.is_cancelled(id) {
            thread::sleep(Duration::from_millis(10));
            let progress = start.elapsed().as_secs_f32() / self.script.load.as_secs_f32();
            self.say(Event::Loading {
                id,
                progress: progress.min(1.0),
            });
        }
        self.say(Event::Ready {
            id,
            facts: Box::new(facts(path)),
            load: start.elapsed(),
        });
        self.phase(Phase::Idle);
        self.script.reach(Moment::Idle);
    }

    fn generate(&self, id: RequestId, request: &GenerateRequest) {
        let mut sampling = request.sampling.clone();
        let progress = PrefillProgress {
            prompt_tokens: 10,
            read_tokens: 10,
            ..PrefillProgress::default()
        };
        self.say(Event::Prefill { id, progress });
        self.phase(Phase::Decode);
        let mut ids = Vec::new();
        let mut reply = String::new();
        let start = Instant::now();
        let mut stop = StopReason::Eog;
        while (ids.len() as u64) < u64::from(self.script.tokens) {
            let number = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let due =
                start + Duration::from_secs(1) * number / self.script.tokens_per_second.max(1);
            let mut live = None;
            match self
                .inbox
                .recv_timeout(due.saturating_duration_since(Instant::now()))
            {
                Ok(Command::SetSampling { sampling: changed }) => {
                    sampling = changed;
                    live = Some(Box::new(sampling.clone()));
                }
                Ok(Command::Shutdown) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_cancelled(id) {
                stop = StopReason::Cancelled;
                break;
            }
            let text = self.script.word(number);
            let _ = write!(reply, "{text}");
            let token = TokenId(i32::try_from(number).unwrap_or(i32::MAX));
            ids.push(token);
            let token = SampledToken {
                sampling: live,
                ..sampled(token, text, sampling.temperature)
            };
            self.say(Event::Token { id, token });
            if ids.len() == 5 {
                self.script.reach(Moment::Generating);
            }
        }
        let tokens = TokenRun {
            ids,
            text_len: reply.len(),
        };
        let stats = Box::new(stats(&tokens, stop, sampling.temperature));
        self.say(Event::Finished {
            id,
            stop,
            tail: String::new(),
            tail_thinking_len: 0,
            tokens,
            stats,
        });
        self.say(Event::Cache {
            cache: CacheSnapshot {
                size: 8192,
                ..CacheSnapshot::default()
            },
        });
        self.phase(Phase::Idle);
    }

    fn phase(&self, phase: Phase) {
        self.gauges.send_replace(Gauges {
            phase,
            ..Gauges::default()
        });
    }
}

fn sampled(id: TokenId, text: String, temperature: f32) -> SampledToken {
    SampledToken {
        id,
        bytes: text.clone().into_bytes(),
        text,
        thinking_len: 0,
        probability: 0.5,
        alternatives: Vec::new(),
        at: SystemClock.now(),
        temperature,
        sampling: None,
    }
}

fn facts(path: &Path) -> ModelFacts {
    ModelFacts {
        name: "Scripted".into(),
        path: path.to_owned(),
        architecture: "llama".into(),
        quantization: "Q4_1".into(),
        parameters: 1_000_000,
        model_bytes: 1_000_000,
        layers: 2,
        vocab: 1000,
        vocabulary: "scripted".into(),
        fingerprint: "scripted".into(),
        context_train: 8192,
        context: 8192,
        batch: 512,
        ubatch: 512,
        threads_prefill: 2,
        threads_decode: 2,
        type_k: KvType::F16,
        type_v: KvType::F16,
        flash_attention: FlashAttention::Auto,
        memory: MemoryKind::Attention,
        kv_bytes_per_token: 1024,
        state_bytes: 0,
        kv_capacity_bytes: 8 << 20,
        template: TemplateSource::ChatMl,
        recommended: SamplingPatch::default(),
    }
}

fn stats(tokens: &TokenRun, stop: StopReason, temperature: f32) -> TurnStats {
    TurnStats {
        model: "Scripted".into(),
        prompt_tokens: 10,
        reused_tokens: 0,
        read_tokens: 10,
        read_ahead_tokens: 0,
        reread_reason: None,
        reread_tokens: 0,
        generated_tokens: u32::try_from(tokens.ids.len()).unwrap_or(u32::MAX),
        stop,
        load_ms: 0.0,
        ttft_ms: None,
        queue_ms: 0.0,
        template_ms: 0.0,
        prefill_ms: 0.0,
        first_sample_ms: None,
        prefill_tok_s: None,
        decode_tok_s: None,
        gap_ms: None,
        saved_ms: None,
        cache: CacheStats {
            used: 10,
            size: 8192,
            bytes: 10 * 1024,
            capacity_bytes: 8 << 20,
            type_k: KvType::F16,
            type_v: KvType::F16,
        },
        threads: Threads {
            prefill: 2,
            decode: 2,
        },
        sampling: SamplingStats {
            temperature,
            seed: 1,
        },
    }
}
