//! Downloads that were cut.

use super::*;

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let server = Server::start(|number, request| match number {
        0 => half(&model(), "a"),
        _ => partial(&model(), request.range.unwrap(), "a"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    let second = server.request(1);
    assert_eq!(second.range, Some(model().len() as u64 / 2));
    assert_eq!(second.if_range.as_deref(), Some("\"a\""));
    assert_eq!(server.count(), 2);
}

#[test]
fn a_cut_download_goes_on_in_the_next_pull() {
    let dead = Server::start(|_, _| half(&model(), "a"));
    let first = pull_now(&wanted(&[&dead.url]));
    assert!(
        first.message().contains("it stopped after"),
        "{}",
        first.message()
    );
    first.assert_no_model();
    assert_eq!(first.files(), ["tiny.gguf.part", "tiny.gguf.part.origin"]);

    let alive = Server::start(|_, request| partial(&model(), request.range.unwrap(), "a"));
    let origin = first.folder.path().join("tiny.gguf.part.origin");
    fs::write(&origin, format!("{}/tiny.gguf\n\"a\"", alive.url)).unwrap();
    pull_into(first.folder, &wanted(&[&alive.url]), &offline()).assert_whole();
    assert_eq!(alive.count(), 1);
}

#[test]
fn a_new_signature_asks_for_the_same_file_and_none_is_kept() {
    let server = Server::start(|_, request| partial(&model(), request.range.unwrap(), "a"));
    let signed = PullRequest {
        sources: vec![Source::Url {
            url: format!("{}/tiny.gguf?sig=NEW", server.url),
        }],
        ..wanted(&[])
    };
    let folder = tempfile::tempdir().unwrap();
    let mut part = Part::open(folder.path(), "tiny.gguf").unwrap();
    part.write(&model()[..1000]).unwrap();
    let address = format!("{}/tiny.gguf?sig=OLD", server.url);
    part.set_origin(&part::Origin::new(&address, "\"a\"".to_owned()))
        .unwrap();
    drop(part);
    let kept = fs::read_to_string(folder.path().join("tiny.gguf.part.origin")).unwrap();
    assert!(!kept.contains("OLD"), "{kept}");
    pull_into(folder, &signed, &offline()).assert_whole();
    assert_eq!(server.request(0).range, Some(1000));
}

#[test]
fn bytes_from_another_address_are_never_continued() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.gguf.part"), vec![7; 1000]).unwrap();
    fs::write(
        folder.path().join("tiny.gguf.part.origin"),
        "http://elsewhere/tiny.gguf\n\"a\"",
    )
    .unwrap();
    let server = Server::start(|_, _| ok(model(), "a"));
    pull_into(folder, &wanted(&[&server.url]), &offline()).assert_whole();
    assert_eq!(server.request(0).range, None);
}

#[test]
fn a_200_to_a_range_request_starts_from_the_first_byte() {
    let server = Server::start(|number, _| {
        if number == 0 {
            half(&model(), "a")
        } else {
            ok(model(), "a")
        }
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    assert!(server.request(1).range.is_some());
}

#[test]
fn a_changed_file_starts_from_the_first_byte() {
    let server = Server::start(|number, _| match number {
        0 => half(
            &vec![b'G'; model().len()]
                .into_iter()
                .enumerate()
                .map(|(i, b)| if i < 4 { b"GGUF"[i] } else { b })
                .collect::<Vec<_>>(),
            "old",
        ),
        _ => ok(model(), "new"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
}

#[test]
fn a_206_that_does_not_match_starts_over() {
    type Twist = fn(&[u8], u64) -> Answer;
    let twists: [Twist; 5] = [
        |body, start| partial(body, start + 100, "a"),
        |body, start| partial(body, start - 100, "a"),
        |body, start| partial(body, start, "b"),
        |body, start| {
            let answer = partial(body, start, "a");
            Answer {
                head: answer
                    .head
                    .replace(&format!("/{}", body.len()), "/999999999"),
                body: answer.body,
            }
        },
        |body, start| {
            let answer = partial(body, start, "a");
            let lines: Vec<&str> = answer
                .head
                .split("\r\n")
                .filter(|line| !line.starts_with("Content-Range"))
                .collect();
            Answer {
                head: lines.join("\r\n"),
                body: answer.body,
            }
        },
    ];
    for twist in twists {
        let server = Server::start(move |number, request| match (number, request.range) {
            (0, _) => half(&model(), "a"),
            (_, Some(start)) => twist(&model(), start),
            (_, None) => ok(model(), "a"),
        });
        pull_now(&wanted(&[&server.url])).assert_whole();
        assert_eq!(server.count(), 3);
        assert_eq!(server.request(2).range, None);
    }
}

#[test]
fn a_416_starts_over_once_and_never_loops() {
    let refuse = || Answer {
        head: "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0".into(),
        body: Vec::new(),
    };
    let server = Server::start(move |number, request| match (number, request.range) {
        (0, _) => half(&model(), "a"),
        (_, Some(_)) => refuse(),
        (_, None) => ok(model(), "a"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    let stubborn = Server::start(move |number, _| {
        if number == 0 {
            half(&model(), "a")
        } else {
            refuse()
        }
    });
    let pulled = pull_now(&wanted(&[&stubborn.url]));
    assert!(pulled.message().contains("416"), "{}", pulled.message());
    pulled.assert_no_model();
}

#[test]
fn a_server_that_always_cuts_is_given_up() {
    let server = Server::start(|_, _| half(&model(), "a"));
    let pulled = pull_now(&wanted(&[&server.url]));
    assert!(
        pulled.message().contains("gave up after 5 tries"),
        "{}",
        pulled.message()
    );
    assert_eq!(server.count(), 5);
    pulled.assert_no_model();
}

#[test]
fn a_download_that_is_whole_is_only_checked() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.gguf.part"), model()).unwrap();
    pull_into(folder, &wanted(&[]), &offline()).assert_whole();
}

#[test]
fn a_source_that_does_not_answer_takes_nothing_away() {
    let dead = Server::start(|_, _| half(&model(), "a"));
    let first = pull_now(&wanted(&[&dead.url]));
    let arrived = model().len() as u64 / 2;
    let again = pull_into(first.folder, &wanted(&["http://127.0.0.1:1"]), &offline());
    let part = again.folder.path().join("tiny.gguf.part");
    assert_eq!(fs::metadata(part).unwrap().len(), arrived);
}
