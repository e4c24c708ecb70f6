//! What the user may ask for.

use super::*;

#[test]
fn names_never_leave_the_folder() {
    for name in [
        "../x.gguf",
        "a/b.gguf",
        ".gguf",
        ".hidden.gguf",
        "x.bin",
        "",
        "a\0.gguf",
        "a\u{1b}.gguf",
        "..",
        "c:\\x.gguf",
    ] {
        let pulled = pull_now(&PullRequest {
            file: name.to_owned(),
            ..wanted(&[])
        });
        assert!(
            matches!(pulled.result, Err(PullError::Request(_))),
            "{name:?}"
        );
    }
}

#[test]
fn hub_repositories_are_listed_and_the_token_is_sent() {
    let list = |files: &[&str]| {
        let lfs = format!(
            r#""size":{},"lfs":{{"oid":"{}"}}"#,
            model().len(),
            hex(&model())
        );
        let files: Vec<String> = files
            .iter()
            .map(|path| format!(r#"{{"path":"{path}",{lfs}}}"#))
            .collect();
        format!("[{}]", files.join(",")).into_bytes()
    };
    let server = Server::start(move |_, request| {
        if request.path.starts_with("/api/models/org/several/") {
            return ok(
                list(&["a-Q8_0.gguf", "a-Q4_K_M.gguf", "mmproj-a.gguf", "README.md"]),
                "l",
            );
        }
        if request.path.starts_with("/api/models/org/unclear/") {
            return ok(list(&["a.gguf", "b.gguf"]), "l");
        }
        ok(model(), "m")
    });
    let network = Network {
        hub: server.url.clone(),
        hub_token: Some("secret".to_owned()),
        pip: Vec::new(),
    };
    let request = PullRequest::parse("hf:org/several", &network).unwrap();
    assert_eq!(
        (request.file.as_str(), request.sha256.clone()),
        ("a-Q4_K_M.gguf", Some(hex(&model())))
    );
    let pulled = pull_into(tempfile::tempdir().unwrap(), &request, &network);
    assert!(pulled.result.unwrap().ends_with("a-Q4_K_M.gguf"));
    let fetched = server.request(1);
    assert_eq!(fetched.path, "/org/several/resolve/main/a-Q4_K_M.gguf");
    assert_eq!(fetched.authorization.as_deref(), Some("Bearer secret"));
    assert!(!format!("{network:?}").contains("secret"));

    let named = PullRequest::parse("hf:org/several:a-Q8_0.gguf", &network).unwrap();
    assert_eq!(named.file, "a-Q8_0.gguf");
    let error = PullRequest::parse("hf:org/unclear", &network)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("hf:org/unclear:a.gguf") && error.contains("hf:org/unclear:b.gguf"),
        "{error}"
    );
    let error = PullRequest::parse("hf:org/several:none.gguf", &network)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no GGUF file 'none.gguf'"), "{error}");
}

#[test]
fn what_is_asked_for_is_understood_or_explained() {
    let parse = |text: &str| PullRequest::parse(text, &offline());
    assert_eq!(
        parse("smollm2-135m").unwrap().file,
        "SmolLM2-135M-Instruct.Q4_1.gguf"
    );
    assert_eq!(
        parse("https://example.com/x/m.gguf?download=true")
            .unwrap()
            .file,
        "m.gguf"
    );
    for text in [
        "https://example.com/x",
        "hf:org",
        "hf:../x",
        "hf:a/b/c",
        "nothing",
        "hf:org/repo x",
    ] {
        assert!(matches!(parse(text), Err(PullError::Request(_))), "{text}");
    }
}
