#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

fn stops(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}

struct Outcome {
    thinking: String,
    answer: String,
    stopped: bool,
    stream: ReplyStream,
}

fn run(stops: &[String], opens_thinking: bool, pieces: &[&[u8]]) -> Outcome {
    let mut stream = ReplyStream::new(stops, opens_thinking);
    let mut segments = Vec::new();
    for piece in pieces {
        let pushed = stream.push(piece);
        segments.extend(pushed.segments);
        if pushed.stopped {
            break;
        }
    }
    segments.extend(stream.finish().segments);
    let of = |thinking: bool| {
        segments
            .iter()
            .filter(|segment| segment.thinking == thinking)
            .map(|segment| segment.text.as_str())
            .collect()
    };
    let (thinking, answer): (String, String) = (of(true), of(false));
    assert_eq!(stream.reply(), format!("{thinking}{answer}"));
    assert_eq!(stream.thinking_len(), thinking.len());
    Outcome {
        thinking,
        answer,
        stopped: stream.stopped(),
        stream,
    }
}

fn bytewise(text: &str) -> Vec<&[u8]> {
    text.as_bytes().chunks(1).collect()
}

#[test]
fn characters_that_span_tokens_appear_whole() {
    let text = "歪 Привет 👩‍👩‍👧 冒泡排序";
    let outcome = run(&[], false, &bytewise(text));
    assert_eq!(outcome.answer, text);
    let mut stream = ReplyStream::new(&[], false);
    assert_eq!(stream.push(&[0xE6, 0xAD]).text(), "");
    assert_eq!(stream.push(&[0xAA]).text(), "歪");
}

#[test]
fn a_reply_cut_inside_a_character_ends_with_one_replacement() {
    for cut in 1..4 {
        let bytes = &"a🙂".as_bytes()[..=cut];
        let outcome = run(&[], false, &bytes.chunks(1).collect::<Vec<_>>());
        assert_eq!(outcome.answer, "a\u{FFFD}");
        assert_eq!(
            outcome.stream.kept(),
            Kept {
                tokens: 1 + cut,
                text_len: 4
            }
        );
    }
}

#[test]
fn nothing_of_a_stop_string_over_several_tokens_is_shown() {
    let outcome = run(
        &stops(&["\nUser:"]),
        false,
        &[b"Paris.", b"\nUs", b"er", b":", b" more"],
    );
    assert_eq!((outcome.answer.as_str(), outcome.stopped), ("Paris.", true));
    assert_eq!(
        outcome.stream.kept(),
        Kept {
            tokens: 1,
            text_len: 6
        }
    );
}

#[test]
fn text_held_for_a_stop_string_comes_out_at_the_end() {
    let outcome = run(&stops(&["\nUser:"]), false, &[b"Paris.", b"\nUs"]);
    assert_eq!(
        (outcome.answer.as_str(), outcome.stopped),
        ("Paris.\nUs", false)
    );
    assert_eq!(
        outcome.stream.kept(),
        Kept {
            tokens: 2,
            text_len: 9
        }
    );
}

#[test]
fn a_token_that_holds_the_start_of_the_stop_is_not_kept() {
    let outcome = run(&stops(&["END"]), false, &[b"one", b" two E", b"ND"]);
    assert_eq!(outcome.answer, "one two ");
    assert_eq!(
        outcome.stream.kept(),
        Kept {
            tokens: 1,
            text_len: 3
        }
    );
}

#[test]
fn the_stop_that_begins_first_wins_however_the_text_is_cut() {
    for (texts, text, expected) in [
        (&["abcd", "bc"][..], "xabcd", "x"),
        (&["abcd", "bc"][..], "xabce", "xa"),
        (&["abcd", "bc"][..], "xabc", "xa"),
        (&["aab"][..], "aaab", "a"),
        (&["a", "ab"][..], "zab", "z"),
        (&["", "q"][..], "wq", "w"),
        (&["жук"][..], "жужук!", "жу"),
    ] {
        for pieces in [vec![text.as_bytes()], bytewise(text)] {
            let outcome = run(&stops(texts), false, &pieces);
            assert_eq!(
                (outcome.answer.as_str(), outcome.stopped),
                (expected, true),
                "{texts:?} in {text}"
            );
        }
    }
}

#[test]
fn tokens_after_a_stop_change_nothing() {
    let mut stream = ReplyStream::new(&stops(&["X"]), false);
    stream.push(b"aX");
    assert_eq!(
        stream.push(b"more"),
        Pushed {
            segments: Vec::new(),
            stopped: true
        }
    );
    assert_eq!(
        (stream.finish().text(), stream.reply()),
        (String::new(), "a")
    );
    assert_eq!(
        stream.kept(),
        Kept {
            tokens: 0,
            text_len: 0
        }
    );
}

