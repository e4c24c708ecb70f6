//! Every misuse of llama.cpp that ends the process has no way through the wrapper: each is tried here.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test stops where it fails"
)]

#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use platen::engine::options::{FlashAttention, KvType, SwaCache};
use platen::engine::token::TokenId;
use platen::llama::context::{
    Context, ContextError, ContextParams, DecodeError, Logits, SeqId, Truncation,
};
use platen::llama::interrupt::Interrupt;
use platen::llama::model::{Model, ModelError, ModelParams};
use platen::llama::state::{StateError, StatePart};
use platen::llama::vocab::{SpecialKind, Specials};
use tiny_gguf::{TinyGguf, TinyKind, Value};

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn tiny(&self, kind: TinyKind) -> PathBuf {
        tiny_gguf::write_in(kind, self.0.path())
    }
}

fn load_at(path: &Path) -> Result<Arc<Model>, ModelError> {
    Model::load(path, ModelParams::default(), &idle(), &mut |_| {})
}

fn load(kind: TinyKind) -> Arc<Model> {
    load_at(&Files::new().tiny(kind)).unwrap()
}

fn idle() -> Interrupt {
    let interrupt = Interrupt::default();
    interrupt.begin(1);
    interrupt
}

fn params() -> ContextParams {
    ContextParams {
        context: 512,
        batch: 64,
        ubatch: 32,
        sequences: 1,
        threads_decode: 1,
        threads_prefill: 1,
        type_k: KvType::F16,
        type_v: KvType::F16,
        flash_attention: FlashAttention::Auto,
        swa_cache: SwaCache::Full,
    }
}

fn context(kind: TinyKind) -> Context {
    Context::new(load(kind), params(), Arc::new(idle())).unwrap()
}

fn tokens(count: usize) -> Vec<TokenId> {
    (0..count)
        .map(|at| TokenId(3 + i32::try_from(at * 7 % 256).unwrap()))
        .collect()
}

fn read(context: &mut Context, tokens: &[TokenId]) -> Vec<f32> {
    let seq = context.first_sequence();
    for chunk in tokens.chunks(32) {
        let start = context.len(seq);
        context.decode(seq, chunk, start, Logits::Last).unwrap();
    }
    context.logits().unwrap().to_vec()
}

#[test]
fn every_kind_of_memory_loads_and_computes_finite_logits() {
    for kind in TinyKind::ALL {
        let mut context = context(kind);
        let logits = read(&mut context, &tokens(40));
        assert_eq!(logits.len(), 259);
        assert!(logits.iter().all(|logit| logit.is_finite()), "{kind:?}");
        assert_eq!(context.len(context.first_sequence()), 40);
    }
}

#[test]
fn a_batch_larger_than_the_context_takes_is_refused() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    assert!(matches!(
        context.decode(seq, &tokens(65), 0, Logits::Last),
        Err(DecodeError::Invalid(_))
    ));
    assert_eq!(context.len(seq), 0);
}

#[test]
fn an_empty_batch_is_refused() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    assert!(matches!(
        context.decode(seq, &[], 0, Logits::Last),
        Err(DecodeError::Invalid(_))
    ));
}

#[test]
fn tokens_outside_the_vocabulary_are_refused() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    for id in [-1, 259, i32::MAX, i32::MIN] {
        assert!(matches!(
            context.decode(seq, &[TokenId(id)], 0, Logits::Last),
            Err(DecodeError::Invalid(_))
        ));
    }
}

#[test]
fn a_position_that_is_not_the_end_is_refused() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    for start in [1, 5, u32::MAX] {
        assert!(matches!(
            context.decode(seq, &tokens(1), start, Logits::Last),
            Err(DecodeError::Invalid(_))
        ));
    }
}

#[test]
fn a_full_context_is_an_error_and_changes_nothing() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    read(&mut context, &tokens(512));
    assert_eq!(
        context.decode(seq, &tokens(1), 512, Logits::Last),
        Err(DecodeError::Full)
    );
    assert_eq!(context.len(seq), 512);
    assert_eq!(context.truncate(seq, 500), Truncation::Done);
    context.decode(seq, &tokens(1), 500, Logits::Last).unwrap();
}

