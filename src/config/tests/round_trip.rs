//! Any configuration, written and read again; any text, read.

use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            any::<char>(),
            Just('"'),
            Just('\\'),
            Just('\n'),
            Just('\u{9b}'),
            Just('\u{202e}'),
            Just('\u{e0041}')
        ],
        0..12,
    )
    .prop_map(String::from_iter)
}

fn load_options() -> impl Strategy<Value = LoadOptions> {
    let count = || proptest::option::of(any::<u32>());
    let kv_type = || proptest::sample::select(KvType::ALL.to_vec());
    let flash = [
        FlashAttention::Auto,
        FlashAttention::On,
        FlashAttention::Off,
    ];
    let kinds = (
        kv_type(),
        kv_type(),
        proptest::sample::select(flash.to_vec()),
        proptest::sample::select(vec![MemoryCheck::Check, MemoryCheck::Force]),
        proptest::sample::select(vec![SwaCache::Full, SwaCache::Small]),
        count(),
    );
    (count(), count(), count(), count(), count(), count(), kinds).prop_map(
        |(context, threads, threads_prefill, batch, ubatch, gpu_layers, kinds)| LoadOptions {
            context,
            threads,
            threads_prefill,
            batch,
            ubatch,
            kv_type_k: kinds.0,
            kv_type_v: kinds.1,
            flash_attention: kinds.2,
            swa_cache: kinds.4,
            cache_ram: kinds.5,
            gpu_layers,
            memory: kinds.3,
        },
    )
}

fn sampling() -> impl Strategy<Value = SamplingPatch> {
    let count = || proptest::option::of(any::<u32>());
    let number = || proptest::option::of(proptest::num::f32::NORMAL | proptest::num::f32::ZERO);
    (
        number(),
        count(),
        number(),
        number(),
        number(),
        count(),
        count(),
    )
        .prop_map(
            |(temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed)| {
                SamplingPatch {
                    temperature,
                    top_k,
                    top_p,
                    min_p,
                    repeat_penalty,
                    repeat_last_n,
                    seed,
                }
            },
        )
}

fn config() -> impl Strategy<Value = Config> {
    let texts = || proptest::collection::vec(text(), 0..3);
    let panels = proptest::sample::select(vec![PanelsConfig::Auto, PanelsConfig::Hidden]);
    let chats = (any::<bool>(), proptest::option::of(text()), any::<u32>()).prop_map(
        |(save, file, cache_disk)| ChatsConfig {
            save,
            file: file.map(Into::into),
            cache_disk,
        },
    );
    (
        (proptest::option::of(text()), proptest::option::of(text())),
        load_options(),
        sampling(),
        (any::<u32>(), texts(), panels, chats),
        proptest::collection::btree_map(text(), texts(), 0..3),
    )
        .prop_map(
            |((model, system), load, sampling, (max_tokens, stop, panels, chats), keys)| Config {
                model,
                system,
                load,
                sampling,
                generation: GenerationConfig {
                    max_tokens,
                    stop,
                    ..GenerationConfig::default()
                },
                chats,
                ui: UiConfig { panels },
                keys,
            },
        )
}

proptest! {
    #[test]
    fn what_show_writes_reads_back_as_the_same_configuration(config in config()) {
        let loaded = Loaded { config, origins: Origins::new() };
        let written = show::render(&loaded);
        prop_assert!(!written.contains(crate::text::sanitize::is_dangerous));
        prop_assert_eq!(parsed(&written), loaded.config);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,80}") {
        let read = file::parse(Path::new("any.toml"), &text);
        for problem in read.problems {
            prop_assert!(problem.to_string().starts_with("any.toml:"));
        }
    }
}
