#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;

use super::super::tiny_gguf::{self, TinyGguf, TinyKind, Value};
use super::*;

struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new() -> Tree {
        Tree {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn model(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        tiny_gguf::write(TinyKind::Llama, &path);
        path
    }

    fn places(&self) -> Places {
        Places {
            own: self.path("own/x").parent().unwrap().to_owned(),
            ..Places::default()
        }
    }

    fn tool(&self, tool: &'static str) -> Places {
        Places {
            tools: vec![(tool, self.root.path().join("tool"))],
            ..self.places()
        }
    }
}

fn names(places: &Places) -> Vec<String> {
    scan(places).into_iter().map(|model| model.name).collect()
}

#[test]
fn a_model_is_listed_with_what_its_header_says() {
    let tree = Tree::new();
    let path = tree.model("own/Tiny-Llama.gguf");
    let [model] = scan(&tree.places()).try_into().unwrap();
    assert_eq!(model.name, "tiny-llama");
    assert_eq!(model.bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(
        (model.architecture.as_str(), model.quantization.as_str()),
        ("llama", "F32")
    );
    assert_eq!((model.source.as_str(), model.path), ("platen", path));
    assert_eq!(model.problem, None);
}

#[test]
fn what_is_no_model_is_not_listed() {
    let tree = Tree::new();
    for path in [
        "own/a.gguf.part",
        "own/b.gguf.incomplete",
        "own/mmproj-c.gguf",
        "own/.d.gguf",
        "own/.e/f.gguf",
        "own/g.bin",
    ] {
        tree.model(path);
    }
    symlink("nowhere", tree.path("own/dangling.gguf")).unwrap();
    fs::create_dir_all(tree.path("own/folder.gguf/x")).unwrap();
    assert_eq!(names(&tree.places()), [""; 0]);
}

#[test]
fn a_place_that_does_not_exist_or_is_a_file_is_skipped() {
    let tree = Tree::new();
    let file = tree.model("own/a.gguf");
    let places = Places {
        folders: vec!["/nonexistent".into(), file],
        ..tree.places()
    };
    assert_eq!(names(&places), ["a"]);
}

#[test]
fn links_to_folders_above_do_not_loop() {
    let tree = Tree::new();
    tree.model("own/deep/a.gguf");
    symlink("..", tree.path("own/deep/up")).unwrap();
    symlink(".", tree.path("own/self")).unwrap();
    symlink("me.gguf", tree.path("own/me.gguf")).unwrap();
    assert_eq!(names(&tree.places()), ["a"]);
}

#[test]
fn two_snapshots_of_one_blob_are_one_model() {
    let tree = Tree::new();
    tree.model("tool/models--org--repo/blobs/abc");
    for snapshot in ["1", "2"] {
        let link = tree.path(&format!(
            "tool/models--org--repo/snapshots/{snapshot}/Model.Q4.gguf"
        ));
        symlink("../../blobs/abc", link).unwrap();
    }
    symlink(
        "../../blobs/gone",
        tree.path("tool/models--org--repo/snapshots/2/gone.gguf"),
    )
    .unwrap();
    let models = scan(&tree.tool("hugging face"));
    assert_eq!(models.len(), 1);
    assert_eq!(
        (models[0].name.as_str(), models[0].source.as_str()),
        ("model.q4", "hugging face")
    );
    assert!(models[0].path.ends_with("snapshots/1/Model.Q4.gguf"));
}

#[test]
fn names_stay_unique_and_platens_own_folder_comes_first() {
    let tree = Tree::new();
    tree.model("tool/x/a.gguf");
    tree.model("tool/y/A.gguf");
    tree.model("own/a.gguf");
    let models = scan(&tree.tool("lm studio"));
    let found: Vec<(&str, &str)> = models
        .iter()
        .map(|model| (model.name.as_str(), model.source.as_str()))
        .collect();
    assert_eq!(
        found,
        [("a", "platen"), ("a-2", "lm studio"), ("a-3", "lm studio")]
    );
}

#[test]
fn a_split_model_is_one_entry_with_the_size_of_all_parts() {
    let tree = Tree::new();
    let first = tree.model("own/Big-00001-of-00002.gguf");
    assert_eq!(names(&tree.places()), [""; 0], "a part is missing");
    fs::write(tree.path("own/Big-00002-of-00002.gguf"), [0; 100]).unwrap();
    let [model] = scan(&tree.places()).try_into().unwrap();
    assert_eq!(model.name, "big");
    assert_eq!(model.bytes, fs::metadata(&first).unwrap().len() + 100);
    let second = tree.path("own/Big-00002-of-00002.gguf");
    let error = resolve(second.to_str().unwrap(), &tree.places())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("is part 2 of 2; open part 1"), "{error}");
    fs::remove_file(second).unwrap();
    let error = resolve(first.to_str().unwrap(), &tree.places())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("part 2 of 2 is missing beside it"),
        "{error}"
    );
}

