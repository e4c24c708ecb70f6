//! The visible reply, assembled from the bytes of its tokens: whole characters only, nothing of a stop string,
//! the model's thinking told from its answer. However the bytes are cut into tokens, the reply is the same.

mod harmony;
mod stops;
mod thinking;
mod utf8;

pub use thinking::{THINKING_OPENERS, THINKING_TAGS, strip_thinking};

use stops::StopFinder;
use thinking::ThinkingSplitter;
use utf8::Utf8Decoder;

/// Text of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// Whether it is the model's thinking.
    pub thinking: bool,
}

/// What a token let appear.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pushed {
    /// New text, thinking first; often none or one.
    pub segments: Vec<Segment>,
    /// Whether a stop string is complete: the reply has ended.
    pub stopped: bool,
}

impl Pushed {
    /// The new text.
    #[must_use]
    pub fn text(&self) -> String {
        self.segments
            .iter()
            .map(|segment| segment.text.as_str())
            .collect()
    }

    /// Whether the last of the new text is thinking.
    #[must_use]
    pub fn thinking(&self) -> bool {
        self.segments.last().is_some_and(|segment| segment.thinking)
    }
}

/// The tokens that stand wholly before the end of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How many, from the first.
    pub tokens: usize,
    /// How many bytes of the reply's text they stand for.
    pub text_len: usize,
}

/// A reply being generated.
#[derive(Debug)]
pub struct ReplyStream {
    decoder: Utf8Decoder,
    stops: StopFinder,
    thinking: ThinkingSplitter,
    reply: String,
    thinking_len: usize,
    token_ends: Vec<TokenEnd>,
}

#[derive(Debug, Clone, Copy)]
struct TokenEnd {
    decoded_len: usize,
    inside_character: bool,
}

impl ReplyStream {
    /// A reply that ends at any of `stops` (empty ones are ignored) and that `opens_thinking` where the prompt
    /// ended inside the model's thinking.
    #[must_use]
    pub fn new(stops: &[String], opens_thinking: bool) -> ReplyStream {
        ReplyStream {
            decoder: Utf8Decoder::default(),
            stops: StopFinder::new(stops),
            thinking: ThinkingSplitter::new(opens_thinking),
            reply: String::new(),
            thinking_len: 0,
            token_ends: Vec::new(),
        }
    }

    /// Whether a control token's text should be pushed like any other token's: it tells thinking from answer.
    /// Other control tokens are pushed as no bytes.
    #[must_use]
    pub fn wants_control_text(text: &str) -> bool {
        thinking::is_markup(text)
    }

    /// Takes the bytes of the next token. After a stop string nothing is taken any more.
    pub fn push(&mut self, bytes: &[u8]) -> Pushed {
        if self.stops.stopped() {
            return Pushed {
                segments: Vec::new(),
                stopped: true,
            };
        }
        let text = self.decoder.push(bytes);
        let released = self.stops.push(&text);
        self.token_ends.push(TokenEnd {
            decoded_len: self.stops.decoded_len(),
            inside_character: self.decoder.inside_character(),
        });
        let segments = self.thinking.push(&released);
        self.take(segments)
    }

    /// Ends the reply: what was held back comes out, unless a stop string cuts it.
    pub fn finish(&mut self) -> Pushed {
        let tail = self.decoder.finish();
        let mut released = self.stops.push(&tail);
        released.push_str(&self.stops.finish());
        let mut segments = self.thinking.push(&released);
        segments.extend(self.thinking.finish());
        self.take(segments)
    }

    fn take(&mut self, segments: Vec<Segment>) -> Pushed {
        let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
        for segment in segments {
            self.reply.push_str(&segment.text);
            if segment.thinking {
                self.thinking_len = self.reply.len();
            }
            match joined.last_mut() {
                Some(last) if last.thinking == segment.thinking => {
                    last.text.push_str(&segment.text);
                }
                _ if segment.text.is_empty() => {}
                _ => joined.push(segment),
            }
        }
        Pushed {
            segments: joined,
            stopped: self.stops.stopped(),
        }
    }

    /// The reply so far: all text that appeared.
    #[must_use]
    pub fn reply(&self) -> &str {
        &self.reply
    }

    /// How many bytes at the start of the reply are thinking, its tags and the space after it included.
    #[must_use]
    pub fn thinking_len(&self) -> usize {
        self.thinking_len
    }

    /// Whether a stop string ended the reply.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stops.stopped()
    }

    /// The tokens to keep of an ended reply: all, or those before the stop string.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let Some(end) = self.stops.match_start().filter(|_| self.stops.stopped()) else {
            return Kept {
                tokens: self.token_ends.len(),
                text_len: self.reply.len(),
            };
        };
        let whole = |token: &TokenEnd| token.decoded_len <= end && !token.inside_character;
        let tokens = self
            .token_ends
            .iter()
            .rposition(whole)
            .map_or(0, |last| last + 1);
        let decoded_len = tokens
            .checked_sub(1)
            .map_or(0, |last| self.token_ends[last].decoded_len);
        let text_len = if self.thinking.rewrites() {
            self.reply.len()
        } else {
            decoded_len.min(self.reply.len())
        };
        Kept { tokens, text_len }
    }
}

#[cfg(test)]
mod tests;
