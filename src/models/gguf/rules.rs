//! What a header may say: llama.cpp's own rules, many of which it enforces by aborting the process.

use std::collections::BTreeMap;

use super::error::{GgufFault, at_most, invalid};
use super::tensor::TensorInfo;
use super::value::{Array, Value, ValueType};

/// Largest alignment accepted, in bytes.
const MOST_ALIGNMENT: u64 = 1 << 20;
/// `LLAMA_MAX_LAYERS`.
const MOST_BLOCKS: u64 = 512;
/// `LLAMA_MAX_EXPERTS`.
const MOST_EXPERTS: u64 = 1024;

/// What is added below a square root.
const EPSILONS: [&str; 3] = [
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.group_norm_epsilon",
];

/// Checks the metadata.
pub(super) fn metadata(metadata: &BTreeMap<String, Value>) -> Result<(), GgufFault> {
    let architecture = metadata
        .get("general.architecture")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .ok_or(GgufFault::Missing {
            key: "general.architecture",
        })?;
    let whole_number = |name: &str| -> Result<Option<u64>, GgufFault> {
        let key = format!("{architecture}.{name}");
        match metadata.get(&key) {
            None | Some(Value::Array(_)) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(invalid(&format!("'{key}'"), value, "a whole number")),
            },
        }
    };
    if let Some(blocks) = whole_number("block_count")? {
        let field = format!("'{architecture}.block_count'");
        if blocks == 0 {
            return Err(invalid(&field, 0, "at least 1"));
        }
        at_most(&field, blocks, MOST_BLOCKS)?;
    }
    if let Some(drafts) = whole_number("nextn_predict_layers")? {
        let blocks = whole_number("block_count")?.unwrap_or(0);
        at_most(
            &format!("'{architecture}.nextn_predict_layers'"),
            drafts,
            blocks,
        )?;
    }
    experts_of(architecture, metadata, whole_number)?;
    for name in EPSILONS {
        let key = format!("{architecture}.{name}");
        if let Some(value) = metadata.get(&key).filter(|value| {
            let number = value.as_f64();
            number.is_some_and(|number| !number.is_finite() || number < 0.0)
        }) {
            return Err(invalid(&format!("'{key}'"), value, "a number from 0"));
        }
    }
    rotation(architecture, whole_number)?;
    let key = format!("{architecture}.rope.scaling.type");
    if let Some(scaling) = metadata.get(&key) {
        const KNOWN: [&str; 4] = ["none", "linear", "yarn", "longrope"];
        if !scaling.as_str().is_some_and(|name| KNOWN.contains(&name)) {
            return Err(invalid(
                &format!("'{key}'"),
                scaling,
                "none, linear, yarn or longrope",
            ));
        }
    }
    vocabulary(metadata)
}

/// Rotated dimensions come in pairs, within a head.
fn rotation(
    architecture: &str,
    whole_number: impl Fn(&str) -> Result<Option<u64>, GgufFault>,
) -> Result<(), GgufFault> {
    let Some(rotated) = whole_number("rope.dimension_count")? else {
        return Ok(());
    };
    let field = format!("'{architecture}.rope.dimension_count'");
    if rotated % 2 != 0 {
        return Err(invalid(&field, rotated, "an even number"));
    }
    let of_embedding = match (
        whole_number("embedding_length")?,
        whole_number("attention.head_count")?,
    ) {
        (Some(embedding), Some(heads)) => embedding.checked_div(heads),
        (_, None) | (None, _) => None,
    };
    let head = whole_number("attention.key_length")?
        .or(of_embedding)
        .max(whole_number("attention.key_length_swa")?)
        .max(whole_number("attention.key_length_mla")?);
    head.map_or(Ok(()), |head| at_most(&field, rotated, head))
}

/// The rules that llama.cpp asserts on loading.
fn experts_of(
    architecture: &str,
    metadata: &BTreeMap<String, Value>,
    whole_number: impl Fn(&str) -> Result<Option<u64>, GgufFault>,
) -> Result<(), GgufFault> {
    let field = |name: &str| format!("'{architecture}.{name}'");
    let experts = whole_number("expert_count")?.unwrap_or(0);
    at_most(&field("expert_count"), experts, MOST_EXPERTS)?;
    if architecture.starts_with("hunyuan") && experts <= 1 {
        return Ok(());
    }
    let per_layer = metadata
        .get(&format!("{architecture}.expert_used_count"))
        .and_then(Value::as_array);
    let used = match per_layer.and_then(|array| array.items.as_ref()) {
        Some(items) => items.iter().filter_map(Value::as_u64).max().unwrap_or(0),
        None => whole_number("expert_used_count")?.unwrap_or(0),
    };
    at_most(&field("expert_used_count"), used, experts)?;
    if experts > 0 && used == 0 {
        return Err(invalid(
            &field("expert_used_count"),
            used,
            &format!("a number from 1 to {experts}"),
        ));
    }
    let groups = whole_number("expert_group_count")?.unwrap_or(0);
    at_most(
        &field("expert_group_count"),
        groups,
        experts.saturating_sub(1),
    )?;
    if groups > 1 {
        if experts % groups != 0 {
            return Err(invalid(
                &field("expert_group_count"),
                groups,
                &format!("a divisor of {experts}"),
            ));
        }
        let used = whole_number("expert_group_used_count")?.unwrap_or(0);
        if used == 0 || used >= groups {
            let expected = format!("a number from 1 to {}", groups - 1);
            return Err(invalid(&field("expert_group_used_count"), used, &expected));
        }
    }
    Ok(())
}

