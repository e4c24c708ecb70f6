//! The parser. It walks a header once, front to back, through a small buffer.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Read, Seek};

use super::error::{GgufFault, at_most, invalid};
use super::rules;
use super::tensor::{TensorInfo, TensorType};
use super::value::{Array, Value, ValueType};

/// Most metadata keys; real models have fewer than two hundred.
const MOST_KEYS: u64 = 16_384;
/// Most tensors; real models have a few thousand.
const MOST_TENSORS: u64 = 32_768;
/// Longest key, as the format says.
const MOST_KEY_BYTES: u64 = 65_535;
/// Longest tensor name: `GGML_MAX_NAME` less the closing zero.
const MOST_TENSOR_NAME_BYTES: u64 = 63;
/// Most dimensions: `GGML_MAX_DIMS`.
const MOST_DIMS: u32 = 4;
/// Longest text that is kept; chat templates are far shorter.
const MOST_TEXT_BYTES: u64 = 1 << 20;
/// Most elements of an array that is kept.
const MOST_ITEMS: u64 = 1024;
/// Most elements of an array of numbers.
const MOST_ELEMENTS: u64 = 1 << 22;
/// Most texts in all arrays together: vocabularies have up to 262,144 tokens, their merges twice as many.
const MOST_TEXTS: u64 = 1 << 21;
/// Most tokens of a vocabulary.
const MOST_TOKENS: u64 = 1 << 19;
/// Most bytes of keys and values that are kept.
const MOST_KEPT_BYTES: u64 = 4 << 20;
/// Most bytes of a header; the largest real ones have some 16 MiB.
const MOST_HEADER_BYTES: u64 = 64 << 20;

/// What a header says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub version: u32,
    pub metadata: BTreeMap<String, Value>,
    pub tensors: Vec<TensorInfo>,
}

/// What a file is of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it, or the part that has the metadata.
    First,
    /// A later part: tensors, and little else.
    Later,
}

/// Reads and checks the header of a source of `size` bytes.
pub(super) fn read(source: impl Read + Seek, size: u64, share: Share) -> Result<Header, GgufFault> {
    let mut reader = Reader {
        source: BufReader::with_capacity(64 << 10, source),
        at: 0,
        size,
        kept: 0,
        texts: 0,
    };
    let found = reader.bytes::<4>("the magic number")?;
    if &found != b"GGUF" {
        return Err(GgufFault::Magic { found });
    }
    let version = reader.u32("the version")?;
    if !(2..=3).contains(&version) {
        return Err(GgufFault::Version { found: version });
    }
    let tensor_count = reader.u64("the number of tensors")?;
    at_most("the number of tensors", tensor_count, MOST_TENSORS)?;
    let key_count = reader.u64("the number of metadata keys")?;
    at_most("the number of metadata keys", key_count, MOST_KEYS)?;

    let mut metadata = BTreeMap::new();
    for _ in 0..key_count {
        let (key, value) = reader.entry()?;
        if metadata.contains_key(&key) {
            return Err(GgufFault::Duplicate {
                what: "key",
                name: key,
            });
        }
        metadata.insert(key, value);
    }
    if share == Share::First {
        rules::metadata(&metadata)?;
    }

    let mut tensors = Vec::new();
    for index in 0..tensor_count {
        tensors.push(reader.tensor(index)?);
    }
    rules::tensors(&tensors, &metadata, (reader.at, reader.size))?;
    Ok(Header {
        version,
        metadata,
        tensors,
    })
}

struct Reader<R> {
    source: BufReader<R>,
    at: u64,
    size: u64,
    kept: u64,
    texts: u64,
}

impl<R: Read + Seek> Reader<R> {
    fn need(&self, field: &str, bytes: u64) -> Result<(), GgufFault> {
        let need = self.at.saturating_add(bytes);
        if need > self.size {
            return Err(GgufFault::Truncated {
                field: field.to_owned(),
                need,
                have: self.size,
            });
        }
        at_most("the size of the header", need, MOST_HEADER_BYTES)
    }

