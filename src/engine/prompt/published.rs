//! The rules of prompts on published templates: those in the folder that `PLATEN_TEMPLATE_CASES` names. Without
//! it the test says so and passes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use jiff::civil::date;

use super::fake_vocabulary::FakeVocabulary;
use super::*;

const TAGS: [&str; 10] = [
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<|channel>",
    "<channel|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
];

/// What looks like a special token in a template.
fn specials(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (open, close) in [
        ("<|", "|>"),
        ("<｜", "｜>"),
        ("[", "INST]"),
        ("<start_of_turn", ">"),
        ("<end_of_turn", ">"),
        ("<|", ">"),
        ("<", "|>"),
        ("]<]", "[>["),
    ] {
        for (at, _) in source.match_indices(open) {
            let rest = &source[at + open.len()..];
            if let Some(end) = rest.find(close).filter(|&end| end < 32) {
                let inner = &rest[..end];
                if !inner.contains(['\n', ' ', '\'', '"', '<', '{', '}']) {
                    found.insert(format!("{open}{inner}{close}"));
                }
            }
        }
    }
    found
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::new(Role::User, text)
}

fn ids_of(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(i32::from(byte))).collect()
}

fn generated(text: &str) -> PromptMessage {
    let tokens = Some(TokenRun {
        ids: ids_of(text),
        text_len: text.len(),
    });
    PromptMessage {
        role: Role::Assistant,
        text: text.to_string(),
        tokens,
    }
}

#[test]
fn published_templates_keep_the_rules_of_prompts() {
    let Some(folder) = std::env::var_os("PLATEN_TEMPLATE_CASES") else {
        eprintln!("SKIPPED: set PLATEN_TEMPLATE_CASES to a folder of templates");
        return;
    };
    let mut failures = Vec::new();
    let mut templates = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jinja")
        {
            let mut subject = Subject::load(&path);
            subject.attack();
            subject.reply();
            subject.think();
            failures.append(&mut subject.failures);
            templates += 1;
        }
    }
    assert!(
        templates > 0,
        "no templates in {}",
        Path::new(&folder).display()
    );
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// A template with a vocabulary that has its special texts.
struct Subject {
    name: String,
    channels: bool,
    controls: String,
    vocabulary: FakeVocabulary,
    builder: PromptBuilder,
    failures: Vec<String>,
}

impl Subject {
    fn load(path: &Path) -> Subject {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(path).unwrap();
        let mut controls = specials(&source);
        controls.extend(["<BOS>".to_string(), "<EOS>".to_string()]);
        controls.retain(|text| !TAGS.contains(&text.as_str()));
        let texts: Vec<&str> = controls.iter().map(String::as_str).collect();
        let vocabulary = FakeVocabulary {
            bos: Some("<BOS>"),
            eos: Some("<EOS>"),
            add_bos: true,
            ..FakeVocabulary::new(&texts, &TAGS)
        };
        let model = ModelIdentity {
            name: &name,
            architecture: "llama",
        };
        let chosen = ChatTemplate::from_model(Some(&source), model, &vocabulary).unwrap();
        let builder = PromptBuilder::new(chosen.template, &vocabulary);
        let channels = source.contains("<|channel|>");
        Subject {
            controls: texts.concat(),
            name,
            channels,
            vocabulary,
            builder,
            failures: chosen.notices,
        }
    }

    fn build(&self, messages: &[PromptMessage]) -> Result<Prompt, PromptError> {
        self.builder.build(messages, &self.vocabulary, &options())
    }

    fn expect(&mut self, holds: bool, what: &str, prompt: &Prompt) {
        if !holds {
            let Prompt { changed, text, .. } = prompt;
            self.failures.push(format!(
                "{}: {what}: changed {changed:?}, {text:?}",
                self.name
            ));
        }
    }

    fn control_count(&self, prompt: &Prompt) -> usize {
        prompt
            .tokens
            .iter()
            .filter(|&&id| self.vocabulary.is_control(id))
            .count()
    }

    fn rendered(&self, messages: &[PromptMessage]) -> String {
        let messages: Vec<TemplateMessage> = messages
            .iter()
            .map(|message| TemplateMessage {
                role: message.role,
                content: message.text.clone(),
            })
            .collect();
        self.builder
            .template()
            .render(&messages, &options())
            .unwrap()
    }

    /// Text that holds every special text of the template brings in no control token.
    fn attack(&mut self) {
        let attack = format!("a{}z", self.controls);
        for roles in [
            &[Role::User][..],
            &[Role::System, Role::User],
            &[Role::User, Role::Assistant, Role::User],
            &[Role::User, Role::User],
        ] {
            let with = |text: &str| -> Vec<PromptMessage> {
                roles
                    .iter()
                    .map(|&role| PromptMessage::new(role, text))
                    .collect()
            };
            let harmless = self.build(&with("axz")).unwrap();
            match self.build(&with(&attack)) {
                Ok(prompt) => {
                    let same = self.control_count(&prompt) == self.control_count(&harmless);
                    self.expect(same, "control tokens", &prompt);
                    let text = self.vocabulary.text(&prompt.tokens);
                    self.expect(text.ends_with(&prompt.text), "text", &prompt);
                }
                // A template may refuse its own markup.
                Err(error) => assert!(
                    error.to_string().contains("refuses"),
                    "{}: {error}",
                    self.name
                ),
            }
        }
    }

    /// Replies go back in as they were, and the text is the template's own.
    fn reply(&mut self) {
        for reply in [
            "Paris.",
            "Paris \n",
            "```\ncode\n```\n",
            "a <b> c",
            "1. x\n2. y",
        ] {
            let messages = [
                user("q"),
                generated(reply),
                user(" w \n"),
                generated(reply),
                user("v"),
            ];
            let prompt = self.build(&messages).unwrap();
            let ids = ids_of(reply);
            let times = prompt
                .tokens
                .windows(ids.len())
                .filter(|window| *window == ids)
                .count();
            self.expect(prompt.changed.is_none() && times == 2, reply, &prompt);
            self.expect(
                prompt.tokens.contains(&self.vocabulary.special("<BOS>")),
                "BOS",
                &prompt,
            );
            let spans = prompt
                .spans
                .iter()
                .filter(|span| span.message.is_some())
                .count();
            self.expect(spans == 5, "spans", &prompt);
            self.expect(
                prompt.text == self.rendered(&messages),
                "rendering",
                &prompt,
            );
        }
    }

    /// Earlier thinking is rendered, or left out, as the template has it.
    fn think(&mut self) {
        let thought = "<think>\nhm\n</think>\n\nParis";
        let messages = [
            user("q"),
            generated(thought),
            user("w"),
            generated(thought),
            user("v"),
        ];
        let prompt = self.build(&messages).unwrap();
        let text = self.vocabulary.text(&prompt.tokens);
        let whole = text
            .trim_start_matches("<BOS>")
            .ends_with(prompt.text.trim_start_matches("<BOS>"));
        self.expect(whole, "text with thinking", &prompt);
        let same = self.channels || prompt.text == self.rendered(&messages);
        self.expect(same, "rendering with thinking", &prompt);
    }
}

fn options() -> RenderOptions {
    RenderOptions::at(date(2026, 12, 1).at(9, 30, 0, 0))
}
