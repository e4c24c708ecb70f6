//! Metadata values. Long texts and long arrays are known by their length alone.

use std::fmt;

/// The type of a metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    I8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    I16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    I32,
    /// A 32-bit float.
    F32,
    /// A truth value in one byte.
    Bool,
    /// A length and UTF-8 bytes.
    String,
    /// An element type, a length and the elements.
    Array,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    I64,
    /// A 64-bit float.
    F64,
}

impl ValueType {
    /// The type with the number that the format gives it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<ValueType> {
        Some(match number {
            0 => ValueType::U8,
            1 => ValueType::I8,
            2 => ValueType::U16,
            3 => ValueType::I16,
            4 => ValueType::U32,
            5 => ValueType::I32,
            6 => ValueType::F32,
            7 => ValueType::Bool,
            8 => ValueType::String,
            9 => ValueType::Array,
            10 => ValueType::U64,
            11 => ValueType::I64,
            12 => ValueType::F64,
            _ => return None,
        })
    }

    /// The name used in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }

    /// The bytes of one value; `None` where they vary.
    #[must_use]
    pub fn size(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }
}

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An unsigned number of any width.
    Unsigned(u64),
    /// A signed number of any width.
    Signed(i64),
    /// A float of either width.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A text too long to keep.
    LongText {
        /// Its length in bytes.
        bytes: u64,
    },
    /// An array.
    Array(Array),
}

/// An array of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The type of its elements.
    pub element: ValueType,
    /// How many it has.
    pub len: u64,
    /// The elements; `None` where there are too many to keep.
    pub items: Option<Vec<Value>>,
}

impl Value {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, where it is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Unsigned(value) => Some(*value),
            Value::Signed(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The float.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The truth value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The value as JSON; what was not kept is shown by its length.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Unsigned(value) => (*value).into(),
            Value::Signed(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Bool(value) => (*value).into(),
            Value::Text(value) => value.as_str().into(),
            Value::LongText { .. } => self.to_string().into(),
            Value::Array(array) => match &array.items {
                Some(items) => items.iter().map(Value::to_json).collect(),
                None => self.to_string().into(),
            },
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(value) => value.fmt(f),
            Value::Signed(value) => value.fmt(f),
            Value::Float(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Text(value) => f.write_str(value),
            Value::LongText { bytes } => write!(f, "(text of {bytes} bytes)"),
            Value::Array(Array {
                items: Some(items), ..
            }) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Value::Array(Array {
                element,
                len,
                items: None,
            }) => write!(f, "({len} × {})", element.name()),
        }
    }
}