#[test]
fn sequences_of_another_context_are_refused() {
    let many = ContextParams {
        sequences: 4,
        ..params()
    };
    let other = Context::new(load(TinyKind::Llama), many, Arc::new(idle())).unwrap();
    let foreign: SeqId = other.sequence(3).unwrap();
    assert!(other.sequence(4).is_none());
    let mut context = context(TinyKind::Llama);
    assert_eq!(context.len(foreign), 0);
    assert_eq!(context.truncate(foreign, 0), Truncation::Impossible);
    assert!(matches!(
        context.decode(foreign, &tokens(1), 0, Logits::Last),
        Err(DecodeError::Invalid(_))
    ));
    assert_eq!(
        context.save_state(foreign, StatePart::Whole),
        Err(StateError::Sequence)
    );
    assert_eq!(
        context.restore_state(foreign, StatePart::Whole, &[0; 8]),
        Err(StateError::Sequence)
    );
}

#[test]
fn contexts_out_of_their_limits_are_refused() {
    let model = load(TinyKind::Llama);
    let bad = [
        ContextParams {
            context: 0,
            ..params()
        },
        ContextParams {
            context: u32::MAX,
            ..params()
        },
        ContextParams {
            batch: 0,
            ..params()
        },
        ContextParams {
            batch: 2,
            sequences: 4,
            ..params()
        },
        ContextParams {
            ubatch: 0,
            ..params()
        },
        ContextParams {
            ubatch: 65,
            ..params()
        },
        ContextParams {
            sequences: 0,
            ..params()
        },
        ContextParams {
            sequences: 1_000,
            ..params()
        },
        ContextParams {
            threads_decode: 0,
            ..params()
        },
        ContextParams {
            threads_prefill: 100_000,
            ..params()
        },
    ];
    for params in bad {
        let refused = Context::new(Arc::clone(&model), params, Arc::new(idle()));
        assert!(
            matches!(refused, Err(ContextError::Limit { .. })),
            "{params:?}"
        );
    }
    let quantised = ContextParams {
        type_v: KvType::Q8_0,
        flash_attention: FlashAttention::Off,
        ..params()
    };
    assert!(matches!(
        Context::new(model, quantised, Arc::new(idle())),
        Err(ContextError::NeedsFlashAttention(KvType::Q8_0))
    ));
}

#[test]
fn a_cache_type_that_does_not_divide_the_head_is_an_error_with_a_reason() {
    // The heads of the tiny models have 16 values, half a block of q8_0.
    let quantised = ContextParams {
        type_k: KvType::Q8_0,
        ..params()
    };
    let refused = Context::new(load(TinyKind::Llama), quantised, Arc::new(idle()));
    assert!(
        matches!(refused, Err(ContextError::Refused { .. })),
        "{refused:?}"
    );
}

#[test]
fn every_cache_type_offered_decodes() {
    for kind in [KvType::F32, KvType::F16, KvType::Bf16] {
        let params = ContextParams {
            type_k: kind,
            type_v: kind,
            ..params()
        };
        let mut context = Context::new(load(TinyKind::Llama), params, Arc::new(idle())).unwrap();
        assert!(
            read(&mut context, &tokens(70))
                .iter()
                .all(|logit| logit.is_finite()),
            "{kind}"
        );
    }
}

#[test]
fn there_are_no_logits_before_a_decode_nor_after_one_without_or_a_failed_one() {
    let mut context = context(TinyKind::Llama);
    let seq = context.first_sequence();
    assert!(context.logits().is_none());
    context.decode(seq, &tokens(4), 0, Logits::None).unwrap();
    assert!(context.logits().is_none());
    context.decode(seq, &tokens(1), 4, Logits::Last).unwrap();
    assert!(context.logits().is_some());
    context.clear();
    assert!(context.logits().is_none());
}

#[test]
fn ids_outside_the_vocabulary_have_no_text_and_no_kind() {
    let model = load(TinyKind::Llama);
    for id in [-1, 259, i32::MAX, i32::MIN] {
        let token = TokenId(id);
        assert!(model.piece(token).is_empty());
        assert!(model.entry(token).is_empty());
        assert_eq!(model.special_kind(token), None);
        assert!(!model.is_eog(token));
    }
    assert_eq!(model.special_kind(TokenId(0)), Some(SpecialKind::Control));
    assert!(model.is_eog(TokenId(1)));
}

