//! `platen inspect`: what a model's header says and what a context will cost, without loading the model.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::output::{self, Format, grouped};
use crate::engine::options::{DEFAULT_CONTEXT, KvType};
use crate::models::estimate::{KvLayout, WindowCache};
use crate::models::gguf::GgufFile;
use crate::text::sanitize::neutral_line;

/// Tokens computed at once where nothing else is asked for.
const UBATCH: u32 = 512;

/// Longest metadata value in the text, in characters.
const MOST_SHOWN: usize = 72;

/// What a context of one size and element type costs.
struct Cost {
    context: u64,
    kv_type: KvType,
    bytes_per_token: u64,
    bytes_per_token_past_window: u64,
    cache_bytes: u64,
    small_window_cache_bytes: u64,
}

/// Writes what is known of the model at `path`. The cost is worked out for each of `contexts` (in tokens; none:
/// the default and what the model was trained on) with each of `kv_types` (none: f16 and 8-bit blocks) for K and V.
///
/// # Errors
/// The file is no model or broken, or `out` can't be written to.
pub fn run(
    path: &Path,
    contexts: &[u32],
    kv_types: &[KvType],
    format: Format,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let file = GgufFile::open(path)?;
    let layout = KvLayout::of(&file);
    let costs = match &layout {
        Ok(layout) => costs(layout, &contexts_of(&file, contexts), kv_types),
        Err(_) => Vec::new(),
    };
    match format {
        Format::Text => text(&file, &layout, &costs, out),
        Format::Json => output::json(&to_json(&file, &layout, &costs), out),
    }
}

fn contexts_of(file: &GgufFile, asked: &[u32]) -> Vec<u64> {
    if !asked.is_empty() {
        return asked.iter().map(|&context| u64::from(context)).collect();
    }
    let default = u64::from(DEFAULT_CONTEXT);
    match file.context_train() {
        Some(trained) if trained > default => vec![default, trained],
        Some(trained) if trained > 0 => vec![trained],
        _ => vec![default],
    }
}

fn costs(layout: &KvLayout, contexts: &[u64], kv_types: &[KvType]) -> Vec<Cost> {
    let kv_types = if kv_types.is_empty() {
        &[KvType::F16, KvType::Q8_0]
    } else {
        kv_types
    };
    let of = |context: u64, kv_type: KvType| Cost {
        context,
        kv_type,
        bytes_per_token: layout.bytes_per_token(kv_type, kv_type),
        bytes_per_token_past_window: layout.bytes_per_token_past_window(kv_type, kv_type),
        cache_bytes: layout.capacity_bytes(context, (kv_type, kv_type), WindowCache::Full),
        small_window_cache_bytes: layout.capacity_bytes(
            context,
            (kv_type, kv_type),
            WindowCache::Small { ubatch: UBATCH },
        ),
    };
    contexts
        .iter()
        .flat_map(|&context| kv_types.iter().map(move |&kv_type| of(context, kv_type)))
        .collect()
}

fn text(
    file: &GgufFile,
    layout: &Result<KvLayout, String>,
    costs: &[Cost],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let known = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), grouped);
    let template = match file.get("tokenizer.chat_template") {
        Some(template) => match template.as_str() {
            Some(text) => format!("{} characters", grouped(text.chars().count() as u64)),
            None => shortened(&template.to_string()),
        },
        None => "none".to_owned(),
    };
    let mut facts = vec![
        ("name", neutral_line(file.name().unwrap_or("none"))),
        ("file", neutral_line(&file.path().display().to_string())),
        (
            "size",
            format!(
                "{} ({} bytes)",
                output::size(file.file_bytes()),
                grouped(file.file_bytes())
            ),
        ),
        (
            "format",
            format!(
                "GGUF {}, {} tensors",
                file.version(),
                grouped(file.tensors().len() as u64)
            ),
        ),
        ("architecture", neutral_line(file.architecture())),
        ("parameters", grouped(file.parameters())),
        ("quantization", file.quantization()),
        ("weights", output::size(file.tensor_bytes())),
        ("layers", known(file.block_count())),
        (
            "context",
            format!("{} tokens trained on", known(file.context_train())),
        ),
        ("vocabulary", format!("{} tokens", known(file.vocab_size()))),
        ("template", template),
    ];
    if let Some(split) = file.split() {
        facts.push((
            "part",
            format!(
                "{} of {}; the numbers are this part's",
                split.index + 1,
                split.count
            ),
        ));
    }
    if let Some(reason) = file.not_chat() {
        facts.push(("chat", format!("no: {reason}")));
    }
    if let Ok(layout) = layout {
        if layout.window > 0 {
            facts.push((
                "window",
                format!(
                    "{} tokens in {} layers",
                    grouped(layout.window),
                    windowed(layout)
                ),
            ));
        }
        if layout.is_recurrent() {
            facts.push((
                "state",
                format!(
                    "{} for a sequence, whatever its length",
                    output::size(layout.state_bytes())
                ),
            ));
        }
    }
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    output::table(&rows, out)?;

    writeln!(out)?;
    match layout {
        Err(reason) => writeln!(out, "memory: unknown, {}", neutral_line(reason))?,
        Ok(layout) => write_costs(file, layout, costs, out)?,
    }

    writeln!(out, "\nmetadata")?;
    for (key, value) in file.metadata() {
        writeln!(
            out,
            "  {} = {}",
            neutral_line(key),
            shortened(&value.to_string())
        )?;
    }
    Ok(())
}

