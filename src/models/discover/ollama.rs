//! Ollama's store: manifests name the blobs that hold the models.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Candidate;
use super::walk;
use crate::text::sanitize::neutral_line;

/// Longest manifest that is read, in bytes; real ones have about one thousand.
const MOST_MANIFEST_BYTES: u64 = 64 << 10;

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    digest: String,
}

/// The models of the store at `root`, named as Ollama names them.
pub(super) fn candidates(root: &Path) -> Vec<Candidate> {
    let manifests = root.join("manifests");
    walk::files(&manifests, |name| !name.starts_with('.'))
        .into_iter()
        .filter_map(|manifest| {
            let path = blob(root, &manifest)?;
            Some(Candidate {
                path,
                name: Some(name(&manifests, &manifest)?),
                source: "ollama",
            })
        })
        .collect()
}

fn blob(root: &Path, manifest: &Path) -> Option<PathBuf> {
    if fs::metadata(manifest).ok()?.len() > MOST_MANIFEST_BYTES {
        return None;
    }
    let manifest: Manifest = serde_json::from_slice(&fs::read(manifest).ok()?).ok()?;
    let layer = manifest
        .layers
        .iter()
        .find(|layer| layer.media_type == "application/vnd.ollama.image.model")?;
    let hex = layer.digest.strip_prefix("sha256:")?;
    let is_digest = hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit());
    let path = root.join("blobs").join(format!("sha256-{hex}"));
    (is_digest && path.is_file()).then_some(path)
}

/// `HOST/library/NAME/TAG` is called `NAME:TAG`, `HOST/USER/NAME/TAG` is called `USER/NAME:TAG`.
fn name(manifests: &Path, manifest: &Path) -> Option<String> {
    let parts: Vec<String> = manifest
        .strip_prefix(manifests)
        .ok()?
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let [.., user, name, tag] = parts.as_slice() else {
        return None;
    };
    let name = if user == "library" {
        format!("{name}:{tag}")
    } else {
        format!("{user}/{name}:{tag}")
    };
    Some(neutral_line(&name.to_lowercase()))
}
