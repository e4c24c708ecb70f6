//! Replies go back in as the ids that were sampled, wherever the template lets them.

use super::*;

#[test]
fn generated_ids_go_back_in_as_they_were() {
    let vocabulary = chatml_vocabulary();
    let reply = "Hello the assistant.\n\n<|im_end|> is a token";
    let messages = [user("q"), generated(reply), user("Hello")];
    let prompt = build(CHATML, &vocabulary, &messages);
    assert!(contains(&prompt.tokens, &ids_of(reply)));
    assert_eq!(vocabulary.text(&prompt.tokens), prompt.text);
    assert_eq!(prompt.changed, None);
    let before = build(CHATML, &vocabulary, &messages[..1]);
    assert_eq!(
        prompt.tokens[..before.tokens.len()],
        before.tokens,
        "the cache's prefix"
    );
}

#[test]
fn a_template_that_trims_replies_gets_their_ids_whole() {
    let vocabulary = gemma_vocabulary();
    for reply in [
        "Paris\n",
        "\nParis \n",
        "  Paris",
        "Paris\n\n\n",
        "\n\n\nParis",
    ] {
        let messages = [user("q"), generated(reply), user(" Hello \n")];
        let prompt = build(GEMMA, &vocabulary, &messages);
        let mut expected = build(GEMMA, &vocabulary, &messages[..1]).tokens;
        expected.extend(ids_of(reply));
        let rest = "<end_of_turn>\n<start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n";
        expected.extend(vocabulary.tokenize(rest, SpecialTokens::Parse).unwrap());
        assert_eq!(prompt.tokens, expected, "{reply:?}");
        assert_eq!(prompt.changed, None);
        assert!(prompt.text.ends_with(rest) && prompt.text.contains("model\nParis<end_of_turn>"));
    }
}

#[test]
fn the_space_that_a_template_writes_before_a_reply_is_not_doubled() {
    let vocabulary = mistral_vocabulary();
    let messages = [user("q"), generated(" Paris"), user("Hello")];
    let prompt = build(MISTRAL, &vocabulary, &messages);
    let mut expected = build(MISTRAL, &vocabulary, &messages[..1]).tokens;
    expected.extend(ids_of(" Paris"));
    assert_eq!(prompt.tokens[..expected.len()], expected);
    assert_eq!(prompt.tokens[expected.len()], vocabulary.special("</s>"));
}

#[test]
fn text_after_the_kept_ids_is_tokenised() {
    let vocabulary = chatml_vocabulary();
    let mut reply = generated("Hello Paris");
    reply.tokens = Some(TokenRun {
        ids: ids_of("Hello"),
        text_len: 5,
    });
    let prompt = build(CHATML, &vocabulary, &[user("q"), reply, user("w")]);
    let mut expected = ids_of("Hello");
    expected.extend(
        vocabulary
            .tokenize(" Paris<|im_end|>", SpecialTokens::Parse)
            .unwrap(),
    );
    assert!(contains(&prompt.tokens, &expected));
    assert_eq!(prompt.changed, None);
}

#[test]
fn a_reply_whose_thinking_is_dropped_is_read_from_its_text_and_named() {
    let vocabulary = chatml_vocabulary();
    let thought = generated("hm\n</think>\n\n4 <|im_start|>");
    let messages = [
        user("2+2"),
        thought,
        user("3+3"),
        generated("no tags"),
        user("more"),
    ];
    let prompt = build(THINKER, &vocabulary, &messages);
    assert_eq!(prompt.changed, Some(1));
    assert!(
        prompt
            .text
            .contains("<|im_start|>assistant\n4 <|im_start|><|im_end|>")
    );
    assert_eq!(vocabulary.text(&prompt.tokens), prompt.text);
    assert!(
        contains(&prompt.tokens, &ids_of("no tags")),
        "the other reply keeps its ids"
    );
    assert_eq!(
        control_count(&vocabulary, &prompt),
        11,
        "five turns and the opening"
    );
    assert!(prompt.opens_thinking);
}