/// llama.cpp reads scores and token types as plain memory, as many as there are tokens.
fn vocabulary(metadata: &BTreeMap<String, Value>) -> Result<(), GgufFault> {
    let Some(tokens) = metadata.get("tokenizer.ggml.tokens") else {
        return Ok(());
    };
    let Some(Array {
        element: ValueType::String,
        len,
        ..
    }) = tokens.as_array()
    else {
        return Err(invalid(
            "'tokenizer.ggml.tokens'",
            tokens,
            "an array of strings",
        ));
    };
    let columns: [(&str, &[ValueType]); 2] = [
        ("tokenizer.ggml.scores", &[ValueType::F32, ValueType::I32]),
        ("tokenizer.ggml.token_type", &[ValueType::I32]),
    ];
    for (key, types) in columns {
        let Some(value) = metadata.get(key) else {
            continue;
        };
        let field = format!("'{key}'");
        let expected = format!("an array of {len} or more {}", types[0].name());
        let array = value
            .as_array()
            .ok_or_else(|| invalid(&field, value, &expected))?;
        if !types.contains(&array.element) || array.len < *len {
            let found = format!("an array of {} {}", array.len, array.element.name());
            return Err(invalid(&field, found, &expected));
        }
    }
    Ok(())
}

/// Whether a vector is multiplied with or added to activations, which llama.cpp does in 32-bit floats alone: every
/// converter writes norms and biases so, and any other type aborts the process.
fn is_added_or_multiplied(name: &str) -> bool {
    const ENDS: [&str; 2] = ["norm.weight", ".bias"];
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a tensor's values are factors or summands; a few hold places in tables.
fn is_computed_with(name: &str) -> bool {
    const ENDS: [&str; 4] = [".weight", ".bias", ".ssm_a", ".ssm_d"];
    ENDS.iter().any(|end| name.ends_with(end)) && !name.contains("tid2eid")
}

/// Checks the tensors of a file of `size` bytes whose header ends at byte `header_end`.
pub(super) fn tensors(
    tensors: &[TensorInfo],
    metadata: &BTreeMap<String, Value>,
    (header_end, size): (u64, u64),
) -> Result<(), GgufFault> {
    let alignment = metadata
        .get("general.alignment")
        .and_then(Value::as_u64)
        .unwrap_or(32);
    at_most("'general.alignment'", alignment, MOST_ALIGNMENT)?;
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(8) {
        return Err(invalid(
            "'general.alignment'",
            alignment,
            "a power of two from 8",
        ));
    }
    let mut names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(GgufFault::Duplicate {
            what: "tensor",
            name: pair[0].to_owned(),
        });
    }
    let data = header_end.next_multiple_of(alignment);
    // llama.cpp takes tensors that follow each other without a gap, and no others.
    let mut expected = 0_u64;
    for tensor in tensors {
        let is_vector = tensor.dims.len() == 1;
        if is_vector && is_added_or_multiplied(&tensor.name) && tensor.kind.name() != "F32" {
            return Err(invalid(
                &format!("the type of '{}'", tensor.name),
                tensor.kind.name(),
                "F32",
            ));
        }
        if tensor.kind.is_whole() && is_computed_with(&tensor.name) {
            return Err(invalid(
                &format!("the type of '{}'", tensor.name),
                tensor.kind.name(),
                "a type of weights",
            ));
        }
        let field = format!("the offset of '{}'", tensor.name);
        if tensor.offset != expected {
            return Err(invalid(&field, tensor.offset, &expected.to_string()));
        }
        let end = tensor
            .offset
            .checked_add(tensor.bytes)
            .and_then(|end| end.checked_add(data));
        let end = end.ok_or_else(|| invalid(&field, tensor.offset, "a smaller number"))?;
        if end > size {
            return Err(GgufFault::Truncated {
                field: format!("the tensor '{}'", tensor.name),
                need: end,
                have: size,
            });
        }
        expected = (tensor.offset + tensor.bytes).next_multiple_of(alignment);
    }
    Ok(())
}
