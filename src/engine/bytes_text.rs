//! Bytes in JSON: a string where they are UTF-8, else base64 behind `base64:`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serializer};

const PREFIX: &str = "base64:";

/// Writes bytes as text.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.starts_with(PREFIX) => serializer.serialize_str(text),
        _ => serializer.serialize_str(&format!("{PREFIX}{}", STANDARD.encode(bytes))),
    }
}

/// Reads what [`serialize`] wrote.
///
/// # Errors
/// Text behind `base64:` that is not base64.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.strip_prefix(PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).map_err(serde::de::Error::custom),
        None => Ok(text.into_bytes()),
    }
}