fn write_costs(
    file: &GgufFile,
    layout: &KvLayout,
    costs: &[Cost],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let small = layout.has_window();
    let mut heading = vec![
        "CONTEXT",
        "KV TYPE",
        "A TOKEN",
        "CACHE (est.)",
        "WITH WEIGHTS (est.)",
    ];
    if small {
        heading.push("SMALL WINDOW CACHE (est.)");
    }
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for cost in costs {
        let mut row = vec![
            grouped(cost.context),
            cost.kv_type.to_string(),
            output::size(cost.bytes_per_token),
            output::size(cost.cache_bytes),
            output::size(cost.cache_bytes.saturating_add(file.tensor_bytes())),
        ];
        if small {
            row.push(output::size(cost.small_window_cache_bytes));
        }
        rows.push(row);
    }
    output::table(&rows, out)?;
    if layout.approximate {
        writeln!(
            out,
            "This architecture has caches of other shapes too: the numbers are only near the truth."
        )?;
    }
    Ok(())
}

fn windowed(layout: &KvLayout) -> usize {
    use crate::models::estimate::Reach;
    let is_windowed = |layer: &&crate::models::estimate::Layer| {
        layer
            .attention
            .is_some_and(|attention| attention.reach == Reach::Window)
    };
    layout.layers.iter().filter(is_windowed).count()
}

fn shortened(text: &str) -> String {
    let text = neutral_line(text);
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn to_json(file: &GgufFile, layout: &Result<KvLayout, String>, costs: &[Cost]) -> Value {
    let metadata: Map<String, Value> = file
        .metadata()
        .iter()
        .map(|(key, value)| (key.clone(), value.to_json()))
        .collect();
    let costs: Vec<Value> = costs
        .iter()
        .map(|cost| {
            json!({
                "context": cost.context,
                "kv_type": cost.kv_type,
                "bytes_per_token": cost.bytes_per_token,
                "bytes_per_token_past_window": cost.bytes_per_token_past_window,
                "cache_bytes": cost.cache_bytes,
                "small_window_cache_bytes": cost.small_window_cache_bytes,
            })
        })
        .collect();
    let known = layout.as_ref().ok();
    json!({
        "path": file.path().to_string_lossy(),
        "bytes": file.file_bytes(),
        "version": file.version(),
        "name": file.name(),
        "architecture": file.architecture(),
        "quantization": file.quantization(),
        "parameters": file.parameters(),
        "tensors": file.tensors().len(),
        "tensor_bytes": file.tensor_bytes(),
        "layers": file.block_count(),
        "context_train": file.context_train(),
        "vocabulary": file.vocab_size(),
        "problem": file.not_chat(),
        "memory": {
            "problem": layout.as_ref().err(),
            "approximate": known.map(|layout| layout.approximate),
            "window": known.map(|layout| layout.window),
            "state_bytes": known.map(KvLayout::state_bytes),
            "contexts": costs,
        },
        "metadata": metadata,
    })
}

#[cfg(test)]
mod tests;