    fn bytes<const N: usize>(&mut self, field: &str) -> Result<[u8; N], GgufFault> {
        self.need(field, N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self, field: &str) -> Result<u32, GgufFault> {
        Ok(u32::from_le_bytes(self.bytes(field)?))
    }

    fn u64(&mut self, field: &str) -> Result<u64, GgufFault> {
        Ok(u64::from_le_bytes(self.bytes(field)?))
    }

    fn skip(&mut self, field: &str, bytes: u64) -> Result<(), GgufFault> {
        self.need(field, bytes)?;
        self.source
            .seek_relative(i64::try_from(bytes).unwrap_or(i64::MAX))?;
        self.at += bytes;
        Ok(())
    }

    /// `len` bytes, which the caller has limited.
    fn take(&mut self, field: &str, len: u64) -> Result<Vec<u8>, GgufFault> {
        self.need(field, len)?;
        let mut bytes = Vec::new();
        self.source.by_ref().take(len).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.at += len;
        Ok(bytes)
    }

    fn keep(&mut self, bytes: u64) -> Result<(), GgufFault> {
        self.kept += bytes;
        at_most("the size of the metadata", self.kept, MOST_KEPT_BYTES)
    }

    fn name(&mut self, field: &str, most: u64) -> Result<String, GgufFault> {
        let length = format!("the length of {field}");
        let len = self.u64(&length)?;
        if len == 0 {
            return Err(invalid(&length, 0, "at least 1"));
        }
        at_most(&length, len, most)?;
        let bytes = self.take(field, len)?;
        String::from_utf8(bytes).map_err(|error| {
            invalid(
                field,
                String::from_utf8_lossy(error.as_bytes()).into_owned(),
                "valid UTF-8",
            )
        })
    }

    fn entry(&mut self) -> Result<(String, Value), GgufFault> {
        let key = self.name(&format!("the key at byte {}", self.at), MOST_KEY_BYTES)?;
        self.keep(key.len() as u64 + 64)?;
        let kind = self.value_type(&format!("the type of '{key}'"))?;
        if key == "general.alignment" && kind != ValueType::U32 {
            return Err(invalid(
                "the type of 'general.alignment'",
                kind.name(),
                "u32",
            ));
        }
        let value = match kind {
            ValueType::Array => self.array(&key)?,
            scalar => self.value(scalar, &format!("'{key}'"))?,
        };
        Ok((key, value))
    }

    fn value_type(&mut self, field: &str) -> Result<ValueType, GgufFault> {
        let number = self.u32(field)?;
        ValueType::from_number(number)
            .ok_or_else(|| invalid(field, number, "a number from 0 to 12"))
    }

    fn value(&mut self, kind: ValueType, field: &str) -> Result<Value, GgufFault> {
        Ok(match kind {
            ValueType::U8 => Value::Unsigned(u8::from_le_bytes(self.bytes(field)?).into()),
            ValueType::I8 => Value::Signed(i8::from_le_bytes(self.bytes(field)?).into()),
            ValueType::U16 => Value::Unsigned(u16::from_le_bytes(self.bytes(field)?).into()),
            ValueType::I16 => Value::Signed(i16::from_le_bytes(self.bytes(field)?).into()),
            ValueType::U32 => Value::Unsigned(self.u32(field)?.into()),
            ValueType::I32 => Value::Signed(i32::from_le_bytes(self.bytes(field)?).into()),
            ValueType::F32 => Value::Float(shortest(f32::from_le_bytes(self.bytes(field)?))),
            ValueType::Bool => match self.bytes::<1>(field)? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(invalid(field, other, "0 or 1")),
            },
            ValueType::String => self.text(field)?,
            ValueType::U64 => Value::Unsigned(self.u64(field)?),
            ValueType::I64 => Value::Signed(i64::from_le_bytes(self.bytes(field)?)),
            ValueType::F64 => Value::Float(f64::from_le_bytes(self.bytes(field)?)),
            ValueType::Array => {
                return Err(invalid(
                    field,
                    "an array of arrays",
                    "an array of single values",
                ));
            }
        })
    }