#[test]
fn thinking_is_told_from_the_answer() {
    for (opens, text, thinking, answer) in [
        (
            false,
            "<think>\nhm\n</think>\n\n4",
            "<think>\nhm\n</think>\n\n",
            "4",
        ),
        (true, "hm</think>4", "hm</think>", "4"),
        (
            false,
            "\n<thinking>hm</think></thinking> 4",
            "\n<thinking>hm</think></thinking> ",
            "4",
        ),
        (false, "[THINK]a[/THINK]b", "[THINK]a[/THINK]", "b"),
        (
            false,
            "<|START_THINKING|>a<|END_THINKING|>b",
            "<|START_THINKING|>a<|END_THINKING|>",
            "b",
        ),
        (false, "</think>\n4", "</think>\n", "4"),
        (
            false,
            "<think>a</think>the tag <think> and </think>",
            "<think>a</think>",
            "the tag <think> and </think>",
        ),
        (
            false,
            "Use <think>x</think> so",
            "",
            "Use <think>x</think> so",
        ),
        (false, "plain </think> text", "", "plain </think> text"),
        (true, "never closed </thin", "never closed </thin", ""),
        (false, "<think>cut", "<think>cut", ""),
        (false, "<thi", "", "<thi"),
        (false, "  <thinner>", "", "  <thinner>"),
        (false, "  ", "", "  "),
        (true, "🙂</think>", "🙂</think>", ""),
    ] {
        for pieces in [vec![text.as_bytes()], bytewise(text)] {
            let outcome = run(&[], opens, &pieces);
            assert_eq!(
                (outcome.thinking.as_str(), outcome.answer.as_str()),
                (thinking, answer),
                "{text}"
            );
        }
    }
}

#[test]
fn channels_become_thinking_and_answer() {
    let start = "<|channel|>analysis<|message|>";
    for (text, thinking, answer) in [
        (
            format!("{start}hm<|end|><|start|>assistant<|channel|>final<|message|>4"),
            "<think>hm</think>",
            "4",
        ),
        (
            "<|channel|>final<|message|>a < b<|retur".to_string(),
            "",
            "a < b<|retur",
        ),
        (format!("{start}hm"), "<think>hm", ""),
        (format!("{start}hm<|end|><|start|>assis"), "<think>hm", ""),
        (
            format!(
                "{start}a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|><|channel|>final <|constrain|>json<|message|>{{}}<|return|>"
            ),
            "<think>a\n\nb</think>",
            "{}",
        ),
    ] {
        for pieces in [vec![text.as_bytes()], bytewise(&text)] {
            let outcome = run(&[], false, &pieces);
            assert_eq!(
                (outcome.thinking.as_str(), outcome.answer.as_str()),
                (thinking, answer),
                "{text}"
            );
        }
    }
}

#[test]
fn control_tokens_that_tell_thinking_from_answer_are_wanted() {
    assert!(
        ReplyStream::wants_control_text("[THINK]")
            && ReplyStream::wants_control_text("<|channel|>")
    );
    assert!(!ReplyStream::wants_control_text("<|im_end|>"));
}

fn split<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut done = 0;
    for cut in cuts {
        pieces.push(&bytes[done..cut]);
        done = cut;
    }
    pieces.push(&bytes[done..]);
    pieces
}

proptest! {
    #[test]
    fn pieces_give_what_the_whole_gives(
        bytes in proptest::collection::vec(prop_oneof![Just(0xE6u8), Just(0xAD), Just(0xAA), Just(0xF0), Just(0x9F), Just(0xFF), b'a'..b'd'], 0..40),
        cuts in proptest::collection::vec(0usize..60, 0..12),
    ) {
        let outcome = run(&[], false, &split(&bytes, &cuts));
        prop_assert_eq!(outcome.answer, String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn stops_cut_where_the_first_begins(
        text in "[abé]{0,30}",
        wanted in proptest::collection::vec("[abé]{1,4}", 1..4),
        cuts in proptest::collection::vec(0usize..60, 0..12),
    ) {
        let pieces = split(text.as_bytes(), &cuts);
        let outcome = run(&wanted, false, &pieces);
        let end = wanted.iter().filter_map(|stop| text.find(stop.as_str())).min();
        prop_assert_eq!(&outcome.answer, &text[..end.unwrap_or(text.len())]);
        prop_assert_eq!(outcome.stopped, end.is_some());
        let kept = outcome.stream.kept();
        let kept_bytes: usize = pieces.iter().take(kept.tokens).map(|piece| piece.len()).sum();
        prop_assert_eq!(kept_bytes, kept.text_len);
        prop_assert!(kept.text_len <= outcome.answer.len());
    }

    #[test]
    fn thinking_is_the_same_however_it_is_cut(
        parts in proptest::collection::vec(prop_oneof![
            Just("<think>"), Just("</think>"), Just("<"), Just("\n"), Just("x"), Just("🙂"), Just("</thi"),
            Just("<|channel|>"), Just("analysis"), Just("final"), Just("<|message|>"), Just("<|end|>"), Just("<|start|>"),
        ], 0..12),
        cuts in proptest::collection::vec(0usize..120, 0..12),
        opens in any::<bool>(),
    ) {
        let text = parts.concat();
        let whole = run(&[], opens, &[text.as_bytes()]);
        let pieces = run(&[], opens, &split(text.as_bytes(), &cuts));
        prop_assert_eq!((whole.thinking, whole.answer), (pieces.thinking, pieces.answer));
    }
}
