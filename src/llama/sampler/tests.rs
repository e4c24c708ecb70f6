#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use super::softmax::exp_of_negative;
use super::*;

fn plain(temperature: f32) -> Sampling {
    Sampling {
        temperature,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        ..Sampling::default()
    }
}

fn noise(len: usize) -> Vec<f32> {
    let mut state = 1_u32;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 1_000_000.0
        })
        .collect()
}

#[test]
fn the_fast_exponential_is_within_a_millionth() {
    for step in 0..=8_000 {
        let x = -step as f32 / 100.0;
        let exact = f64::from(x).exp();
        let error = (f64::from(exp_of_negative(x)) - exact).abs() / exact;
        assert!(error < 1e-6, "{x}: {error}");
    }
    assert!(exp_of_negative(f32::NEG_INFINITY) < 1e-37);
    assert!(exp_of_negative(f32::NAN).is_nan());
}

#[test]
fn probabilities_are_the_softmax_of_the_raw_logits() {
    let logits = noise(5_000);
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
    let normaliser = Normaliser::of(&logits).unwrap();
    for logit in &logits {
        let exact = f64::from(logit - max).exp() / sum;
        assert!((f64::from(normaliser.probability(*logit)) - exact).abs() < 1e-5 * exact + 1e-9);
    }
}

#[test]
fn the_largest_are_found_in_order_for_every_count() {
    let values = noise(2_000);
    let mut sorted: Vec<(i32, f32)> = (0..).zip(values.iter().copied()).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for count in [0, 1, 2, 40, 63, 64, 65, 499, 500, 1_999, 2_000, usize::MAX] {
        assert_eq!(
            largest(&values, count),
            sorted[..count.min(2_000)],
            "{count}"
        );
    }
}

#[test]
fn equal_values_keep_the_lower_id() {
    assert_eq!(
        largest(&vec![1.0; 1_000], 3),
        [(0, 1.0), (1, 1.0), (2, 1.0)]
    );
}

#[test]
fn temperature_zero_takes_the_likeliest_token() {
    let mut sampler = Sampler::new(
        4,
        &Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        1,
    )
    .unwrap();
    let choice = sampler.choose(&[0.0, 3.0, 1.0, 2.0], 2).unwrap();
    assert_eq!(choice.token, TokenId(1));
    assert_eq!(choice.candidates[0].chance.to_bits(), 1.0_f32.to_bits());
    assert_eq!(choice.candidates[1].token, TokenId(3));
}

#[test]
fn a_penalty_lets_greedy_pick_the_next_best() {
    let settings = Sampling {
        temperature: 0.0,
        repeat_penalty: 2.0,
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(4, &settings, 1).unwrap();
    let logits = [0.1, 3.0, 1.0, 2.0];
    assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
    assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(3));
    assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
}

#[test]
fn a_penalty_turned_on_later_knows_the_tokens_before() {
    let mut sampler = Sampler::new(4, &plain(0.0), 1).unwrap();
    let logits = [0.1, 3.0, 1.0, 2.0];
    assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
    sampler
        .set(&Sampling {
            repeat_penalty: 2.0,
            ..plain(0.0)
        })
        .unwrap();
    assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(3));
}

#[test]
fn each_token_is_remembered_once() {
    let mut sampler = Sampler::new(4, &plain(0.8), 1).unwrap();
    for _ in 0..5 {
        sampler.choose(&[0.1, 0.3, 0.1, 0.2], 1).unwrap();
    }
    assert_eq!(sampler.memory.len(), 5);
}

#[test]
fn narrowing_first_draws_the_same_tokens_as_the_whole_chain() {
    let logits = noise(3_000);
    let settings = Sampling {
        temperature: 0.9,
        top_k: 40,
        top_p: 0.9,
        min_p: 0.02,
        repeat_penalty: 1.3,
        repeat_last_n: 32,
        seed: None,
    };
    let mut ours = Sampler::new(3_000, &settings, 7).unwrap();
    let mut chain = LlamaSampler::chain_simple([
        LlamaSampler::penalties(3_000, 32, 1.3, 0.0, 0.0),
        LlamaSampler::top_k(40),
        LlamaSampler::top_p(0.9, 1),
        LlamaSampler::min_p(0.02, 1),
        LlamaSampler::temp(0.9),
        LlamaSampler::dist(7),
    ]);
    for _ in 0..200 {
        let mut all = LlamaTokenDataArray::from_iter(
            (0..)
                .zip(&logits)
                .map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), *logit, 0.0)),
            false,
        );
        all.apply_sampler(&mut chain);
        let theirs = all.selected_token().unwrap();
        chain.try_accept(theirs).unwrap();
        assert_eq!(ours.choose(&logits, 8).unwrap().token.0, theirs.0);
    }
}

#[test]
fn a_live_change_keeps_the_random_state() {
    let logits = noise(100);
    let run = |change: bool| -> Vec<i32> {
        let mut sampler = Sampler::new(100, &plain(0.8), 42).unwrap();
        (0..40)
            .map(|step| {
                if change && step == 10 {
                    sampler.set(&plain(0.8)).unwrap();
                }
                sampler.choose(&logits, 1).unwrap().token.0
            })
            .collect()
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn the_chances_of_the_draw_add_up_and_removed_tokens_have_none() {
    let settings = Sampling {
        temperature: 1.0,
        top_k: 2,
        top_p: 1.0,
        min_p: 0.0,
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(4, &settings, 1).unwrap();
    let choice = sampler.choose(&[0.0, 3.0, 1.0, 2.0], 4).unwrap();
    let chances: Vec<f32> = choice.candidates.iter().map(|c| c.chance).collect();
    assert!((chances[0] + chances[1] - 1.0).abs() < 1e-6);
    assert_eq!(chances[2..], [0.0, 0.0]);
}

#[test]
fn logits_that_are_no_numbers_are_an_error() {
    let mut sampler = Sampler::new(3, &plain(0.8), 1).unwrap();
    assert_eq!(
        sampler.choose(&[0.0, f32::NAN, 1.0], 1),
        Err(SampleError::NotNumbers)
    );
    assert_eq!(
        sampler.choose(&[f32::NEG_INFINITY; 3], 1),
        Err(SampleError::NotNumbers)
    );
    assert_eq!(sampler.choose(&[], 1), Err(SampleError::NotNumbers));
    assert!(sampler.choose(&[0.0, f32::NEG_INFINITY, 1.0], 1).is_ok());
}

#[test]
fn limits_at_their_edges_always_choose_a_token() {
    let logits = noise(50);
    for (top_k, top_p, min_p, penalty) in [
        (0, 1.0, 1.0, 1.0),
        (1, 0.01, 0.0, 1.0),
        (u32::MAX, 1.0, 0.0, 10.0),
        (0, f32::MIN_POSITIVE, 1.0, 0.1),
    ] {
        let settings = Sampling {
            temperature: 5.0,
            top_k,
            top_p,
            min_p,
            repeat_penalty: penalty,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(50, &settings, 3).unwrap();
        for _ in 0..20 {
            assert!(sampler.choose(&logits, 5).unwrap().token.0 < 50);
        }
    }
}