#[test]
fn texts_become_tokens_and_back() {
    let model = load(TinyKind::Llama);
    for text in ["", "hello", "Größe日本🎉", "</s>"] {
        let tokens = model.tokenize(text, Specials::AsText).unwrap();
        let back: Vec<u8> = tokens
            .iter()
            .flat_map(|token| model.piece(*token))
            .collect();
        assert_eq!(String::from_utf8_lossy(&back).as_ref(), text);
        assert!(
            !tokens.contains(&TokenId(1)),
            "a control token came from plain text"
        );
    }
    assert_eq!(
        model.tokenize("</s>", Specials::Parse).unwrap(),
        [TokenId(1)]
    );
}

#[test]
fn a_megabyte_without_a_space_is_tokenised_on_a_small_stack() {
    let model = load(TinyKind::Llama);
    let run = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            model
                .tokenize(&"a".repeat(1 << 20), Specials::AsText)
                .unwrap()
                .len()
        })
        .unwrap();
    assert_eq!(run.join().unwrap(), 1 << 20);
}

#[test]
fn hostile_headers_never_reach_llama_cpp() {
    let files = Files::new();
    let bad: [(&str, TinyGguf); 3] = [
        (
            "no-layers",
            TinyGguf::new(TinyKind::Llama).set("llama.block_count", Value::U32(0)),
        ),
        (
            "many-layers",
            TinyGguf::new(TinyKind::Llama).set("llama.block_count", Value::U32(100_000)),
        ),
        (
            "experts",
            TinyGguf::new(TinyKind::Llama).set("llama.expert_count", Value::U32(2_000)),
        ),
    ];
    for (name, model) in bad {
        let path = files.0.path().join(name);
        model.write(&path);
        assert!(matches!(load_at(&path), Err(ModelError::File(_))), "{name}");
    }
}

#[test]
fn truncated_empty_and_missing_files_are_errors() {
    let files = Files::new();
    let whole = std::fs::read(files.tiny(TinyKind::Llama)).unwrap();
    let path = files.0.path().join("cut.gguf");
    for len in [0, 3, 4, 24, 1_000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(load_at(&path).is_err(), "{len}");
    }
    assert!(load_at(&files.0.path().join("missing.gguf")).is_err());
    assert!(load_at(files.0.path()).is_err());
}

#[test]
fn an_unknown_architecture_is_refused_with_llama_cpps_reason() {
    let files = Files::new();
    let path = files.0.path().join("zzz.gguf");
    TinyGguf::new(TinyKind::Llama)
        .set("general.architecture", Value::Text("zzz".into()))
        .set("zzz.block_count", Value::U32(2))
        .write(&path);
    let error = load_at(&path).unwrap_err().to_string();
    assert!(error.contains("zzz"), "{error}");
}

#[test]
fn a_load_can_be_cancelled_and_a_panic_in_its_progress_is_contained() {
    let path_of = Files::new();
    let path = path_of.tiny(TinyKind::Llama);
    let interrupt = idle();
    interrupt.cancel_through(1);
    let cancelled = Model::load(&path, ModelParams::default(), &interrupt, &mut |_| {});
    assert!(
        matches!(cancelled, Err(ModelError::Cancelled)),
        "{cancelled:?}"
    );
    let panicking = Model::load(&path, ModelParams::default(), &idle(), &mut |_| {
        panic!("in a callback")
    });
    assert!(panicking.is_err());
}

#[test]
fn a_cancelled_decode_leaves_whole_parts_and_can_go_on() {
    let interrupt = Arc::new(idle());
    let mut context =
        Context::new(load(TinyKind::Llama), params(), Arc::clone(&interrupt)).unwrap();
    let seq = context.first_sequence();
    context.decode(seq, &tokens(10), 0, Logits::Last).unwrap();
    interrupt.cancel_through(1);
    assert_eq!(
        context.decode(seq, &tokens(40), 10, Logits::Last),
        Err(DecodeError::Cancelled)
    );
    assert!(context.logits().is_none());
    let held = context.len(seq);
    assert!(held >= 10);
    interrupt.begin(2);
    context.decode(seq, &tokens(4), held, Logits::Last).unwrap();
}

