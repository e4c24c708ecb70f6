//! The engine against a bare llama.cpp loop: the same model, settings, chunks, sampler chain and depth, in one run,
//! in turns. Prints medians and the ratio; nothing here passes or fails by time.
//!
//! usage: `PLATEN_TEST_MODEL=model.gguf cargo bench --bench engine [-- ROUNDS]`
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    missing_docs,
    reason = "a bench stops where it fails; the bare loop is C"
)]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use llama_cpp_sys_2 as sys;
use platen::clock::{Clock, SystemClock};
use platen::engine::command::{Command, GenerateRequest, RequestId};
use platen::engine::event::Event;
use platen::engine::local::LocalLoader;
use platen::engine::options::LoadOptions;
use platen::engine::sampling::Sampling;
use platen::engine::stats::TurnStats;
use platen::engine::token::{ChatKey, PromptMessage, Role};
use platen::engine::{EngineHandle, EngineOutput};

const CONTEXT: u32 = 2048;
const BATCH: u32 = 512;
const THREADS: u32 = 2;
/// Words of the prompt: about as many tokens.
const PROMPT_WORDS: usize = 600;
const REPLY_TOKENS: u32 = 128;
const CANCELS: u64 = 30;

fn main() {
    let Some(path) = std::env::var_os("PLATEN_TEST_MODEL").map(PathBuf::from) else {
        println!("PLATEN_TEST_MODEL names no model; nothing to measure");
        return;
    };
    let rounds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(9);
    let mut engine = Engine::new(&path);
    let mut bare = Bare::new(&path);
    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        // Whoever goes second alternates, so that a machine that slows down hits both alike.
        let (ours, theirs) = if round % 2 == 0 {
            let ours = engine.turn(round);
            (ours, bare.turn(ours.2))
        } else {
            let theirs = bare.turn(bare.last_prompt);
            (engine.turn(round), theirs)
        };
        // The first round warms both up.
        if round > 0 {
            prefill.push((ours.0, theirs.0));
            decode.push((ours.1, theirs.1));
        }
    }
    cancels(&mut engine);
    report("prefill", &prefill);
    report("decode", &decode);
}

