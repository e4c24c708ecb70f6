//! One pass over the logits of a whole vocabulary: the largest ones, and what turns a logit into a probability. This
//! runs for every token, so it is written for the processor's vector units.

use super::SampleError;

/// The `count` largest values with their indices, the largest first, the lower index first among equals.
pub(super) fn largest(values: &[f32], count: usize) -> Vec<(i32, f32)> {
    let order = |a: &(i32, f32), b: &(i32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let with_ids = (0_i32..).zip(values.iter().copied());
    let count = count.min(values.len());
    if count == 0 {
        return Vec::new();
    }
    let mut kept: Vec<(i32, f32)>;
    if count * 4 >= values.len() {
        kept = with_ids.collect();
    } else {
        // A buffer of twice the size is cut to the best whenever it is full; the threshold keeps most values out.
        let room = (count * 2).max(64);
        kept = Vec::with_capacity(room);
        let mut threshold = f32::NEG_INFINITY;
        for entry in with_ids {
            if entry.1 > threshold || kept.len() < count {
                kept.push(entry);
                if kept.len() == room {
                    kept.select_nth_unstable_by(count - 1, order);
                    kept.truncate(count);
                    threshold = kept[count - 1].1;
                }
            }
        }
    }
    if count < kept.len() {
        kept.select_nth_unstable_by(count - 1, order);
    }
    kept.truncate(count);
    kept.sort_unstable_by(order);
    kept
}

/// The softmax's denominator, with the largest logit taken out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Normaliser {
    max: f32,
    sum: f32,
}

impl Normaliser {
    pub(super) fn of(logits: &[f32]) -> Result<Normaliser, SampleError> {
        let lanes = logits.chunks(LANES);
        let mut maxima = [f32::NEG_INFINITY; LANES];
        for lane in lanes.clone() {
            for (max, value) in maxima.iter_mut().zip(lane) {
                *max = if *value > *max { *value } else { *max };
            }
        }
        let max = maxima.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0_f32; LANES];
        for lane in lanes {
            for (sum, value) in sums.iter_mut().zip(lane) {
                *sum += exp_of_negative(*value - max);
            }
        }
        let sum: f32 = sums.into_iter().sum();
        if max.is_finite() && sum.is_finite() && sum > 0.0 {
            Ok(Normaliser { max, sum })
        } else {
            Err(SampleError::NotNumbers)
        }
    }

    /// The softmax's value for a logit.
    pub(super) fn probability(self, logit: f32) -> f32 {
        ((logit - self.max).exp() / self.sum).min(1.0)
    }
}

/// Sums in this many independent lanes keep the processor's vector units busy and the rounding error small.
const LANES: usize = 32;

/// e^x for x ≤ 0 in straight-line code that the compiler turns into vector instructions, to within 1 part in a
/// million. x = n·ln 2 + r with |r| ≤ ln 2 ∕ 2; e^r by its Taylor polynomial of degree 6, 2^n by the exponent bits.
/// A NaN stays a NaN.
#[inline]
pub(super) fn exp_of_negative(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    /// ln 2 in two parts: n times the first is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.0;
    /// 1.5 × 2^23: adding and taking it away rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < LOWEST { LOWEST } else { x };
    let n = (clamped * LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let polynomial = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "n is an integer from −126 to 0, or a NaN"
    )]
    let scale = f32::from_bits(((n as i32 + 127) << 23).cast_unsigned());
    polynomial * scale
}
