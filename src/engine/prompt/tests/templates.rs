//! Which template is used, what it may do, and conversations that it refuses.

use super::*;

#[test]
fn a_refused_conversation_is_brought_into_a_form_that_is_taken() {
    let vocabulary = mistral_vocabulary();
    let cases: [(&[PromptMessage], &str); 6] = [
        (&[system("S"), user("a")], "<s>[INST] S\n\na [/INST]"),
        (&[user("a"), user("b")], "<s>[INST] a\n\nb [/INST]"),
        (
            &[user("a"), written(""), user("b")],
            "<s>[INST] a [/INST] </s>[INST] b [/INST]",
        ),
        (
            &[system("S"), user("a"), user("b")],
            "<s>[INST] S\n\na\n\nb [/INST]",
        ),
        (
            &[user("a"), written("x"), written(""), user("b")],
            "<s>[INST] a [/INST] x</s>[INST] b [/INST]",
        ),
        (
            &[user("a"), user("b"), generated("x"), system("S"), user("c")],
            "<s>[INST] a\n\nb [/INST] x</s>[INST] S\n\nc [/INST]",
        ),
    ];
    for (messages, expected) in cases {
        let prompt = build(STRICT, &vocabulary, messages);
        assert_eq!(prompt.text, expected);
        assert_eq!(
            prompt.notices.is_empty(),
            messages.len() == 3 && messages[1].text.is_empty(),
            "{expected}"
        );
        assert_eq!(prompt.changed, None);
    }
}

#[test]
fn a_system_message_that_a_template_ignores_is_sent_with_the_user_turn() {
    let template = "{% for m in messages %}{% if m.role != 'system' %}{{ m.role + ':' + m.content }}\n{% endif %}{% endfor %}";
    let prompt = build(
        template,
        &chatml_vocabulary(),
        &[system("Say ZEBRA"), user("hi")],
    );
    assert_eq!(prompt.text, "user:Say ZEBRA\n\nhi\n");
    assert_eq!(prompt.notices.len(), 1);
}

#[test]
fn a_conversation_that_no_form_helps_fails_with_the_templates_words() {
    let template =
        "{% if messages[0].content != 'Hello' %}{{ raise_exception('only Hello') }}{% endif %}x";
    let vocabulary = chatml_vocabulary();
    let error = builder(template, &vocabulary)
        .build(&[user("no")], &vocabulary, &options())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the chat template refuses this conversation: only Hello"
    );
}

#[test]
fn broken_and_endless_templates_are_replaced_with_a_notice() {
    let long = format!("{}{}", "{% if x %}".repeat(5_000), "y".repeat(50_000));
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    for source in [
        "{% if",
        "{{ messages | no_such_filter }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='xxxxxxxx') %}{% for a in range(999) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        &long,
        &deep,
    ] {
        let chosen = chosen(Some(source), "some-model", &chatml_vocabulary());
        assert_eq!(
            chosen.source,
            TemplateSource::Family {
                name: "ChatML".to_string()
            }
        );
        assert_eq!(chosen.notices.len(), 1);
        assert!(
            chosen.notices[0].starts_with("The model's chat template "),
            "{}",
            chosen.notices[0]
        );
    }
}

#[test]
fn a_missing_template_is_replaced_by_the_familys_or_by_plain_text() {
    let named = |name: &str| TemplateSource::Family {
        name: name.to_string(),
    };
    let base_eos = FakeVocabulary {
        eos: Some("<eos>"),
        ..gemma_vocabulary()
    };
    let llama3 = FakeVocabulary::new(
        &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        &[],
    );
    let nothing = FakeVocabulary::new(&[], &[]);
    for (vocabulary, name, expected) in [
        (&base_eos, "gemma-3-270m-it", named("Gemma")),
        (&base_eos, "gemma-3-270m", TemplateSource::Completion),
        (&gemma_vocabulary(), "gemma-3-270m", named("Gemma")),
        (
            &chatml_vocabulary(),
            "SmolLM2-135M",
            TemplateSource::Completion,
        ),
        (
            &chatml_vocabulary(),
            "SmolLM2-135M-Instruct",
            named("ChatML"),
        ),
        (&llama3, "Llama-3.2-1B-Instruct", named("Llama 3")),
        (
            &mistral_vocabulary(),
            "Mistral 7B Instruct",
            named("Mistral"),
        ),
        (&nothing, "some-chat-model", TemplateSource::ChatMl),
        (&nothing, "some-edit-model", TemplateSource::Completion),
    ] {
        let chosen = chosen(None, name, vocabulary);
        assert_eq!(
            (chosen.source, chosen.notices.len()),
            (expected, 1),
            "{name}"
        );
    }
}

#[test]
fn our_own_templates_take_any_conversation() {
    let vocabulary = gemma_vocabulary();
    for source in [CHATML, GEMMA, LLAMA3, MISTRAL] {
        let conversation = [system("S"), user("a"), written("b"), user("c"), user("d")];
        let prompt = build(source, &vocabulary, &conversation);
        assert!(
            ["S", "a", "b", "c", "d"]
                .iter()
                .all(|text| prompt.text.contains(text)),
            "{}",
            prompt.text
        );
    }
}

#[test]
fn the_time_given_is_the_time_that_templates_see() {
    let template = "{{ strftime_now('%d %b %Y %H:%M') }}{{ messages[0].content }}";
    assert_eq!(
        build(template, &chatml_vocabulary(), &[user("x")]).text,
        "01 Mar 2026 09:30x"
    );
}

#[test]
fn values_are_written_as_python_writes_json() {
    let template = "{{ v | tojson }}|{{ v | tojson(indent=2) }}|{{ s | tojson(ensure_ascii=true) }}|{{ f | tojson }}";
    let mut options = options();
    options.variables.insert(
        "v".to_string(),
        serde_json::json!({"z": [1, "<é>"], "a": {}, "n": null, "t": true}),
    );
    options
        .variables
        .insert("s".to_string(), serde_json::json!("é\"\\\n\u{1}🙂"));
    options.variables.insert(
        "f".to_string(),
        serde_json::json!([1.0, 0.1, 1e16, 1.5e-5, 123_456.75]),
    );
    let chosen = chosen(Some(template), "test", &chatml_vocabulary());
    // The probe at loading has no variables, so that the template itself is rendered here.
    let template = template::Template::parse(template, "", "").unwrap();
    drop(chosen);
    assert_eq!(
        template.render(&[], &options).unwrap(),
        "{\"z\": [1, \"<é>\"], \"a\": {}, \"n\": null, \"t\": true}|{\n  \"z\": [\n    1,\n    \"<é>\"\n  ],\n  \"a\": {},\n  \"n\": null,\n  \"t\": true\n}|\"\\u00e9\\\"\\\\\\n\\u0001\\ud83d\\ude42\"|[1.0, 0.1, 1e+16, 1.5e-05, 123456.75]"
    );
}

#[test]
fn generation_blocks_render_as_their_contents() {
    let template = "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{% generation %}\n{{ m.content[::-1] }}{% endgeneration %}{% endfor %}";
    assert_eq!(
        build(template, &chatml_vocabulary(), &[user("abc")]).text,
        "cba"
    );
}
