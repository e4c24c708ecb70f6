//! Trials with children that do what they are told.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::models::tiny_gguf::{TinyKind, write_in};

/// A program that does this when it is asked to try a file.
fn program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("program");
    fs::write(&path, format!("#!/bin/sh\ncat > \"$0.asked\"\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn interrupt() -> Arc<Interrupt> {
    let interrupt = Arc::new(Interrupt::default());
    interrupt.begin(1);
    interrupt
}

struct Attempt {
    folder: tempfile::TempDir,
    loader: TriedLoader,
    model: PathBuf,
    progress: Vec<f32>,
}

impl Attempt {
    fn with(script: &str) -> Attempt {
        let folder = tempfile::tempdir().unwrap();
        let model = write_in(TinyKind::Llama, folder.path());
        let loader = TriedLoader::new(
            program(folder.path(), script),
            Some(folder.path().join("cache/tried")),
        );
        Attempt {
            folder,
            loader,
            model,
            progress: Vec::new(),
        }
    }

    fn load(&mut self) -> Result<Loaded, EngineError> {
        let progress = &mut self.progress;
        self.loader.load(
            &self.model,
            &LoadOptions::default(),
            &interrupt(),
            &mut |part| progress.push(part),
        )
    }

    fn refusal(&mut self) -> String {
        let error = self.load().map(|_| ()).unwrap_err();
        format!("{} | {}", error.message, error.hint)
    }

    fn was_asked(&self) -> bool {
        let asked = self.folder.path().join("program.asked");
        let was = asked.exists();
        let _ = fs::remove_file(asked);
        was
    }
}

const PASSES: &str = r#"echo '{"progress":0.5}'; echo '"passed"'"#;

#[test]
fn a_file_that_passes_is_loaded_and_not_tried_again_until_it_changes() {
    let mut attempt = Attempt::with(PASSES);
    attempt.load().unwrap();
    assert!(attempt.was_asked());
    assert!(attempt.progress.contains(&0.25), "{:?}", attempt.progress);
    assert!(attempt.progress.is_sorted());
    attempt.load().unwrap();
    assert!(!attempt.was_asked());
    attempt.loader = TriedLoader::new(
        attempt.loader.program.clone(),
        Some(attempt.folder.path().join("cache/tried")),
    );
    attempt.load().unwrap();
    assert!(!attempt.was_asked(), "it was remembered on disk");
    fs::write(&attempt.model, fs::read(&attempt.model).unwrap()).unwrap();
    attempt.load().unwrap();
    assert!(attempt.was_asked());
}

#[test]
fn what_kills_the_child_costs_a_message() {
    let told = |script: &str| Attempt::with(script).refusal();
    let assertion = told("echo '/home/x/ggml.c:12: GGML_ASSERT(n > 0) failed' >&2; kill -ABRT $$");
    assert!(
        assertion.starts_with(
            "llama.cpp gave up on tiny-llama.gguf: ggml.c:12: GGML_ASSERT(n > 0) failed."
        ),
        "{assertion}"
    );
    let killed = told("kill -KILL $$");
    assert!(killed.contains("probably too little memory"), "{killed}");
    let crashed = told("kill -SEGV $$");
    assert!(
        crashed.contains("llama.cpp crashed on") && crashed.contains("SIGSEGV"),
        "{crashed}"
    );
    let ended = told("exit 7");
    assert!(ended.contains("exit status: 7"), "{ended}");
    let liar = told(r#"echo '"passed"'; kill -SEGV $$"#);
    assert!(liar.contains("SIGSEGV"), "{liar}");
}

#[test]
fn what_the_child_is_refused_is_told_as_if_it_had_happened_here() {
    let refused = Attempt::with(r#"echo '{"failed":{"message":"No.","hint":"Try."}}'"#).refusal();
    assert_eq!(refused, "No. | Try.");
    let mut floods = Attempt::with("yes | head -c 3000000; yes | head -c 3000000 >&2; exit 1");
    assert!(floods.refusal().contains("exit status: 1"));
}

#[test]
fn a_trial_that_hangs_can_be_stopped_and_its_process_is_gone() {
    let mut attempt = Attempt::with("echo $$ > \"$0.pid\"; exec sleep 1000");
    let pid_file = attempt.folder.path().join("program.pid");
    let interrupt = interrupt();
    let stopper = Arc::clone(&interrupt);
    let waited = std::thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(20);
        while fs::read_to_string(&pid_file).unwrap_or_default().is_empty() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(STEP);
        }
        stopper.cancel_through(1);
        fs::read_to_string(&pid_file).unwrap()
    });
    let (model, options) = (attempt.model.clone(), LoadOptions::default());
    let outcome = attempt
        .loader
        .load(&model, &options, &interrupt, &mut |_| {});
    assert!(outcome.is_err());
    let pid = waited.join().unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn without_a_program_to_try_with_the_file_is_loaded_all_the_same() {
    let mut attempt = Attempt::with("");
    fs::remove_file(&attempt.loader.program).unwrap();
    attempt.load().unwrap();
}

#[test]
fn a_record_of_rubbish_only_costs_a_trial() {
    let mut attempt = Attempt::with(PASSES);
    let record = attempt.folder.path().join("cache/tried");
    fs::create_dir(record.parent().unwrap()).unwrap();
    fs::write(&record, [0xFF; 5000]).unwrap();
    attempt.load().unwrap();
    assert!(attempt.was_asked());
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    fs::write(&attempt.model, fs::read(&attempt.model).unwrap()).unwrap();
    attempt.load().unwrap();
    assert!(attempt.was_asked());
    attempt.load().unwrap();
    assert!(!attempt.was_asked(), "this run remembers by itself");
}

#[test]
fn the_record_stays_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tried");
    let mut record = Record::new(Some(path.clone()));
    for number in 0..1_200 {
        record.add(&format!("{number:064x}"));
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() <= 1_000);
    assert_eq!(text.lines().last(), Some(&*format!("{:064x}", 1_199)));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_child_s_side_loads_and_decodes_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &Path| {
        let request = Request {
            path: path.to_str().unwrap().to_owned(),
            options: LoadOptions::default(),
        };
        let mut output = Vec::new();
        run_child(&serde_json::to_vec(&request).unwrap()[..], &mut output).unwrap();
        let last = String::from_utf8(output).unwrap();
        serde_json::from_str::<Report>(last.lines().last().unwrap()).unwrap()
    };
    assert_eq!(
        said(&write_in(TinyKind::Llama, folder.path())),
        Report::Passed
    );
    let broken = folder.path().join("broken.gguf");
    fs::write(&broken, b"GGUF").unwrap();
    assert!(matches!(said(&broken), Report::Failed(_)));
    assert!(run_child(&b"no request"[..], Vec::new()).is_err());
}
