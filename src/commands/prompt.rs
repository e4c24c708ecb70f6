//! `platen prompt`: exactly what the model sees, as text and as token ids.

use std::io::{Read, Write, stdin};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use super::headless::{Headless, Listener, notice, opening};
use crate::config::Config;
use crate::engine::event::Event;
use crate::engine::token::{PromptMessage, Role};
use crate::text::sanitize;

/// The largest conversation file taken, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

#[derive(Deserialize)]
struct WrittenMessage {
    role: Role,
    content: String,
}

struct Notices;

impl Listener for Notices {
    fn on_event(&mut self, event: &Event) -> std::io::Result<()> {
        if let Event::Notice { text } = event {
            notice(text);
        }
        Ok(())
    }
}

/// Shows the conversation in `messages` (`-`: standard input; `None`: a one-word example) as the model at `path` would
/// read it: the text, then a line a token with its id.
///
/// # Errors
/// The file can't be read or is no list of messages, the model can't be loaded, or its template refuses.
pub fn run(
    path: &Path,
    config: &Config,
    messages: Option<&Path>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut conversation = opening(config);
    match messages {
        Some(file) => conversation.extend(read(file)?),
        None => conversation.push(PromptMessage::new(Role::User, "Hello")),
    }
    let mut engine = Headless::open(path, config, &mut Notices)?;
    let Event::Prompt { text, tokens, .. } = engine.prompt(conversation)? else {
        unreachable!("prompt returns no other event")
    };
    writeln!(out, "{}", sanitize::neutral(&text))?;
    writeln!(out, "\n{} tokens", tokens.len())?;
    for token in tokens {
        let kind = if token.control { "  control" } else { "" };
        writeln!(
            out,
            "{:>8}  {}{kind}",
            token.id.0,
            sanitize::neutral(&format!("{:?}", token.text))
        )?;
    }
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<Vec<PromptMessage>> {
    let (name, source): (String, Box<dyn Read>) = if file == Path::new("-") {
        ("standard input".to_owned(), Box::new(stdin()))
    } else {
        let name = file.display().to_string();
        let opened =
            std::fs::File::open(file).with_context(|| format!("{name} can't be opened"))?;
        (name, Box::new(opened))
    };
    let mut text = String::new();
    source
        .take(LARGEST_FILE)
        .read_to_string(&mut text)
        .with_context(|| format!("{name} can't be read"))?;
    let messages: Vec<WrittenMessage> = serde_json::from_str(&text)
        .with_context(|| format!(r#"{name} is no JSON list of {{"role": …, "content": …}}"#))?;
    Ok(messages
        .into_iter()
        .map(|message| PromptMessage::new(message.role, message.content))
        .collect())
}