#[test]
fn ollamas_manifests_name_its_blobs() {
    let tree = Tree::new();
    let digest = "ab".repeat(32);
    let blob = tree.model(&format!("store/blobs/sha256-{digest}"));
    let manifest = |media_type: &str, digest: &str| {
        format!(
            r#"{{"layers":[{{"mediaType":"application/vnd.ollama.image.{media_type}","digest":"sha256:{digest}"}}]}}"#
        )
    };
    let library = "store/manifests/registry.example/library";
    fs::write(
        tree.path(&format!("{library}/smol/135m")),
        manifest("model", &digest),
    )
    .unwrap();
    fs::write(
        tree.path(&format!("{library}/template/latest")),
        manifest("template", &digest),
    )
    .unwrap();
    fs::write(
        tree.path(&format!("{library}/evil/latest")),
        manifest("model", "../../../etc/passwd"),
    )
    .unwrap();
    fs::write(tree.path(&format!("{library}/broken/latest")), "{").unwrap();
    let places = Places {
        ollama: vec![tree.root.path().join("store")],
        ..tree.places()
    };
    let [model] = scan(&places).try_into().unwrap();
    assert_eq!(
        (model.name.as_str(), model.source.as_str()),
        ("smol:135m", "ollama")
    );
    assert_eq!(resolve("smol:135m", &places).unwrap(), blob);
}

#[test]
fn a_broken_file_is_listed_with_its_problem_and_never_opened() {
    let tree = Tree::new();
    let path = tree.path("own/cut.gguf");
    let bytes = TinyGguf::new(TinyKind::Llama).encode();
    fs::write(&path, &bytes[..1000]).unwrap();
    let [model] = scan(&tree.places()).try_into().unwrap();
    assert!(model.problem.unwrap().starts_with("is cut short"));
    assert_eq!(model.architecture, "");
    let error = resolve("cut", &tree.places()).unwrap_err().to_string();
    assert!(error.contains("cut.gguf is cut short"), "{error}");
}

#[test]
fn an_embedding_model_is_listed_but_refused() {
    let tree = Tree::new();
    TinyGguf::new(TinyKind::Llama)
        .set("general.architecture", Value::Text("bert".into()))
        .write(&tree.path("own/embed.gguf"));
    let [model] = scan(&tree.places()).try_into().unwrap();
    assert!(model.problem.unwrap().contains("bert"));
    let error = resolve("embed", &tree.places()).unwrap_err().to_string();
    assert!(error.contains("write no replies"), "{error}");
}

#[test]
fn models_are_resolved_by_path_name_and_file_name() {
    let tree = Tree::new();
    let path = tree.model("own/Tiny.Q4.gguf");
    let places = tree.places();
    for text in [path.to_str().unwrap(), "tiny.q4", "Tiny.Q4", "Tiny.Q4.gguf"] {
        assert_eq!(resolve(text, &places).unwrap(), path, "{text}");
    }
}

#[test]
fn an_unknown_name_gets_the_nearest_one_or_the_way_to_pull_it() {
    let tree = Tree::new();
    tree.model("own/mistral-7b.gguf");
    let error = |text: &str| resolve(text, &tree.places()).unwrap_err().to_string();
    assert!(error("mistal-7b").contains("did you mean 'mistral-7b'?"));
    assert!(error("mistral").contains("did you mean 'mistral-7b'?"));
    assert!(!error("zzzzzzzzzzzz").contains("did you mean"));
    assert_eq!(
        error("smollm2-135m"),
        "'smollm2-135m' is not on this machine; get it with: platen pull smollm2-135m"
    );
    assert!(error("smollm2-135").contains("did you mean 'smollm2-135m'?"));
    assert!(error("./none.gguf").contains("./none.gguf cannot be read"));
}

#[test]
fn hostile_file_names_are_shown_escaped() {
    let tree = Tree::new();
    tree.model("own/a\u{1b}]0;x\u{7}.gguf");
    assert_eq!(names(&tree.places()), ["a␛]0;x␇"]);
    let error = resolve("\u{1b}[2J", &tree.places())
        .unwrap_err()
        .to_string();
    assert!(!error.chars().any(char::is_control), "{error:?}");
}

#[test]
fn a_crowded_folder_is_scanned_to_its_limit() {
    let tree = Tree::new();
    for index in 0..1200 {
        fs::write(tree.path(&format!("own/{index:05}.gguf")), b"GGUF").unwrap();
    }
    assert_eq!(scan(&tree.places()).len(), 1000);
}

#[test]
fn the_environment_moves_the_tools_folders() {
    let home = Path::new("/home/me");
    let hub = |set: &[(&str, &str)]| {
        let set: Vec<(String, PathBuf)> = set
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let variable = |name: &str| {
            set.iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let places = Places::from_variables("/own".into(), Vec::new(), Some(home), variable);
        places
            .tools
            .into_iter()
            .find(|(tool, _)| *tool == "hugging face")
            .unwrap()
            .1
    };
    assert_eq!(hub(&[]), Path::new("/home/me/.cache/huggingface/hub"));
    assert_eq!(
        hub(&[("XDG_CACHE_HOME", "/c")]),
        Path::new("/c/huggingface/hub")
    );
    assert_eq!(
        hub(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "")]),
        Path::new("/h/hub")
    );
    assert_eq!(
        hub(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "/k")]),
        Path::new("/k")
    );
}

#[test]
fn a_catalogue_file_of_another_size_does_not_get_the_catalogues_name() {
    let tree = Tree::new();
    tree.model("own/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert_eq!(names(&tree.places()), ["smollm2-135m-instruct.q4_1"]);
}