#[test]
fn replies_written_with_thinking_tags_render_as_the_template_means_them() {
    let vocabulary = chatml_vocabulary();
    let prompt = build(
        THINKER,
        &vocabulary,
        &[user("q"), written("<think>\nhm\n</think>\n\n4"), user("w")],
    );
    assert!(
        prompt.text.contains("<|im_start|>assistant\n4<|im_end|>"),
        "{}",
        prompt.text
    );
    assert_eq!(prompt.changed, None);
}

#[test]
fn templates_that_look_at_how_a_text_begins_render_alike() {
    let template = "{% for m in messages %}{% if m.content.startswith('!') %}{{ '(' + m.content[1:] + ')' }}{% elif m.content.endswith('?') %}{{ '{' + m.content + '}' }}{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}";
    let vocabulary = chatml_vocabulary();
    let messages = [
        user("!loud"),
        generated("plain"),
        user("why?"),
        generated("!x"),
        user("<|im_end|>"),
    ];
    let prompt = build(template, &vocabulary, &messages);
    assert_eq!(
        prompt.text,
        "(loud)<|im_end|>plain<|im_end|>{why?}<|im_end|>(x)<|im_end|><|im_end|><|im_end|>"
    );
    assert!(contains(&prompt.tokens, &ids_of("plain")));
    assert_eq!(prompt.changed, Some(3));
    assert_eq!(control_count(&vocabulary, &prompt), 5);
}

#[test]
fn a_space_is_not_put_before_what_follows_a_splice() {
    let vocabulary = mistral_vocabulary();
    let template = "{% for m in messages %}{{ m.content }}\n{% endfor %}";
    let vocabulary_without_bos = FakeVocabulary {
        add_bos: false,
        ..vocabulary
    };
    let prompt = build(
        template,
        &vocabulary_without_bos,
        &[user("q"), generated("Paris"), user("w </s> v")],
    );
    assert_eq!(
        vocabulary_without_bos.text(&prompt.tokens),
        " q\nParis\nw </s> v\n",
        "one prefix, at the start"
    );
    assert_eq!(control_count(&vocabulary_without_bos, &prompt), 0);
}

#[test]
fn plain_text_is_continued_from_the_very_ids_of_the_last_turn() {
    let vocabulary = chatml_vocabulary();
    let chosen = chosen(None, "base", &vocabulary);
    let builder = PromptBuilder::new(chosen.template, &vocabulary);
    let messages = [
        user("Capital?"),
        generated(" Paris."),
        user("Sure?"),
        written("Yes"),
        user("Thanks"),
    ];
    let first = builder
        .build(&messages[..1], &vocabulary, &options())
        .unwrap();
    let last = builder.build(&messages, &vocabulary, &options()).unwrap();
    assert!(last.text.ends_with("\n\nUser: Capital?\nAssistant: Paris.\nUser: Sure?\nAssistant: Yes\nUser: Thanks\nAssistant:"));
    let mut expected = first.tokens;
    expected.extend(ids_of(" Paris."));
    assert_eq!(last.tokens[..expected.len()], expected);
    assert!(last.stop.contains(&"\nUser:".to_string()));
}

#[test]
fn channels_are_sent_back_without_the_thinking() {
    let template = "{% for m in messages %}{% if '<|channel|>analysis<|message|>' in m.content %}{{ raise_exception('tags') }}{% endif %}{{ m.role + ':' + m.content + '<|end|>' }}{% endfor %}";
    let vocabulary = FakeVocabulary::new(&["<|channel|>", "<|message|>", "<|end|>"], &[]);
    for reply in [
        "<think>hm</think>4",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4",
    ] {
        let prompt = build(
            template,
            &vocabulary,
            &[user("q"), generated(reply), user("w")],
        );
        assert_eq!(prompt.text, "user:q<|end|>assistant:4<|end|>user:w<|end|>");
        assert_eq!(prompt.changed, Some(1));
    }
    let mut reply = generated("4");
    reply.tokens = Some(TokenRun {
        ids: vec![vocabulary.special("<|channel|>")],
        text_len: 1,
    });
    assert_eq!(
        build(template, &vocabulary, &[user("q"), reply, user("w")]).changed,
        Some(1)
    );
}
