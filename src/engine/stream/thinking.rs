//! Tells the model's thinking from its answer. Thinking stands at the very start of a reply or was opened by the
//! prompt; a tag anywhere else is text like any other.

use super::Segment;
use super::harmony::{self, Harmony};

const TAG_PAIRS: usize = 8;

/// The tags that open thinking.
pub const THINKING_OPENERS: [&str; TAG_PAIRS] = [
    "<think>",
    "<thinking>",
    "<|START_THINKING|>",
    "[THINK]",
    "<|channel>thought",
    "<|inner_prefix|>",
    "<seed:think>",
    "◁think▷",
];

const CLOSERS: [&str; TAG_PAIRS] = [
    "</think>",
    "</thinking>",
    "<|END_THINKING|>",
    "[/THINK]",
    "<channel|>",
    "<|inner_suffix|>",
    "</seed:think>",
    "◁/think▷",
];

/// The tags that open and close thinking.
pub const THINKING_TAGS: [&str; 2 * TAG_PAIRS + 1] = {
    // A control token of its own; the word after it is text.
    let mut tags = ["<|channel>"; 2 * TAG_PAIRS + 1];
    let mut index = 0;
    while index < TAG_PAIRS {
        tags[2 * index] = THINKING_OPENERS[index];
        tags[2 * index + 1] = CLOSERS[index];
        index += 1;
    }
    tags
};

/// Whether a control token's text matters here.
pub fn is_markup(text: &str) -> bool {
    THINKING_TAGS.contains(&text) || harmony::MARKS.contains(&text)
}

/// A reply of a model that speaks in channels, without its thinking; that is how its template wants it.
#[must_use]
pub fn strip_thinking(text: &str) -> &str {
    let answer = match text.trim_start().strip_prefix(harmony::THINKING_START) {
        Some(thinking) => thinking
            .split_once(harmony::THINKING_END)
            .map_or("", |(_, answer)| answer),
        None => text,
    };
    match answer.rsplit_once(harmony::FINAL_START) {
        Some((_, answer)) => answer,
        None if answer.contains(harmony::ANALYSIS_START) => "",
        None => answer,
    }
}

#[derive(Debug)]
enum State {
    /// Nothing but space so far, or part of a tag.
    Start,
    /// Until one of these tags.
    Thinking {
        closers: &'static [&'static str],
    },
    /// The space after thinking.
    Closed,
    Answer,
    Harmony(Harmony),
}

/// Splits a reply that comes in pieces.
#[derive(Debug)]
pub struct ThinkingSplitter {
    state: State,
    /// At the start, text held back; in thinking, the last bytes, which may begin a tag.
    held: String,
}

impl ThinkingSplitter {
    /// For a reply whose thinking the prompt opened, or any other.
    pub fn new(opens_thinking: bool) -> ThinkingSplitter {
        let state = if opens_thinking {
            State::Thinking { closers: &CLOSERS }
        } else {
            State::Start
        };
        ThinkingSplitter {
            state,
            held: String::new(),
        }
    }

    /// Whether the text that comes out is not the text that went in.
    pub fn rewrites(&self) -> bool {
        matches!(self.state, State::Harmony(_))
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut text = text.to_string();
        while !text.is_empty() {
            text = match &mut self.state {
                State::Start => self.at_start(&text, &mut segments),
                State::Thinking { closers } => {
                    let closers = *closers;
                    self.in_thinking(&text, closers, &mut segments)
                }
                State::Closed => {
                    let space = text.len() - text.trim_start().len();
                    let rest = text.split_off(space);
                    emit(&mut segments, text, true);
                    if !rest.is_empty() {
                        self.state = State::Answer;
                    }
                    rest
                }
                State::Answer => {
                    emit(&mut segments, text, false);
                    String::new()
                }
                State::Harmony(harmony) => {
                    segments.extend(harmony.push(&text));
                    String::new()
                }
            };
        }
        segments
    }

    /// Ends the reply: text that was no tag after all comes out.
    pub fn finish(&mut self) -> Vec<Segment> {
        match &mut self.state {
            State::Start => {
                let mut segments = Vec::new();
                emit(&mut segments, std::mem::take(&mut self.held), false);
                segments
            }
            State::Harmony(harmony) => harmony.finish(),
            State::Thinking { .. } | State::Closed | State::Answer => Vec::new(),
        }
    }

    /// Returns the text left over once it is known how the reply begins.
    fn at_start(&mut self, text: &str, segments: &mut Vec<Segment>) -> String {
        self.held.push_str(text);
        let begun = self.held.trim_start();
        let space = self.held.len() - begun.len();
        let whole = |tags: &'static [&'static str]| {
            tags.iter()
                .enumerate()
                .find(|(_, tag)| begun.starts_with(**tag))
                .map(|(index, tag)| (index, tag.len()))
        };
        let tags = || THINKING_TAGS.iter().copied().chain([harmony::CHANNEL]);
        if let Some((index, length)) = whole(&THINKING_OPENERS) {
            let rest = self.held.split_off(space + length);
            emit(segments, std::mem::take(&mut self.held), true);
            self.state = State::Thinking {
                closers: &CLOSERS[index..=index],
            };
            return rest;
        }
        if let Some((_, length)) = whole(&CLOSERS) {
            let rest = self.held.split_off(space + length);
            emit(segments, std::mem::take(&mut self.held), true);
            self.state = State::Closed;
            return rest;
        }
        if begun.starts_with(harmony::CHANNEL) {
            self.state = State::Harmony(Harmony::default());
            return std::mem::take(&mut self.held).split_off(space);
        }
        if tags().any(|tag| tag.starts_with(begun)) {
            return String::new();
        }
        self.state = State::Answer;
        std::mem::take(&mut self.held)
    }

    fn in_thinking(&mut self, text: &str, closers: &[&str], segments: &mut Vec<Segment>) -> String {
        const LONGEST_CLOSER_BYTES: usize = 24;
        let before = self.held.len();
        self.held.push_str(text);
        let end = closers
            .iter()
            .filter_map(|closer| Some((self.held.find(closer)?, closer.len())))
            .min();
        if let Some((at, length)) = end {
            let end = at + length - before;
            self.held.clear();
            self.state = State::Closed;
            emit(segments, text[..end].to_string(), true);
            return text[end..].to_string();
        }
        let mut keep_from = self.held.len().saturating_sub(LONGEST_CLOSER_BYTES);
        while !self.held.is_char_boundary(keep_from) {
            keep_from += 1;
        }
        self.held.drain(..keep_from);
        emit(segments, text.to_string(), true);
        String::new()
    }
}

fn emit(segments: &mut Vec<Segment>, text: String, thinking: bool) {
    if !text.is_empty() {
        segments.push(Segment { text, thinking });
    }
}
