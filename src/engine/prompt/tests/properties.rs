//! The rules on random conversations.

use proptest::prelude::*;

use super::*;

fn any_text() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("<|im_start|>".to_string()),
        Just("<|im_end|>".to_string()),
        Just("<|im_".to_string()),
        Just("end|>".to_string()),
        Just("<".to_string()),
        Just("<think>".to_string()),
        Just("</think>".to_string()),
        Just("\n".to_string()),
        Just("\n\n".to_string()),
        Just(" ".to_string()),
        Just("\u{F0000}".to_string()),
        "[a-zé🙂]{1,4}",
    ];
    proptest::collection::vec(parts, 0..6).prop_map(|parts| parts.concat())
}

fn any_conversation() -> impl Strategy<Value = Vec<PromptMessage>> {
    proptest::collection::vec((0..4, any_text()), 1..7).prop_map(|messages| {
        messages
            .into_iter()
            .map(|(kind, text)| match kind {
                0 => system(&text),
                1 => user(&text),
                2 => written(&text),
                _ => generated(&text),
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_tokens_stand_for_the_text_and_hold_only_the_templates_control_tokens(messages in any_conversation()) {
        let vocabulary = chatml_vocabulary();
        let prompt = build(CHATML, &vocabulary, &messages);
        prop_assert_eq!(vocabulary.text(&prompt.tokens), prompt.text.clone());
        prop_assert_eq!(control_count(&vocabulary, &prompt), 2 * messages.len() + 1);
        let plain: Vec<TemplateMessage> = messages
            .iter()
            .map(|message| TemplateMessage { role: message.role, content: message.text.clone() })
            .collect();
        prop_assert_eq!(&prompt.text, &builder(CHATML, &vocabulary).template().render(&plain, &options()).unwrap());
        let covered: usize = prompt.spans.iter().map(|span| span.tokens.len()).sum();
        prop_assert_eq!(covered, prompt.tokens.len());
        if messages.iter().all(|message| message.text.is_empty() || !message.text.trim().is_empty()) {
            prop_assert_eq!(prompt.changed, None);
        }
    }

    #[test]
    fn a_template_that_cuts_and_trims_still_gets_only_its_own_control_tokens(messages in any_conversation()) {
        let vocabulary = chatml_vocabulary();
        let prompt = build(THINKER, &vocabulary, &messages);
        prop_assert_eq!(control_count(&vocabulary, &prompt), 2 * messages.len() + 1);
        for window in prompt.spans.windows(2) {
            prop_assert_eq!(window[0].tokens.end, window[1].tokens.start);
        }
    }

    #[test]
    fn trimming_templates_take_generated_ids_whole(texts in proptest::collection::vec("[ \n]{0,3}[a-z]{1,3}[ \n]{0,3}", 1..4)) {
        let vocabulary = gemma_vocabulary();
        let messages: Vec<PromptMessage> =
            texts.iter().flat_map(|text| [user(text), generated(text)]).chain([user("end")]).collect();
        let prompt = build(GEMMA, &vocabulary, &messages);
        prop_assert_eq!(prompt.changed, None);
        for turns in (1..messages.len()).step_by(2) {
            let earlier = build(GEMMA, &vocabulary, &messages[..turns]);
            prop_assert_eq!(&prompt.tokens[..earlier.tokens.len()], &earlier.tokens[..]);
            let reply = ids_of(&messages[turns].text);
            prop_assert_eq!(&prompt.tokens[earlier.tokens.len()..earlier.tokens.len() + reply.len()], &reply[..]);
        }
    }
}
