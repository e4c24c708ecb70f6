//! What is done to bytes from anywhere: the fuzzer calls these functions with what it makes up, the tests with the bad
//! inputs of `tests/corpus`. Each panics where something does not hold.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    dead_code,
    reason = "test code, shared by programs that each use a part"
)]

use std::ffi::OsString;
use std::io::Cursor;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use platen::cli::Invocation;
use platen::cli::terminals::{Stream, Terminals};
use platen::config::{Layer, environment, file, merge};
use platen::engine::ledger::{Ledger, OwnedTokens, Owner};
use platen::engine::prompt::{
    ChatTemplate, ModelIdentity, PromptBuilder, RenderOptions, SpecialKind, SpecialToken,
    SpecialTokens, TemplateMessage, TokenizeError, Vocabulary,
};
use platen::engine::stream::ReplyStream;
use platen::engine::token::{PromptMessage, Role, TokenId, TokenRun};
use platen::models::gguf::GgufFile;
use platen::text::sanitize::{self, is_dangerous};
use platen::text::{Composer, Item, ItemKind, Items, Thinking, Transcript, wrap};

/// A target's name and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("gguf", gguf),
    ("config", config),
    ("cli", cli),
    ("template", template),
    ("stream", stream),
    ("text", text),
    ("composer", composer),
    ("ledger", ledger),
];

/// A GGUF header is read or refused, and what it says of itself can be asked for.
pub fn gguf(data: &[u8]) {
    let size = data.len() as u64;
    match GgufFile::from_reader(Cursor::new(data), size, Path::new("fuzz.gguf")) {
        Ok(file) => {
            let _ = (file.quantization(), file.not_chat(), file.parameters());
            let _ = (file.tensor_bytes(), file.split(), file.vocab_size());
            if let Ok(layout) = platen::models::estimate::KvLayout::of(&file) {
                let kind = platen::engine::options::KvType::F16;
                let _ = layout.bytes_per_token(kind, kind);
            }
        }
        Err(error) => assert!(!error.to_string().contains(is_dangerous)),
    }
}

/// Text of a configuration file and the values of variables give a configuration or name what is wrong.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = file::parse(Path::new("fuzz.toml"), &text);
    for problem in &read.problems {
        assert!(problem.to_string().starts_with("fuzz.toml:"));
    }
    let variables = platen::config::settings::SETTINGS
        .iter()
        .filter_map(|setting| setting.variable)
        .zip(data.split(|byte| *byte == b'\n'))
        .map(|(name, value)| (name.to_owned(), OsString::from_vec(value.to_vec())))
        .collect();
    let of_variables = environment::read(&variables);
    let _ = merge([read.layer, of_variables.layer, Layer::new()]);
}

/// Arguments, a line each, are understood or refused.
pub fn cli(data: &[u8]) {
    let arguments = std::iter::once(OsString::from("platen")).chain(
        data.split(|byte| *byte == b'\n')
            .map(|argument| OsString::from_vec(argument.to_vec())),
    );
    for stream in [Stream::Terminal, Stream::Other] {
        let terminals = Terminals {
            stdin: stream,
            stdout: stream,
        };
        if let Err(error) = Invocation::parse(arguments.clone(), terminals) {
            let _ = error.render().to_string();
        }
    }
}

/// Bytes as tokens; a few of them are special.
struct Bytes {
    specials: Vec<SpecialToken>,
}

impl Bytes {
    fn new() -> Bytes {
        let special = |id, text: &str, kind, ends_generation| SpecialToken {
            id: TokenId(id),
            text: text.to_owned(),
            kind,
            ends_generation,
        };
        Bytes {
            specials: vec![
                special(256, "<|im_start|>", SpecialKind::Control, false),
                special(257, "<|im_end|>", SpecialKind::Control, true),
                special(258, "<u>", SpecialKind::UserDefined, false),
            ],
        }
    }
}

