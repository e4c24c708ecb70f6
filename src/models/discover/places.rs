//! Where models lie: platen's own folder, the user's, and those of other tools.

use std::env;
use std::path::{Path, PathBuf};

use super::{Candidate, ollama, walk};

/// The folders to look in. A folder that does not exist is skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Where platen keeps what it downloads.
    pub own: PathBuf,
    /// The user's folders.
    pub folders: Vec<PathBuf>,
    /// Folders of other tools, each with the tool's name.
    pub tools: Vec<(&'static str, PathBuf)>,
    /// Ollama's stores.
    pub ollama: Vec<PathBuf>,
}

impl Places {
    /// Platen's own folder, the user's `folders`, and those of the tools that this machine may have, as the
    /// environment says.
    #[must_use]
    pub fn from_env(own: PathBuf, folders: Vec<PathBuf>) -> Places {
        let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
        Places::from_variables(own, folders, home.as_deref(), |name| {
            env::var_os(name).map(PathBuf::from)
        })
    }

    /// As [`Places::from_env`], with the environment given.
    #[must_use]
    pub fn from_variables(
        own: PathBuf,
        folders: Vec<PathBuf>,
        home: Option<&Path>,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> Places {
        let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
        let below = |path: &str| home.map(|home| home.join(path));
        let cache = set("XDG_CACHE_HOME").or_else(|| below(".cache"));
        let hub = set("HF_HUB_CACHE")
            .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
            .or_else(|| cache.as_ref().map(|cache| cache.join("huggingface/hub")));
        let llama_cpp = set("LLAMA_CACHE").or_else(|| match env::consts::OS {
            "macos" => below("Library/Caches/llama.cpp"),
            _ => cache.as_ref().map(|cache| cache.join("llama.cpp")),
        });
        let gpt4all = match env::consts::OS {
            "macos" => below("Library/Application Support/nomic.ai/GPT4All"),
            _ => below(".local/share/nomic.ai/GPT4All"),
        };
        let tools = [
            ("hugging face", hub),
            ("llama.cpp", llama_cpp),
            ("lm studio", below(".lmstudio/models")),
            ("lm studio", below(".cache/lm-studio/models")),
            ("gpt4all", gpt4all),
        ];
        let ollama = match set("OLLAMA_MODELS") {
            Some(store) => vec![store],
            None => below(".ollama/models")
                .into_iter()
                .chain([PathBuf::from("/usr/share/ollama/.ollama/models")])
                .collect(),
        };
        Places {
            own,
            folders,
            tools: tools
                .into_iter()
                .filter_map(|(tool, path)| Some((tool, path?)))
                .collect(),
            ollama,
        }
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let own = std::iter::once(("platen", &self.own));
        let folders = self.folders.iter().map(|folder| ("folder", folder));
        let tools = self.tools.iter().map(|(tool, folder)| (*tool, folder));
        own.chain(folders)
            .chain(tools)
            .flat_map(|(source, folder)| {
                walk::files(folder, walk::is_model_name)
                    .into_iter()
                    .map(move |path| Candidate {
                        path,
                        name: None,
                        source,
                    })
            })
            .chain(
                self.ollama
                    .iter()
                    .flat_map(|store| ollama::candidates(store)),
            )
    }
}