#[test]
fn cutting_back_works_where_the_memory_can_and_says_so_where_it_cannot() {
    for (kind, expected) in [
        (TinyKind::Llama, Truncation::Done),
        (TinyKind::Gemma3, Truncation::Done),
        (TinyKind::Mamba, Truncation::Impossible),
        (TinyKind::Lfm2, Truncation::Impossible),
    ] {
        let mut context = context(kind);
        let seq = context.first_sequence();
        read(&mut context, &tokens(200));
        assert_eq!(
            context.truncate(seq, 200),
            Truncation::Done,
            "{kind:?}: nothing to cut"
        );
        assert_eq!(context.truncate(seq, 100), expected, "{kind:?}");
        let left = if expected == Truncation::Done {
            100
        } else {
            200
        };
        assert_eq!(context.len(seq), left, "{kind:?}");
        assert_eq!(
            context.truncate(seq, 0),
            Truncation::Done,
            "{kind:?}: everything can be dropped"
        );
        assert_eq!(context.len(seq), 0, "{kind:?}");
    }
}

#[test]
fn a_cache_cut_back_and_read_again_gives_the_logits_of_a_cold_one() {
    for kind in [TinyKind::Llama, TinyKind::Gemma3] {
        let all = tokens(160);
        let cold = read(&mut context(kind), &all);
        let mut warm = context(kind);
        let seq = warm.first_sequence();
        read(&mut warm, &all);
        assert_eq!(warm.truncate(seq, 128), Truncation::Done);
        assert_eq!(read(&mut warm, &all[128..]), cold, "{kind:?}");
    }
}

#[test]
fn a_state_comes_back_whole_and_damage_is_refused() {
    for kind in TinyKind::ALL {
        let all = tokens(96);
        let cold = read(&mut context(kind), &all);
        let mut source = context(kind);
        let seq = source.first_sequence();
        read(&mut source, &all[..64]);
        let bytes = source.save_state(seq, StatePart::Whole).unwrap();
        let mut target = context(kind);
        target.restore_state(seq, StatePart::Whole, &bytes).unwrap();
        assert_eq!(target.len(seq), 64, "{kind:?}");
        assert_eq!(read(&mut target, &all[64..]), cold, "{kind:?}");
        for cut in [0, 1, 8, bytes.len() / 2, bytes.len() - 1] {
            let damaged = target.restore_state(seq, StatePart::Whole, &bytes[..cut]);
            assert_eq!(damaged, Err(StateError::Mismatch), "{kind:?} cut at {cut}");
            assert_eq!(target.len(seq), 0);
        }
        let other = if kind == TinyKind::Llama {
            TinyKind::Gemma3
        } else {
            TinyKind::Llama
        };
        assert_eq!(
            context(other).restore_state(seq, StatePart::Whole, &bytes),
            Err(StateError::Mismatch),
            "{kind:?}"
        );
    }
}

#[test]
fn a_partial_state_brings_back_what_cannot_be_cut() {
    for kind in [TinyKind::Mamba, TinyKind::Lfm2] {
        let all = tokens(96);
        let cold = read(&mut context(kind), &all);
        let mut context = context(kind);
        let seq = context.first_sequence();
        read(&mut context, &all[..64]);
        let checkpoint = context.save_state(seq, StatePart::Partial).unwrap();
        read(&mut context, &tokens(20));
        context
            .restore_state(seq, StatePart::Partial, &checkpoint)
            .unwrap();
        assert_eq!(context.len(seq), 64, "{kind:?}");
        assert_eq!(read(&mut context, &all[64..]), cold, "{kind:?}");
    }
}

#[test]
fn threads_change_between_two_decodes_without_changing_the_result() {
    let all = tokens(64);
    let cold = read(&mut context(TinyKind::Llama), &all);
    let mut context = context(TinyKind::Llama);
    read(&mut context, &all[..32]);
    context.set_threads(0, 2);
    assert_eq!(
        (
            context.params().threads_decode,
            context.params().threads_prefill
        ),
        (1, 2)
    );
    let warm = read(&mut context, &all[32..]);
    assert!(warm.iter().zip(&cold).all(|(a, b)| (a - b).abs() < 1e-3));
}

#[test]
fn a_context_outlives_the_last_handle_to_its_model() {
    let model = load(TinyKind::Llama);
    let mut context = Context::new(Arc::clone(&model), params(), Arc::new(idle())).unwrap();
    drop(model);
    assert!(
        read(&mut context, &tokens(8))
            .iter()
            .all(|logit| logit.is_finite())
    );
}

#[test]
fn contexts_can_be_made_from_several_threads() {
    let model = load(TinyKind::Llama);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let model = Arc::clone(&model);
            scope.spawn(move || Context::new(model, params(), Arc::new(idle())).unwrap());
        }
    });
}