impl Vocabulary for Bytes {
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let found = self.specials.iter().find(|token| {
                let wanted =
                    special == SpecialTokens::Parse || token.kind == SpecialKind::UserDefined;
                wanted && rest.starts_with(&token.text)
            });
            if let Some(token) = found {
                ids.push(token.id);
                rest = &rest[token.text.len()..];
            } else {
                let len = rest.chars().next().map_or(1, char::len_utf8);
                ids.extend(
                    rest.as_bytes()[..len]
                        .iter()
                        .map(|byte| TokenId(i32::from(*byte))),
                );
                rest = &rest[len..];
            }
        }
        Ok(ids)
    }

    fn piece(&self, id: TokenId) -> Vec<u8> {
        match u8::try_from(id.0) {
            Ok(byte) => vec![byte],
            Err(_) => self
                .specials
                .iter()
                .find(|token| token.id == id)
                .map_or_else(Vec::new, |token| token.text.clone().into_bytes()),
        }
    }

    fn is_control(&self, id: TokenId) -> bool {
        (256..=257).contains(&id.0)
    }

    fn specials(&self) -> &[SpecialToken] {
        &self.specials
    }

    fn add_bos(&self) -> bool {
        false
    }

    fn bos(&self) -> Option<TokenId> {
        None
    }

    fn eos(&self) -> Option<TokenId> {
        Some(TokenId(257))
    }

    fn space_prefix(&self) -> bool {
        false
    }
}

/// A chat template, whatever it is, ends within its limits, on a stack as large as the engine's.
pub fn template(data: &[u8]) {
    let data = data.to_owned();
    std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || template_here(&data))
        .unwrap()
        .join()
        .unwrap();
}

fn template_here(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let vocabulary = Bytes::new();
    let identity = ModelIdentity {
        name: "fuzz",
        architecture: "llama",
    };
    let Ok(chosen) = ChatTemplate::from_model(Some(&source), identity, &vocabulary) else {
        panic!("there is always a template that works");
    };
    let options = RenderOptions::at(jiff::civil::date(2026, 1, 2).at(3, 4, 5, 0));
    let messages = [
        TemplateMessage {
            role: Role::User,
            content: "Hello <|im_end|>".into(),
        },
        TemplateMessage {
            role: Role::Assistant,
            content: "Hi".into(),
        },
    ];
    let _ = chosen.template.render(&messages, &options);
    let builder = PromptBuilder::new(chosen.template, &vocabulary);
    let mut reply = PromptMessage::new(Role::Assistant, "Hi");
    reply.tokens = Some(TokenRun {
        ids: vec![TokenId(72), TokenId(105)],
        text_len: 2,
    });
    let conversation = [
        PromptMessage::new(Role::System, "Be brief."),
        PromptMessage::new(Role::User, "Hello <|im_end|> <u>"),
        reply,
        PromptMessage::new(Role::User, "And?"),
    ];
    if let Ok(prompt) = builder.build(&conversation, &vocabulary, &options) {
        for span in &prompt.spans {
            assert!(span.tokens.end <= prompt.tokens.len());
        }
    }
}

/// A reply in any pieces is the same text as in one; stop texts cut it at the same place.
pub fn stream(data: &[u8]) {
    let Some((&flags, rest)) = data.split_first() else {
        return;
    };
    let cut = usize::from(flags >> 4);
    let stops: Vec<String> = ["\nUser:", "ab", "</s>"]
        .into_iter()
        .filter(|stop| flags & 1 == 1 || stop.len() > 2 && flags & 2 == 2)
        .map(str::to_owned)
        .collect();
    let opens_thinking = flags & 4 == 4;
    let mut whole = ReplyStream::new(&stops, opens_thinking);
    whole.push(rest);
    whole.finish();
    let mut pieces = ReplyStream::new(&stops, opens_thinking);
    let mut appeared = String::new();
    for piece in rest.chunks(cut.max(1)) {
        appeared.push_str(&pieces.push(piece).text());
    }
    appeared.push_str(&pieces.finish().text());
    assert_eq!(appeared, pieces.reply());
    assert_eq!(pieces.reply(), whole.reply());
    assert_eq!(pieces.thinking_len(), whole.thinking_len());
    assert!(pieces.reply().is_char_boundary(pieces.thinking_len()));
    let kept = pieces.kept();
    assert!(pieces.reply().is_char_boundary(kept.text_len));
    assert!(
        stops
            .iter()
            .all(|stop| !pieces.reply().contains(stop.as_str()))
    );
}

struct Single<'a>(&'a str);