/// From a cancel at a random moment of a prefill to the end of the turn.
fn cancels(engine: &mut Engine) {
    let mut latencies: Vec<f64> = (0..CANCELS)
        .map(|at| {
            let id = engine.begin(1_000_000 + at);
            std::thread::sleep(Duration::from_millis(100 + at * 37 % 900));
            let asked = Instant::now();
            engine.handle.cancel_through(id);
            loop {
                match engine.output.events.blocking_recv().unwrap() {
                    Event::Finished { id: ended, .. } if ended == id => break,
                    Event::Failed { error, .. } => panic!("{error}"),
                    _ => {}
                }
            }
            asked.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    latencies.sort_by(f64::total_cmp);
    println!(
        "cancel   p50 {:.1} ms   most {:.1} ms   over {CANCELS} cancels in mid-prefill",
        median(latencies.clone()),
        latencies[latencies.len() - 1]
    );
}

fn report(name: &str, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let theirs = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!(
        "{name:8} engine {ours:8.1} tok/s   bare {theirs:8.1} tok/s   ratio of medians {:.3}   median of ratios {ratio:.3}   rounds {}",
        ours / theirs,
        pairs.len()
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Engine {
    handle: EngineHandle,
    output: EngineOutput,
}

impl Engine {
    fn new(path: &Path) -> Engine {
        let (handle, mut output) =
            platen::engine::spawn(Box::new(LocalLoader::default()), Arc::new(SystemClock)).unwrap();
        let options = LoadOptions {
            context: Some(CONTEXT),
            batch: Some(BATCH),
            ubatch: Some(BATCH),
            threads: Some(THREADS),
            ..LoadOptions::default()
        };
        handle.send(Command::Load {
            id: RequestId(1),
            path: path.to_owned(),
            options,
        });
        loop {
            match output.events.blocking_recv().unwrap() {
                Event::Ready { .. } => break,
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
        Engine { handle, output }
    }

    /// Prefill and decode rates of a turn on an empty cache, and the prompt's length.
    fn turn(&mut self, round: u64) -> (f64, f64, usize) {
        self.begin(round);
        self.finish()
    }

    fn begin(&mut self, round: u64) -> RequestId {
        self.handle.send(Command::Clear);
        let text = format!("{round} {}", "lorem ipsum dolor ".repeat(PROMPT_WORDS / 3));
        let request = GenerateRequest {
            chat: ChatKey::default(),
            messages: vec![PromptMessage::new(Role::User, text)],
            sampling: Sampling {
                seed: Some(1),
                ..Sampling::default()
            },
            stop: Vec::new(),
            max_tokens: REPLY_TOKENS,
            submitted: SystemClock.now(),
        };
        let id = RequestId(round + 2);
        self.handle.send(Command::Generate { id, request });
        id
    }

    fn finish(&mut self) -> (f64, f64, usize) {
        let stats: TurnStats = loop {
            match self.output.events.blocking_recv().unwrap() {
                Event::Finished { stats, .. } => break *stats,
                Event::Failed { error, .. } => panic!("{error}"),
                // As the program does: once tokens stream, they are taken a frame at a time.
                Event::Token { .. } => std::thread::sleep(Duration::from_millis(33)),
                _ => {}
            }
            while let Ok(event) = self.output.events.try_recv() {
                if let Event::Finished { stats, .. } = event {
                    return rates(&stats);
                }
            }
        };
        rates(&stats)
    }
}

fn rates(stats: &TurnStats) -> (f64, f64, usize) {
    (
        stats.prefill_tok_s.unwrap(),
        stats.decode_tok_s.unwrap_or(0.0),
        stats.prompt_tokens as usize,
    )
}

struct Bare {
    context: *mut sys::llama_context,
    sampler: *mut sys::llama_sampler,
    last_prompt: usize,
}

impl Bare {
    fn new(path: &Path) -> Bare {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let defaults = Sampling::default();
        // SAFETY: the calls are those of llama.cpp's own simple example, each result is checked.
        unsafe {
            let model =
                sys::llama_model_load_from_file(path.as_ptr(), sys::llama_model_default_params());
            assert!(!model.is_null());
            let mut params = sys::llama_context_default_params();
            params.n_ctx = CONTEXT;
            params.n_batch = BATCH;
            params.n_ubatch = BATCH;
            params.n_threads = THREADS.cast_signed();
            params.n_threads_batch = THREADS.cast_signed();
            let context = sys::llama_init_from_model(model, params);
            assert!(!context.is_null());
            let sampler = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            for part in [
                sys::llama_sampler_init_top_k(defaults.top_k.cast_signed()),
                sys::llama_sampler_init_top_p(defaults.top_p, 1),
                sys::llama_sampler_init_min_p(defaults.min_p, 1),
                sys::llama_sampler_init_temp(defaults.temperature),
                sys::llama_sampler_init_dist(1),
            ] {
                sys::llama_sampler_chain_add(sampler, part);
            }
            Bare {
                context,
                sampler,
                last_prompt: PROMPT_WORDS,
            }
        }
    }

    /// Prefill and decode rates of a loop with nothing in it, at the same depth.
    fn turn(&mut self, prompt: usize) -> (f64, f64) {
        self.last_prompt = prompt;
        let mut tokens: Vec<i32> = (0..prompt)
            .map(|at| 1_000 + i32::try_from(at).unwrap())
            .collect();
        // SAFETY: batches are at most as long as the context takes, and every token is in the vocabulary.
        unsafe {
            sys::llama_memory_clear(sys::llama_get_memory(self.context), true);
            let start = Instant::now();
            for chunk in tokens.chunks_mut(BATCH as usize) {
                let len = i32::try_from(chunk.len()).unwrap();
                assert_eq!(
                    sys::llama_decode(
                        self.context,
                        sys::llama_batch_get_one(chunk.as_mut_ptr(), len)
                    ),
                    0
                );
            }
            sys::llama_synchronize(self.context);
            let prefill = start.elapsed();
            let mut token = sys::llama_sampler_sample(self.sampler, self.context, -1);
            let first = Instant::now();
            for _ in 1..REPLY_TOKENS {
                assert_eq!(
                    sys::llama_decode(self.context, sys::llama_batch_get_one(&raw mut token, 1)),
                    0
                );
                token = sys::llama_sampler_sample(self.sampler, self.context, -1);
            }
            (
                rate(prompt, prefill),
                rate(REPLY_TOKENS as usize - 1, first.elapsed()),
            )
        }
    }
}

fn rate(tokens: usize, span: Duration) -> f64 {
    tokens as f64 / span.as_secs_f64()
}
