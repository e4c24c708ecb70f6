//! `platen models`: the models on this machine, whichever tool downloaded them.

use std::io::Write;

use serde_json::{Value, json};

use super::output::{self, Format};
use crate::models::catalogue;
use crate::models::discover::{FoundModel, Places, scan};
use crate::text::sanitize::neutral_line;

/// Writes the models found in `places` to `out`; where there are none, `err` gets the way to one.
///
/// # Errors
/// `out` or `err` can't be written to.
pub fn run(
    places: &Places,
    format: Format,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let models = scan(places);
    match format {
        Format::Json => return output::json(&models.iter().map(to_json).collect(), out),
        Format::Text if models.is_empty() => {
            writeln!(err, "no models on this machine")?;
            if let Some(entry) = catalogue::default_entry() {
                writeln!(err, "get one with: platen pull {}", entry.name)?;
            }
        }
        Format::Text => {
            let heading = ["NAME", "SIZE", "ARCH", "QUANT", "SOURCE", "PATH"]
                .map(str::to_owned)
                .to_vec();
            let rows: Vec<Vec<String>> = std::iter::once(heading)
                .chain(models.iter().map(row))
                .collect();
            output::table(&rows, out)?;
        }
    }
    Ok(())
}

fn row(model: &FoundModel) -> Vec<String> {
    let dash = |text: &str| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text.to_owned()
        }
    };
    let path = neutral_line(&model.path.display().to_string());
    let path = match &model.problem {
        Some(problem) => format!("{path} (no chat: {problem})"),
        None => path,
    };
    vec![
        model.name.clone(),
        output::size(model.bytes),
        dash(&model.architecture),
        dash(&model.quantization),
        model.source.clone(),
        path,
    ]
}

fn to_json(model: &FoundModel) -> Value {
    json!({
        "name": model.name,
        "path": model.path.to_string_lossy(),
        "bytes": model.bytes,
        "architecture": model.architecture,
        "quantization": model.quantization,
        "source": model.source,
        "problem": model.problem,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::models::tiny_gguf::{self, TinyKind};

    fn run_in(folder: &std::path::Path, format: Format) -> (String, String) {
        let places = Places {
            own: folder.to_owned(),
            ..Places::default()
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        run(&places, format, &mut out, &mut err).unwrap();
        (
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn models_are_a_table_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = tiny_gguf::write_in(TinyKind::Mamba, folder.path());
        std::fs::write(folder.path().join("bad\u{1b}.gguf"), "x").unwrap();
        let (out, _) = run_in(folder.path(), Format::Text);
        let lines: Vec<&str> = out.lines().collect();
        assert!(
            lines[0].starts_with("NAME ") && lines[0].ends_with("PATH"),
            "{out}"
        );
        assert!(
            lines[1].contains("bad␛") && lines[1].contains("(no chat: "),
            "{out}"
        );
        assert!(lines[2].starts_with("tiny-mamba "), "{out}");
        assert!(lines[2].contains("KiB  mamba  F32    platen"), "{out}");
        assert!(lines[2].ends_with(path.to_str().unwrap()), "{out}");

        let (out, _) = run_in(folder.path(), Format::Json);
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json[1]["name"], "tiny-mamba");
        assert_eq!(json[1]["bytes"], std::fs::metadata(&path).unwrap().len());
        assert_eq!(json[1]["problem"], Value::Null);
    }

    #[test]
    fn a_machine_without_models_is_told_how_to_get_one() {
        let folder = tempfile::tempdir().unwrap();
        let (out, err) = run_in(folder.path(), Format::Text);
        assert_eq!(out, "");
        assert_eq!(
            err,
            "no models on this machine\nget one with: platen pull smollm2-135m\n"
        );
        assert_eq!(run_in(folder.path(), Format::Json).0, "[]\n");
    }
}