    fn text(&mut self, field: &str) -> Result<Value, GgufFault> {
        let len = self.u64(field)?;
        if len > MOST_TEXT_BYTES {
            self.skip(field, len)?;
            return Ok(Value::LongText { bytes: len });
        }
        self.keep(len)?;
        let bytes = self.take(field, len)?;
        Ok(Value::Text(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }))
    }

    fn array(&mut self, key: &str) -> Result<Value, GgufFault> {
        let field = format!("the array '{key}'");
        let element = self.value_type(&format!("the element type of '{key}'"))?;
        let len = self.u64(&field)?;
        let smallest = match element {
            ValueType::Array => {
                return Err(invalid(
                    &field,
                    "an array of arrays",
                    "an array of single values",
                ));
            }
            ValueType::String => 8,
            scalar => scalar.size().unwrap_or(1),
        };
        at_most(&format!("the length of '{key}'"), len, MOST_ELEMENTS)?;
        if element == ValueType::String {
            self.texts += len;
            at_most("the number of texts in arrays", self.texts, MOST_TEXTS)?;
        }
        self.need(&field, len * smallest)?;
        if key == "tokenizer.ggml.tokens" && element == ValueType::String {
            self.tokens(&field, len)?;
            return Ok(Value::Array(Array {
                element,
                len,
                items: None,
            }));
        }
        if len > MOST_ITEMS {
            match element.size() {
                Some(size) => self.skip(&field, len * size)?,
                None => self.skip_texts(&field, len)?,
            }
            return Ok(Value::Array(Array {
                element,
                len,
                items: None,
            }));
        }
        self.keep(len * size_of::<Value>() as u64)?;
        let items = (0..len)
            .map(|_| self.value(element, &field))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Value::Array(Array {
            element,
            len,
            items: Some(items),
        }))
    }

    fn skip_texts(&mut self, field: &str, len: u64) -> Result<(), GgufFault> {
        for _ in 0..len {
            let bytes = self.u64(field)?;
            self.skip(field, bytes)?;
        }
        Ok(())
    }

    /// Walks the vocabulary. llama.cpp aborts where two tokens are equal (empty ones aside), so they are
    /// compared by a 64-bit hash.
    fn tokens(&mut self, field: &str, len: u64) -> Result<(), GgufFault> {
        at_most("the length of 'tokenizer.ggml.tokens'", len, MOST_TOKENS)?;
        let mut hashes = Vec::new();
        let mut token = Vec::new();
        for index in 0..len {
            let bytes = self.u64(field)?;
            at_most("the length of a token", bytes, MOST_TEXT_BYTES)?;
            self.need(field, bytes)?;
            token.clear();
            self.source.by_ref().take(bytes).read_to_end(&mut token)?;
            self.at += bytes;
            if !token.is_empty() {
                let mut state = DefaultHasher::new();
                token.hash(&mut state);
                hashes.push((state.finish(), u32::try_from(index).unwrap_or(u32::MAX)));
            }
        }
        hashes.sort_unstable();
        match hashes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(GgufFault::Duplicate {
                what: "token",
                name: format!("number {}, also number {}", pair[0].1, pair[1].1),
            }),
            None => Ok(()),
        }
    }

    fn tensor(&mut self, index: u64) -> Result<TensorInfo, GgufFault> {
        let name = self.name(
            &format!("the name of tensor {index}"),
            MOST_TENSOR_NAME_BYTES,
        )?;
        let field = format!("the tensor '{name}'");
        let dim_count = self.u32(&field)?;
        if dim_count > MOST_DIMS {
            return Err(invalid(
                &format!("the number of dimensions of '{name}'"),
                dim_count,
                "at most 4",
            ));
        }
        let mut dims = Vec::new();
        for _ in 0..dim_count {
            let dim = self.u64(&field)?;
            at_most(&format!("a dimension of '{name}'"), dim, i64::MAX as u64)?;
            dims.push(dim);
        }
        let number = self.u32(&field)?;
        let kind = TensorType::from_number(number).ok_or_else(|| {
            invalid(
                &format!("the type of '{name}'"),
                number,
                "a type that llama.cpp knows",
            )
        })?;
        let offset = self.u64(&field)?;
        let shape = || {
            invalid(
                &format!("the shape of '{name}'"),
                format!("{dims:?}"),
                "fewer elements",
            )
        };
        let elements = dims
            .iter()
            .try_fold(1_u64, |product, &dim| product.checked_mul(dim))
            .filter(|&elements| i64::try_from(elements).is_ok())
            .ok_or_else(shape)?;
        let row = dims.first().copied().unwrap_or(1);
        if row % kind.block_elements() != 0 {
            let expected = format!(
                "a multiple of {} for the type {}",
                kind.block_elements(),
                kind.name()
            );
            return Err(invalid(
                &format!("the row length of '{name}'"),
                row,
                &expected,
            ));
        }
        let bytes = (elements / kind.block_elements())
            .checked_mul(kind.block_bytes())
            .ok_or_else(shape)?;
        Ok(TensorInfo {
            name,
            dims,
            kind,
            offset,
            elements,
            bytes,
        })
    }
}

/// The value that the shortest decimal of `value` names: 0.1 stays 0.1 and not 0.10000000149011612.
fn shortest(value: f32) -> f64 {
    value
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(value))
}
