//! The conversation: messages with what was measured while they came, how they are kept on disk, and how they leave
//! it again.

pub mod export;
pub mod keeper;
pub mod record;
pub mod store;

use serde::{Deserialize, Serialize};

use crate::engine::event::StopReason;
use crate::engine::sampling::Sampling;
use crate::engine::stats::TurnStats;
use crate::engine::token::{PromptMessage, Role, TokenId, TokenRun};

use record::Growth;

/// Most characters of a title.
const TITLE_CHARS: usize = 80;

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text, whole and unchanged; what is drawn is made harmless on the way to the screen.
    pub text: String,
    /// The byte length of the model's thinking at the start of the text; 0 where there is none.
    pub thinking_len: usize,
    /// For a reply, its tokens.
    pub tokens: Option<TokenRun>,
    /// For a finished reply, why it ended.
    pub stop: Option<StopReason>,
    /// For a finished reply, its numbers.
    pub stats: Option<Box<TurnStats>>,
    /// For a reply, which model wrote it.
    pub author: Option<Author>,
    /// For a reply, how its first token was chosen.
    pub sampling: Option<Sampling>,
    /// For a reply, the settings changed in the middle of it, in order.
    pub sampling_changes: Vec<SamplingChange>,
}

/// A model that wrote a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Its name.
    pub model: String,
    /// Its vocabulary: the reply's token ids mean something to a model with the same one
    /// (see [`crate::engine::event::ModelFacts::vocabulary`]).
    pub vocabulary: String,
}

/// Settings that changed in the middle of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingChange {
    /// How many tokens the reply had.
    pub after_tokens: u32,
    /// The settings from there on.
    pub sampling: Sampling,
}

impl Message {
    /// A message that was written.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Message {
            role,
            text: text.into(),
            thinking_len: 0,
            tokens: None,
            stop: None,
            stats: None,
            author: None,
            sampling: None,
            sampling_changes: Vec::new(),
        }
    }

    /// Appends text of which the first `thinking_len` bytes are the model's thinking; once an answer has begun,
    /// nothing is.
    pub fn append(&mut self, text: &str, thinking_len: usize) {
        if self.thinking_len == self.text.len() {
            self.thinking_len += text.get(..thinking_len).map_or(text.len(), str::len);
        }
        self.text.push_str(text);
    }

    /// As the engine takes it, for a model with this vocabulary: token ids of another one mean nothing to it.
    #[must_use]
    pub fn to_prompt(&self, vocabulary: &str) -> PromptMessage {
        let same = |author: &Author| author.vocabulary == vocabulary;
        let readable = self.author.as_ref().is_some_and(same);
        PromptMessage {
            role: self.role,
            text: self.text.clone(),
            tokens: self.tokens.clone().filter(|_| readable),
        }
    }
}

/// What a reply that grows knows beyond its text: which of its tokens the text stands for already.
#[derive(Debug, Clone, Default)]
pub struct Growing {
    /// Tokens whose text has not appeared whole.
    held: Vec<TokenId>,
    /// Bytes that all tokens stand for.
    token_bytes: usize,
}

impl Growing {
    /// Lets `reply` grow. Its tokens are those that stand for text that has appeared: what is held back, for it may
    /// be the beginning of a stop text or of a character, is no part of them yet.
    pub fn grow(&mut self, reply: &mut Message, growth: &Growth) {
        reply.append(&growth.text, growth.thinking_len);
        self.held.push(growth.token);
        self.token_bytes += growth.token_bytes;
        if self.token_bytes == reply.text.len() {
            let run = reply.tokens.get_or_insert_with(TokenRun::default);
            run.ids.append(&mut self.held);
            run.text_len = reply.text.len();
        }
    }
}

/// How a reply ended, where it did not end by itself.
#[must_use]
pub fn cut_short(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Eog => None,
        StopReason::Stop => Some("ended by a stop text"),
        StopReason::MaxTokens => Some("cut at max tokens"),
        StopReason::Context => Some("cut: context full"),
        StopReason::Cancelled => Some("stopped by you"),
        StopReason::Error => Some("cut by an error"),
        StopReason::Interrupted => Some("cut off: platen ended here"),
    }
}

/// The title of a chat that begins with this text: its first line that says something, cut where it is long.
#[must_use]
pub fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(title_of("\n  \n What is\nthis?"), "What is");
        assert_eq!(title_of(""), "");
        let long = title_of(&"é".repeat(200));
        assert_eq!(long.chars().count(), TITLE_CHARS + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn thinking_ends_where_the_answer_begins() {
        let mut reply = Message::new(Role::Assistant, "");
        reply.append("hm", 2);
        reply.append(" so: yes", 4);
        reply.append("no thought any more", 5);
        assert_eq!(&reply.text[..reply.thinking_len], "hm so:");
    }

    #[test]
    fn tokens_of_held_back_text_wait_for_it() {
        let mut reply = Message::new(Role::Assistant, "");
        let mut growing = Growing::default();
        let mut grow = |text: &str, token: i32, token_bytes: usize| {
            let growth = Growth {
                text: text.into(),
                thinking_len: 0,
                token: TokenId(token),
                token_bytes,
            };
            growing.grow(&mut reply, &growth);
            let run = reply.tokens.clone().unwrap_or_default();
            (run.ids.len(), run.text_len)
        };
        assert_eq!(grow("ab", 1, 2), (1, 2));
        assert_eq!(grow("", 2, 2), (1, 2), "half a character");
        assert_eq!(grow("é!", 3, 1), (3, 5));
        assert_eq!(grow("", 4, 3), (3, 5));
    }

    #[test]
    fn token_ids_go_only_to_a_model_with_the_same_vocabulary() {
        let mut reply = Message::new(Role::Assistant, "x");
        reply.tokens = Some(TokenRun::default());
        assert_eq!(
            reply.to_prompt("a").tokens,
            None,
            "nobody knows whose they are"
        );
        reply.author = Some(Author {
            model: "m".into(),
            vocabulary: "a".into(),
        });
        assert!(reply.to_prompt("a").tokens.is_some());
        assert_eq!(reply.to_prompt("b").tokens, None);
    }
}
