//! Numbers as the screen writes them: three digits that matter, thousands separated, a dash for what does not
//! exist.

use std::time::Duration;

/// What stands for a value that does not exist.
pub const NONE: &str = "–";

pub use crate::text::grouped as count;

/// `61.2`, `191`, `1,204`: tokens a second.
#[must_use]
pub fn rate(tokens_a_second: f64) -> String {
    if !tokens_a_second.is_finite() || tokens_a_second < 0.0 {
        NONE.to_owned()
    } else if tokens_a_second < 9.995 {
        format!("{tokens_a_second:.2}")
    } else if tokens_a_second < 99.95 {
        format!("{tokens_a_second:.1}")
    } else {
        whole(tokens_a_second)
    }
}

/// `298`, `11`, `0.4`: milliseconds without their unit.
#[must_use]
pub fn bare_millis(millis: f64) -> String {
    if millis > 0.0 && millis < 9.95 && millis.fract() != 0.0 {
        format!("{millis:.1}")
    } else {
        whole(millis)
    }
}

/// `312 ms`, `1.82 s`, `15.7 s`, `2 min 5 s`.
#[must_use]
pub fn millis(millis: f64) -> String {
    if millis < 999.5 {
        format!("{} ms", bare_millis(millis))
    } else if millis < 9_995.0 {
        format!("{:.2} s", millis / 1e3)
    } else if millis < 59_950.0 {
        format!("{:.1} s", millis / 1e3)
    } else {
        let seconds = rounded(millis / 1e3);
        format!("{} min {} s", count(seconds / 60), seconds % 60)
    }
}

/// A duration, as [`millis`].
#[must_use]
pub fn duration(duration: Duration) -> String {
    millis(duration.as_secs_f64() * 1e3)
}

/// A time still to wait: `1.8 s`, `42 s`, `2 min 5 s`; never more exact than it can be known.
#[must_use]
pub fn wait(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 9.95 {
        format!("{seconds:.1} s")
    } else if seconds < 59.5 {
        format!("{seconds:.0} s")
    } else {
        let seconds = rounded(seconds);
        format!("{} min {} s", count(seconds / 60), seconds % 60)
    }
}

/// `27.1 MiB`
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        whole(value)
    };
    format!("{digits} {}", UNITS[unit])
}

/// `14.7 %` of a whole; a whole of 0 has no parts.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return format!("{NONE} %");
    }
    format!("{:.1} %", (part as f64 / whole as f64 * 100.0).min(100.0))
}

fn whole(number: f64) -> String {
    count(rounded(number))
}

/// A number of bytes that was computed.
#[must_use]
pub fn whole_bytes(bytes: f64) -> u64 {
    rounded(bytes)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let cases = [
            (0u64, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn rates_and_times_keep_three_digits() {
        assert_eq!(
            [2.5, 26.06, 61.2, 99.94, 191.4, 1_204.0].map(rate),
            ["2.50", "26.1", "61.2", "99.9", "191", "1,204"]
        );
        assert_eq!(rate(f64::INFINITY), NONE);
        assert_eq!(
            [0.4, 11.0, 312.4, 999.4, 1_820.0, 15_700.0, 125_000.0].map(millis),
            [
                "0.4 ms",
                "11 ms",
                "312 ms",
                "999 ms",
                "1.82 s",
                "15.7 s",
                "2 min 5 s"
            ]
        );
        assert_eq!(
            [1.84, 42.4, 59.6].map(|seconds| wait(Duration::from_secs_f64(seconds))),
            ["1.8 s", "42 s", "1 min 0 s"]
        );
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        assert_eq!(
            [
                0,
                1_023,
                1_024,
                28_416_000,
                192_937_984,
                1_023 << 20,
                8 << 30
            ]
            .map(bytes),
            [
                "0 B", "1023 B", "1.00 KiB", "27.1 MiB", "184 MiB", "1.00 GiB", "8.00 GiB"
            ]
        );
    }

    #[test]
    fn a_percentage_stays_within_a_hundred_and_exists_only_of_something() {
        assert_eq!(percent(1_204, 8_192), "14.7 %");
        assert_eq!(percent(3, 2), "100.0 %");
        assert_eq!(percent(0, 0), "– %");
    }
}
