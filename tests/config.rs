//! The configuration through the real binary: files that are right and files that are not, the environment, and
//! what `platen config` says about them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, diff};
use tempfile::TempDir;

fn platen(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
    command.env_clear().env("PLATEN_HOME", home);
    command
}

fn home_with(config: &str) -> TempDir {
    let home = TempDir::new().unwrap();
    std::fs::create_dir(home.path().join("config")).unwrap();
    std::fs::write(home.path().join("config/config.toml"), config).unwrap();
    home
}

fn files(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(dir);
    let entries = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn every_valid_file_is_accepted() {
    let home = TempDir::new().unwrap();
    for file in files("valid_configs") {
        let good = format!("{}: good\n", file.display());
        platen(home.path())
            .env("PLATEN_CONFIG", &file)
            .args(["config", "check"])
            .assert()
            .success()
            .stdout(good);
    }
}

#[test]
fn a_file_without_end_is_refused_and_not_read_on() {
    let home = TempDir::new().unwrap();
    platen(home.path())
        .env("PLATEN_CONFIG", "/dev/zero")
        .args(["config", "check"])
        .timeout(std::time::Duration::from_secs(20))
        .assert()
        .code(1)
        .stderr(contains("/dev/zero: is larger than 1 MiB"));
}

#[test]
fn every_invalid_file_is_refused_with_the_expected_message() {
    let home = TempDir::new().unwrap();
    for file in files("invalid_configs") {
        let expected = std::fs::read_to_string(file.with_extension("expect")).unwrap();
        let mut command = platen(home.path());
        let assert = command
            .env("PLATEN_CONFIG", &file)
            .args(["config", "check"])
            .assert()
            .code(1)
            .stdout("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(
            said.starts_with(&format!("platen: error: {}:", file.display())),
            "{said}"
        );
        let mut rest = said.as_str();
        for line in expected.lines() {
            let found = rest.find(line);
            assert!(
                found.is_some(),
                "{}: expected {line:?} in {said}",
                file.display()
            );
            rest = &rest[found.unwrap() + line.len()..];
        }
    }
}

#[test]
fn the_path_lies_below_platen_home_unless_another_file_is_named() {
    let home = TempDir::new().unwrap();
    let usual = format!("{}\n", home.path().join("config/config.toml").display());
    platen(home.path())
        .args(["config", "path"])
        .assert()
        .success()
        .stdout(usual);
    let named = platen(home.path())
        .env("PLATEN_CONFIG", "/x/y.toml")
        .args(["config", "path"])
        .assert();
    named.success().stdout("/x/y.toml\n");
}

#[test]
fn a_missing_file_is_fine_and_a_missing_file_that_was_named_is_not() {
    let home = TempDir::new().unwrap();
    platen(home.path())
        .args(["config", "check"])
        .assert()
        .success()
        .stdout(contains("the defaults hold"));
    let mut named = platen(home.path());
    named
        .env("PLATEN_CONFIG", "/nowhere.toml")
        .args(["config", "check"]);
    named
        .assert()
        .code(1)
        .stderr(contains("/nowhere.toml: can't be read: "));
}

#[test]
fn a_file_that_is_a_directory_is_an_error_that_names_it() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("config/config.toml");
    std::fs::create_dir_all(&path).unwrap();
    let expected = format!("platen: error: {}: can't be read: ", path.display());
    platen(home.path())
        .args(["config", "check"])
        .assert()
        .code(1)
        .stderr(contains(expected));
}

#[test]
fn show_says_where_each_value_comes_from() {
    let home =
        home_with("system = \"Be brief.\"\n[sampling]\ntop_k = 10\n[keys]\nsend = [\"enter\"]\n");
    let mut command = platen(home.path());
    command.env("PLATEN_THREADS", "3").args([
        "config", "show", "--temp", "0.3", "--stop", "a", "--stop", "b",
    ]);
    let expected = format!(
        r#"# The file: {}

# model: chosen when the chat opens # default
system = "Be brief." # file, line 1

[load]
# context: 8192, or less where the model was trained on less # default
threads = 3 # env PLATEN_THREADS
# threads_prefill: as load.threads # default
# batch: 512 # default
# ubatch: 512, or the batch where that is less # default
kv_type_k = "f16" # default
kv_type_v = "f16" # default
flash_attention = "auto" # default
swa_cache = "full" # default
# cache_ram: 1024, or a quarter of what is free where that is less # default
# gpu_layers: as many as fit # default
memory = "check" # default

[sampling]
temperature = 0.3 # flag --temp
top_k = 10 # file, line 3
# top_p: the model's own, else 0.95 # default
# min_p: the model's own, else 0.05 # default
# repeat_penalty: the model's own, else 1 # default
# repeat_last_n: the model's own, else 64 # default
# seed: a new one for each reply # default

[generation]
max_tokens = 2048 # default
stop = ["a", "b"] # flag --stop
read_ahead = "auto" # default

[chats]
save = true # default
# file: chats.db in platen's data directory # default
cache_disk = 4096 # default

[ui]
panels = "auto" # default

[keys]
"send" = ["enter"] # file, line 5
"#,
        home.path().join("config/config.toml").display()
    );
    command.assert().success().stdout(diff(expected));
}

#[test]
fn what_show_writes_is_a_file_that_checks_as_good_and_shows_the_same_values() {
    let home = home_with("model = \"a\\u001b[2Jb\"\n[sampling]\ntemperature = 0.7\nmin_p = 1e-7\n");
    let shown = |home: &Path| {
        let output = platen(home).args(["config", "show"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let first = shown(home.path());
    assert!(!first.contains('\x1b'), "{first}");
    let again = home_with(&first);
    let values = |text: &str| text.parse::<toml::Table>().unwrap();
    assert_eq!(values(&first), values(&shown(again.path())));
}

#[test]
fn a_bad_variable_is_wrong_use() {
    let home = TempDir::new().unwrap();
    let mut command = platen(home.path());
    command.env("PLATEN_TOP_P", "2").args(["config", "check"]);
    command
        .assert()
        .code(2)
        .stderr(contains("PLATEN_TOP_P: sampling.top_p is 2; it must be"));
}

#[test]
fn a_flag_mends_what_a_variable_broke_only_where_the_variable_can_be_read() {
    let home = TempDir::new().unwrap();
    let mut hidden = platen(home.path());
    hidden
        .env("PLATEN_TEMP", "9")
        .args(["config", "show", "--temp", "1"]);
    hidden
        .assert()
        .success()
        .stdout(contains("temperature = 1.0 # flag --temp"));
    let mut unread = platen(home.path());
    unread
        .env("PLATEN_TEMP", "hot")
        .args(["config", "show", "--temp", "1"]);
    unread
        .assert()
        .code(2)
        .stderr(contains("PLATEN_TEMP: ").and(contains("is \"hot\"")));
}

#[test]
fn nothing_is_made_on_disk_by_looking_at_the_configuration() {
    let home = TempDir::new().unwrap();
    for command in ["show", "path", "check"] {
        platen(home.path())
            .args(["config", command])
            .assert()
            .success();
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}
