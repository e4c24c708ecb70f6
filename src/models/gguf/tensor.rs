//! Tensor types, with the block sizes of ggml's `type_traits`.

/// A tensor as the header lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Its dimensions, fastest first.
    pub dims: Vec<u64>,
    /// The type of its elements.
    pub kind: TensorType,
    /// Where its data begins, in bytes from the start of the tensor data.
    pub offset: u64,
    /// How many elements it has.
    pub elements: u64,
    /// The bytes of its data.
    pub bytes: u64,
}

/// The type of a tensor's elements: one that ggml can load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorType(usize);

struct Traits {
    number: u32,
    name: &'static str,
    block_elements: u64,
    block_bytes: u64,
}

const fn traits(number: u32, name: &'static str, block_elements: u64, block_bytes: u64) -> Traits {
    Traits {
        number,
        name,
        block_elements,
        block_bytes,
    }
}

/// Every type that ggml can load.
const TYPES: [Traits; 35] = [
    traits(0, "F32", 1, 4),
    traits(1, "F16", 1, 2),
    traits(2, "Q4_0", 32, 18),
    traits(3, "Q4_1", 32, 20),
    traits(6, "Q5_0", 32, 22),
    traits(7, "Q5_1", 32, 24),
    traits(8, "Q8_0", 32, 34),
    traits(9, "Q8_1", 32, 36),
    traits(10, "Q2_K", 256, 84),
    traits(11, "Q3_K", 256, 110),
    traits(12, "Q4_K", 256, 144),
    traits(13, "Q5_K", 256, 176),
    traits(14, "Q6_K", 256, 210),
    traits(15, "Q8_K", 256, 292),
    traits(16, "IQ2_XXS", 256, 66),
    traits(17, "IQ2_XS", 256, 74),
    traits(18, "IQ3_XXS", 256, 98),
    traits(19, "IQ1_S", 256, 50),
    traits(20, "IQ4_NL", 32, 18),
    traits(21, "IQ3_S", 256, 110),
    traits(22, "IQ2_S", 256, 82),
    traits(23, "IQ4_XS", 256, 136),
    traits(24, "I8", 1, 1),
    traits(25, "I16", 1, 2),
    traits(26, "I32", 1, 4),
    traits(27, "I64", 1, 8),
    traits(28, "F64", 1, 8),
    traits(29, "IQ1_M", 256, 56),
    traits(30, "BF16", 1, 2),
    traits(34, "TQ1_0", 256, 54),
    traits(35, "TQ2_0", 256, 66),
    traits(39, "MXFP4", 32, 17),
    traits(40, "NVFP4", 64, 36),
    traits(41, "Q1_0", 128, 18),
    traits(42, "Q2_0", 64, 18),
];

impl TensorType {
    /// The type with the number that ggml gives it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<TensorType> {
        TYPES
            .iter()
            .position(|traits| traits.number == number)
            .map(TensorType)
    }

    /// Its usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        TYPES[self.0].name
    }

    /// Whether the elements are whole numbers, which no model computes with.
    #[must_use]
    pub fn is_whole(self) -> bool {
        (24..=27).contains(&TYPES[self.0].number)
    }

    /// Elements that share a block.
    #[must_use]
    pub fn block_elements(self) -> u64 {
        TYPES[self.0].block_elements
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(self) -> u64 {
        TYPES[self.0].block_bytes
    }
}

/// The name of a `general.file_type`, as llama.cpp's quantize tool takes it.
pub(super) fn file_type_name(number: u64) -> Option<&'static str> {
    Some(match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4_MOE",
        39 => "NVFP4",
        40 => "Q1_0",
        41 => "Q2_0",
        _ => return None,
    })
}
