//! Renders a folder of published chat templates against what Python makes of them. The folder is named by
//! `PLATEN_TEMPLATE_CASES`; without it the test says so and passes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use platen::engine::prompt::{
    ChatTemplate, Ending, ModelIdentity, RenderOptions, SpecialKind, SpecialToken, SpecialTokens,
    TemplateError, TemplateMessage, TokenizeError, Vocabulary,
};
use platen::engine::token::Role;
use platen::engine::token::TokenId;
use serde_json::Value;

/// Two special tokens and nothing else.
struct TwoTokens([SpecialToken; 2]);

impl TwoTokens {
    fn new(texts: [&str; 2]) -> TwoTokens {
        let token = |index: usize| SpecialToken {
            id: TokenId(i32::try_from(index).unwrap()),
            text: texts[index].to_string(),
            kind: SpecialKind::Control,
            ends_generation: index == 1,
        };
        TwoTokens([token(0), token(1)])
    }
}

impl Vocabulary for TwoTokens {
    fn tokenize(&self, _: &str, _: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        Ok(Vec::new())
    }
    fn piece(&self, id: TokenId) -> Vec<u8> {
        self.0
            .iter()
            .find(|token| token.id == id)
            .map(|token| token.text.clone().into_bytes())
            .unwrap_or_default()
    }
    fn is_control(&self, _: TokenId) -> bool {
        true
    }
    fn specials(&self) -> &[SpecialToken] {
        &self.0
    }
    fn add_bos(&self) -> bool {
        true
    }
    fn bos(&self) -> Option<TokenId> {
        Some(TokenId(0))
    }
    fn eos(&self) -> Option<TokenId> {
        Some(TokenId(1))
    }
    fn space_prefix(&self) -> bool {
        false
    }
}

fn role(name: &str) -> Role {
    match name {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => panic!("the role {other}"),
    }
}

fn check_file(path: &Path) -> (usize, Vec<String>) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let source = std::fs::read_to_string(path.with_extension("jinja")).unwrap();
    let text = |key: &str| cases[key].as_str().unwrap_or_default();
    let vocabulary = TwoTokens::new([text("bos_token"), text("eos_token")]);
    let model = ModelIdentity {
        name: &name,
        architecture: "llama",
    };
    let chosen = ChatTemplate::from_model(Some(&source), model, &vocabulary).unwrap();
    let mut failures = chosen.notices;
    let cases_of_file = cases["cases"].as_array().unwrap();
    for case in cases_of_file {
        let messages: Vec<TemplateMessage> = case["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| TemplateMessage {
                role: role(message["role"].as_str().unwrap()),
                content: message["content"].as_str().unwrap().to_string(),
            })
            .collect();
        let variables: BTreeMap<String, Value> = case["kwargs"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let ending = if case["add_generation_prompt"].as_bool().unwrap() {
            Ending::Reply
        } else {
            Ending::LastMessage
        };
        let options = RenderOptions {
            ending,
            variables,
            now: text("now").parse().unwrap(),
        };
        let rendered = chosen.template.render(&messages, &options);
        let right = match (&rendered, case["expect"].as_str(), case["raises"].as_str()) {
            (Ok(text), Some(expected), _) => text == expected,
            (Err(TemplateError::Raised { reason }), None, Some(expected)) => reason == expected,
            _ => false,
        };
        if !right {
            failures.push(format!("{name}, {}: {rendered:?}", case["case"]));
        }
    }
    (cases_of_file.len(), failures)
}

#[test]
fn published_templates_render_as_python_renders_them() {
    let Some(folder) = std::env::var_os("PLATEN_TEMPLATE_CASES") else {
        eprintln!(
            "SKIPPED: set PLATEN_TEMPLATE_CASES to a folder of templates to compare with Python's rendering"
        );
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "no cases in {}",
        Path::new(&folder).display()
    );
    let mut failures = Vec::new();
    let mut cases = 0;
    for file in &files {
        let (count, failed) = check_file(file);
        cases += count;
        failures.extend(failed);
    }
    eprintln!("{} templates, {cases} cases", files.len());
    assert!(
        failures.is_empty(),
        "{} of {cases} cases differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