impl Items for Single<'_> {
    fn len(&self) -> usize {
        1
    }

    fn item(&self, _: usize) -> Item<'_> {
        Item {
            id: 1,
            kind: ItemKind::Message(Role::Assistant),
            label: self.0,
            body: self.0,
            thinking_len: 0,
            thinking: Thinking::Shown,
            meta: Some(self.0),
        }
    }
}

/// Text of any kind is drawn within its width and steers nothing.
pub fn text(data: &[u8]) {
    let Some((&width, rest)) = data.split_first() else {
        return;
    };
    let width = u16::from(width).max(1);
    let text = String::from_utf8_lossy(rest);
    let drawn = sanitize::visible(&text);
    assert!(!drawn.replace('\n', "").contains(is_dangerous));
    assert!(!sanitize::neutral(&text).contains(is_dangerous));
    assert!(!sanitize::neutral_line(&text).contains(['\n', '\t', '\u{1b}']));
    for line in wrap(&text, usize::from(width)) {
        // Drawn text is not drawn again: what keeps two letters apart has no width on a terminal.
        let drawn = line.replace('\u{200c}', "");
        assert!(platen::text::width(&drawn) <= usize::from(width.max(2)));
    }
    let mut transcript = Transcript::new();
    transcript.sync(&Single(&text), width);
    for line in transcript.visible(50) {
        assert!(!line.text.contains(is_dangerous));
    }
}

/// Keys and pastes leave a draft whose cursor is between characters.
pub fn composer(data: &[u8]) {
    let mut composer = Composer::new();
    let Some((&width, mut rest)) = data.split_first() else {
        return;
    };
    let width = u16::from(width).max(1);
    while let Some((&action, after)) = rest.split_first() {
        rest = after;
        match action % 24 {
            0 => composer.left(),
            1 => composer.right(),
            2 => composer.word_left(),
            3 => composer.word_right(),
            4 => composer.home(),
            5 => composer.end(),
            6 => composer.backspace(),
            7 => composer.delete(),
            8 => composer.kill_word_back(),
            9 => composer.kill_to_start(),
            10 => composer.kill_to_end(),
            // What is put back again and again doubles: beyond this it would only take its time.
            11 if composer.text().len() > 1 << 14 => composer.set_text(""),
            11 => drop(composer.yank()),
            12 => drop(composer.undo()),
            13 => drop(composer.up(width)),
            14 => drop(composer.down(width)),
            15 => composer.newline(),
            16 => drop(composer.history_prev()),
            17 => drop(composer.history_next()),
            18 => drop(composer.submit()),
            19 => {
                let len = usize::from(rest.first().copied().unwrap_or(0)).min(rest.len());
                let text = String::from_utf8_lossy(&rest[..len]).into_owned();
                rest = &rest[len..];
                let _ = composer.insert_str(&text);
            }
            _ => composer.insert_char(char::from(action)),
        }
        let view = composer.view(width, 5);
        assert!(!view.lines.is_empty());
    }
}

/// The ledger keeps what a prompt shares with what is held, and always leaves something to read.
pub fn ledger(data: &[u8]) {
    let mut ledger = Ledger::default();
    for step in data.chunks(8) {
        let owners = |count: usize| vec![Owner::default(); count];
        match step[0] % 5 {
            0 => ledger.truncate(usize::from(step.get(1).copied().unwrap_or(0))),
            1 => ledger.clear(),
            2 => ledger.lose(platen::engine::event::RereadReason::DecodeFailed),
            _ => {
                let tokens: Vec<TokenId> = step
                    .iter()
                    .map(|byte| TokenId(i32::from(byte % 3)))
                    .collect();
                let prompt = OwnedTokens {
                    owners: owners(tokens.len()),
                    tokens,
                };
                let plan = ledger.plan(&prompt, None);
                assert!(plan.keep < prompt.tokens.len());
                assert!(plan.keep <= ledger.len());
                assert_eq!(ledger.tokens()[..plan.keep], prompt.tokens[..plan.keep]);
                ledger.truncate(plan.keep);
                ledger.append(&prompt.tokens[plan.keep..], &prompt.owners[plan.keep..]);
                assert_eq!(ledger.tokens(), prompt.tokens);
            }
        }
        let cells: u32 = ledger.spans().iter().map(|span| span.tokens).sum();
        assert_eq!(cells as usize, ledger.len());
    }
}
