//! Replies in channels (`<|channel|>analysis<|message|>…<|end|>`): the final channel is the answer, the others are
//! thinking. The markup is replaced by the tags that other models use, so that nothing after this knows of it.

use super::Segment;

/// Begins a channel's name.
pub const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
/// The control tokens of the format.
pub const MARKS: [&str; 7] = [
    CHANNEL,
    MESSAGE,
    "<|start|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|constrain|>",
];
/// What ends a channel's text.
const BODY_ENDS: [&str; 5] = [CHANNEL, "<|start|>", "<|end|>", "<|return|>", "<|call|>"];

/// What stands before thinking in the reply's text.
pub const THINKING_START: &str = "<think>";
/// What stands after it.
pub const THINKING_END: &str = "</think>";
/// Begins the answer, as the model writes it.
pub const FINAL_START: &str = "<|channel|>final<|message|>";
/// Begins thinking, as the model writes it.
pub const ANALYSIS_START: &str = "<|channel|>analysis<|message|>";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before a message's text.
    #[default]
    Header,
    Thinking,
    Answer,
}

/// Reads channels from text that comes in pieces.
#[derive(Debug, Default)]
pub struct Harmony {
    place: Place,
    held: String,
    thought: bool,
    answered: bool,
}

impl Harmony {
    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<Segment> {
        self.held.push_str(text);
        let mut segments = Vec::new();
        while match self.place {
            Place::Header => self.read_header(&mut segments),
            Place::Thinking | Place::Answer => self.read_body(&mut segments),
        } {}
        segments
    }

    /// Text that was no markup after all.
    pub fn finish(&mut self) -> Vec<Segment> {
        let text = std::mem::take(&mut self.held);
        match self.place {
            Place::Header => Vec::new(),
            Place::Thinking | Place::Answer => self.segment(text).into_iter().collect(),
        }
    }

    fn segment(&self, text: String) -> Option<Segment> {
        (!text.is_empty()).then_some(Segment {
            text,
            thinking: self.place == Place::Thinking,
        })
    }

    /// Returns whether there may be more to read.
    fn read_header(&mut self, segments: &mut Vec<Segment>) -> bool {
        let Some(end) = self.held.find(MESSAGE) else {
            return false;
        };
        let header = &self.held[..end];
        let name = header
            .rfind(CHANNEL)
            .map_or("final", |at| header[at + CHANNEL.len()..].trim_start());
        // Thinking after an answer has no place of its own; it is shown rather than lost.
        let thinking = !name.starts_with("final") && !self.answered;
        self.held.drain(..end + MESSAGE.len());
        if thinking {
            self.place = Place::Thinking;
            let opening = if self.thought { "\n\n" } else { THINKING_START };
            self.thought = true;
            segments.push(Segment {
                text: opening.to_string(),
                thinking: true,
            });
        } else {
            if self.thought && !self.answered {
                segments.push(Segment {
                    text: THINKING_END.to_string(),
                    thinking: true,
                });
            }
            self.place = Place::Answer;
            self.answered = true;
        }
        true
    }

    fn read_body(&mut self, segments: &mut Vec<Segment>) -> bool {
        let end = BODY_ENDS
            .iter()
            .filter_map(|mark| Some((self.held.find(mark)?, *mark)))
            .min();
        let Some((at, mark)) = end else {
            let rest = self
                .held
                .split_off(self.held.len() - unfinished_mark(&self.held));
            let text = std::mem::replace(&mut self.held, rest);
            segments.extend(self.segment(text));
            return false;
        };
        let text: String = self.held.drain(..at).collect();
        segments.extend(self.segment(text));
        if mark != CHANNEL {
            self.held.drain(..mark.len());
        }
        self.place = Place::Header;
        true
    }
}

/// How many bytes at the end may begin a mark.
fn unfinished_mark(text: &str) -> usize {
    BODY_ENDS
        .iter()
        .flat_map(|mark| (1..mark.len()).filter(|&length| text.ends_with(&mark[..length])))
        .max()
        .unwrap_or(0)
}
