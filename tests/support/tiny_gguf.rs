//! Writes tiny random GGUF models, one for each kind of KV memory, so that tests need no download.
//!
//! The vocabulary is 259 tokens: `<s>` 0, `</s>` 1, `<unk>` 2, then the 256 bytes. The weights are noise from a
//! fixed seed: replies mean nothing but never change, which is right for comparing a reused cache with a cold
//! one. Metadata can be set, removed or added, so that hostile files are made here too.
#![allow(dead_code, reason = "each test crate uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "test support"
)]

use std::path::Path;

/// Tokens of the vocabulary.
pub const VOCAB: u64 = 259;

/// The chat template of every tiny model.
pub const CHAT_TEMPLATE: &str = "{% for m in messages %}{{ '[' + m['role'] + ']' + m['content'] + '\n' }}{% endfor %}\
     {% if add_generation_prompt %}[assistant]{% endif %}";

/// The sliding window of [`TinyKind::Gemma3`], in tokens.
pub const WINDOW: u32 = 64;

/// One kind of KV memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TinyKind {
    /// Plain attention.
    Llama,
    /// Sliding-window attention, five layers of six.
    Gemma3,
    /// Recurrent.
    Mamba,
    /// Hybrid: short convolutions and attention.
    Lfm2,
}

impl TinyKind {
    /// All kinds.
    pub const ALL: [TinyKind; 4] = [
        TinyKind::Llama,
        TinyKind::Gemma3,
        TinyKind::Mamba,
        TinyKind::Lfm2,
    ];

    /// `general.architecture`.
    pub fn architecture(self) -> &'static str {
        match self {
            TinyKind::Llama => "llama",
            TinyKind::Gemma3 => "gemma3",
            TinyKind::Mamba => "mamba",
            TinyKind::Lfm2 => "lfm2",
        }
    }

    /// A file name for it, such as `tiny-llama.gguf`.
    pub fn file_name(self) -> String {
        format!("tiny-{}.gguf", self.architecture())
    }

    fn layers(self) -> u32 {
        match self {
            TinyKind::Llama | TinyKind::Mamba => 2,
            TinyKind::Gemma3 => 6,
            TinyKind::Lfm2 => 4,
        }
    }
}

/// Writes the model of `kind` to `path`.
pub fn write(kind: TinyKind, path: &Path) {
    TinyGguf::new(kind).write(path);
}

/// Writes the model of `kind` into `dir` under its usual name and returns the path.
pub fn write_in(kind: TinyKind, dir: &Path) -> std::path::PathBuf {
    let path = dir.join(kind.file_name());
    write(kind, &path);
    path
}

/// The sizes of a tiny model.
#[derive(Debug, Clone, Copy)]
pub struct TinySizes {
    /// Layers (blocks).
    pub layers: u32,
    /// Embedding length; a multiple of 4, as there are four heads.
    pub embedding: u32,
    /// Feed-forward length.
    pub feed_forward: u32,
    /// Tokens of context that the model claims to be trained on.
    pub context: u32,
}

impl TinySizes {
    /// The usual sizes of `kind`.
    pub fn of(kind: TinyKind) -> Self {
        TinySizes {
            layers: kind.layers(),
            embedding: 64,
            feed_forward: 128,
            context: 2048,
        }
    }
}

/// A metadata value.
#[derive(Debug, Clone)]
pub enum Value {
    U8(u8),
    U32(u32),
    I32(i32),
    F32(f32),
    U64(u64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    F32s(Vec<f32>),
    I32s(Vec<i32>),
    U8s(Vec<u8>),
    /// A type number and the bytes that follow it, whatever they are.
    Raw(u32, Vec<u8>),
}

impl Value {
    fn encode(&self, out: &mut Vec<u8>) {
        let kind: u32 = match self {
            Value::U8(_) => 0,
            Value::U32(_) => 4,
            Value::I32(_) => 5,
            Value::F32(_) => 6,
            Value::Bool(_) => 7,
            Value::Text(_) => 8,
            Value::Texts(_) | Value::F32s(_) | Value::I32s(_) | Value::U8s(_) => 9,
            Value::U64(_) => 10,
            Value::Raw(kind, _) => *kind,
        };
        out.extend(kind.to_le_bytes());
        match self {
            Value::U8(v) => out.push(*v),
            Value::U32(v) => out.extend(v.to_le_bytes()),
            Value::I32(v) => out.extend(v.to_le_bytes()),
            Value::F32(v) => out.extend(v.to_le_bytes()),
            Value::U64(v) => out.extend(v.to_le_bytes()),
            Value::Bool(v) => out.push(u8::from(*v)),
            Value::Text(v) => encode_text(v, out),
            Value::Texts(v) => {
                encode_array_head(8, v.len(), out);
                for text in v {
                    encode_text(text, out);
                }
            }
            Value::F32s(v) => {
                encode_array_head(6, v.len(), out);
                for x in v {
                    out.extend(x.to_le_bytes());
                }
            }
            Value::I32s(v) => {
                encode_array_head(5, v.len(), out);
                for x in v {
                    out.extend(x.to_le_bytes());
                }
            }
            Value::U8s(v) => {
                encode_array_head(0, v.len(), out);
                out.extend(v);
            }
            Value::Raw(_, bytes) => out.extend(bytes),
        }
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn encode_array_head(element: u32, len: usize, out: &mut Vec<u8>) {
    out.extend(element.to_le_bytes());
    out.extend((len as u64).to_le_bytes());
}

/// A tensor of 32-bit floats.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its dimensions, fastest first: a matrix that maps `cols` to `rows` is `[cols, rows]`.
    pub dims: Vec<u64>,
    /// Its values.
    pub data: Vec<f32>,
    /// The type number written for it; 0 is F32.
    pub kind: u32,
    /// The offset written for it, where it is not the true one.
    pub offset: Option<u64>,
}

/// A model in the making.
#[derive(Debug, Clone)]
pub struct TinyGguf {
    /// The format's version; 3.
    pub version: u32,
    /// Metadata in the order written.
    pub metadata: Vec<(String, Value)>,
    /// Tensors in the order written.
    pub tensors: Vec<Tensor>,
    /// The alignment of the tensor data, in bytes; 32. Set `general.alignment` too where it differs.
    pub alignment: u64,
    arch: &'static str,
    sizes: TinySizes,
    random: Random,
}

impl TinyGguf {
    /// The model of `kind` with its usual sizes.
    pub fn new(kind: TinyKind) -> Self {
        Self::with_sizes(kind, TinySizes::of(kind))
    }

    /// The model of `kind` with other sizes.
    pub fn with_sizes(kind: TinyKind, sizes: TinySizes) -> Self {
        let mut model = TinyGguf {
            version: 3,
            metadata: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
            arch: kind.architecture(),
            sizes,
            random: Random(7),
        };
        model.common(kind);
        match kind {
            TinyKind::Llama => model.llama(),
            TinyKind::Gemma3 => model.gemma3(),
            TinyKind::Mamba => model.mamba(),
            TinyKind::Lfm2 => model.lfm2(),
        }
        model
    }

    /// Sets a metadata value, in its old place where the key is there already.
    #[must_use]
    pub fn set(mut self, key: &str, value: Value) -> Self {
        match self.metadata.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
        self
    }

    /// Removes a metadata value.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(name, _)| name != key);
        self
    }

    /// Removes the chat template.
    #[must_use]
    pub fn without_chat_template(self) -> Self {
        self.without("tokenizer.chat_template")
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(b"GGUF");
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            encode_text(key, &mut out);
            value.encode(&mut out);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            encode_text(&tensor.name, &mut out);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor
                .dims
                .iter()
                .for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            out.extend(tensor.offset.unwrap_or(offset).to_le_bytes());
            offset += (tensor.data.len() as u64 * 4).next_multiple_of(self.alignment);
        }
        self.pad(&mut out);
        for tensor in &self.tensors {
            tensor.data.iter().for_each(|x| out.extend(x.to_le_bytes()));
            self.pad(&mut out);
        }
        out
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.encode()).unwrap();
    }

    fn pad(&self, out: &mut Vec<u8>) {
        out.resize(out.len().next_multiple_of(self.alignment as usize), 0);
    }

    fn common(&mut self, kind: TinyKind) {
        let sizes = self.sizes;
        self.add("general.architecture", Value::Text(self.arch.to_owned()));
        self.add("general.name", Value::Text(format!("tiny-{}", self.arch)));
        self.add_u32("context_length", sizes.context);
        self.add_u32("embedding_length", sizes.embedding);
        self.add_u32("block_count", sizes.layers);
        self.add_u32("feed_forward_length", sizes.feed_forward);
        self.add("general.file_type", Value::U32(0));
        self.add_u32("vocab_size", VOCAB as u32);

        let mut tokens = vec!["<s>".to_owned(), "</s>".to_owned(), "<unk>".to_owned()];
        tokens.extend((0..256).map(|byte| format!("<0x{byte:02X}>")));
        let mut types = vec![3, 3, 2];
        types.extend([6; 256]);
        self.add("tokenizer.ggml.model", Value::Text("llama".to_owned()));
        self.add("tokenizer.ggml.tokens", Value::Texts(tokens));
        self.add(
            "tokenizer.ggml.scores",
            Value::F32s(vec![0.0; VOCAB as usize]),
        );
        self.add("tokenizer.ggml.token_type", Value::I32s(types));
        self.add("tokenizer.ggml.bos_token_id", Value::U32(0));
        self.add("tokenizer.ggml.eos_token_id", Value::U32(1));
        self.add("tokenizer.ggml.unknown_token_id", Value::U32(2));
        self.add("tokenizer.ggml.add_bos_token", Value::Bool(true));
        self.add("tokenizer.ggml.add_space_prefix", Value::Bool(false));
        self.add(
            "tokenizer.chat_template",
            Value::Text(CHAT_TEMPLATE.to_owned()),
        );

        self.mat("token_embd.weight", VOCAB, self.embedding());
        let norm = if kind == TinyKind::Lfm2 {
            "token_embd_norm.weight"
        } else {
            "output_norm.weight"
        };
        self.vec(norm, self.embedding(), 1.0);
    }

    fn llama(&mut self) {
        self.add_u32("attention.head_count", 4);
        self.add_u32("attention.head_count_kv", 2);
        self.add_f32("attention.layer_norm_rms_epsilon", 1e-5);
        self.add_u32("rope.dimension_count", self.sizes.embedding / 4);
        self.mat("output.weight", VOCAB, self.embedding());
        for i in 0..self.sizes.layers {
            self.vec(&format!("blk.{i}.attn_norm.weight"), self.embedding(), 1.0);
            self.vec(&format!("blk.{i}.ffn_norm.weight"), self.embedding(), 1.0);
            self.attention(i, 2, self.embedding() / 4);
            self.feed_forward(i);
        }
    }

    fn gemma3(&mut self) {
        self.add_u32("attention.head_count", 4);
        self.add_u32("attention.head_count_kv", 1);
        self.add_f32("attention.layer_norm_rms_epsilon", 1e-6);
        self.add_u32("attention.key_length", 16);
        self.add_u32("attention.value_length", 16);
        self.add_u32("attention.sliding_window", WINDOW);
        self.add_f32("rope.freq_base", 1e6);
        for i in 0..self.sizes.layers {
            for norm in [
                "attn_norm",
                "post_attention_norm",
                "ffn_norm",
                "post_ffw_norm",
            ] {
                self.vec(&format!("blk.{i}.{norm}.weight"), self.embedding(), 1.0);
            }
            self.head_norms(i, 16);
            self.attention(i, 1, 16);
            self.feed_forward(i);
        }
    }

    fn mamba(&mut self) {
        let embedding = self.embedding();
        let inner = 2 * embedding;
        let (state, conv, step) = (16, 4, 4);
        self.add_u32("ssm.conv_kernel", conv as u32);
        self.add_u32("ssm.inner_size", inner as u32);
        self.add_u32("ssm.state_size", state as u32);
        self.add_u32("ssm.time_step_rank", step as u32);
        self.add_f32("attention.layer_norm_rms_epsilon", 1e-5);
        self.add_u32("attention.head_count", 0);
        self.mat("output.weight", VOCAB, embedding);
        for i in 0..self.sizes.layers {
            self.vec(&format!("blk.{i}.attn_norm.weight"), embedding, 1.0);
            self.mat(&format!("blk.{i}.ssm_in.weight"), 2 * inner, embedding);
            self.mat(&format!("blk.{i}.ssm_conv1d.weight"), inner, conv);
            self.vec(&format!("blk.{i}.ssm_conv1d.bias"), inner, 0.0);
            self.mat(&format!("blk.{i}.ssm_x.weight"), step + 2 * state, inner);
            self.mat(&format!("blk.{i}.ssm_dt.weight"), inner, step);
            self.vec(&format!("blk.{i}.ssm_dt.bias"), inner, 0.1);
            let decay = (0..inner)
                .flat_map(|_| (1..=state).map(|n| -(n as f32)))
                .collect();
            self.push(&format!("blk.{i}.ssm_a"), vec![state, inner], decay);
            self.vec(&format!("blk.{i}.ssm_d"), inner, 1.0);
            self.mat(&format!("blk.{i}.ssm_out.weight"), embedding, inner);
        }
    }

    fn lfm2(&mut self) {
        let embedding = self.embedding();
        let kv_heads: Vec<i32> = (0..self.sizes.layers)
            .map(|i| if i % 2 == 1 { 2 } else { 0 })
            .collect();
        self.add_u32("attention.head_count", 4);
        self.add(
            &format!("{}.attention.head_count_kv", self.arch),
            Value::I32s(kv_heads.clone()),
        );
        self.add_f32("attention.layer_norm_rms_epsilon", 1e-5);
        self.add_u32("shortconv.l_cache", 3);
        for (i, kv) in (0..self.sizes.layers).zip(kv_heads) {
            self.vec(&format!("blk.{i}.attn_norm.weight"), embedding, 1.0);
            self.vec(&format!("blk.{i}.ffn_norm.weight"), embedding, 1.0);
            self.feed_forward(i);
            if kv > 0 {
                self.head_norms(i, embedding / 4);
                self.attention(i, 2, embedding / 4);
            } else {
                self.mat(&format!("blk.{i}.shortconv.conv.weight"), embedding, 3);
                self.mat(
                    &format!("blk.{i}.shortconv.in_proj.weight"),
                    3 * embedding,
                    embedding,
                );
                self.mat(
                    &format!("blk.{i}.shortconv.out_proj.weight"),
                    embedding,
                    embedding,
                );
            }
        }
    }

    fn head_norms(&mut self, i: u32, head: u64) {
        self.vec(&format!("blk.{i}.attn_q_norm.weight"), head, 1.0);
        self.vec(&format!("blk.{i}.attn_k_norm.weight"), head, 1.0);
    }

    fn attention(&mut self, i: u32, kv_heads: u64, head: u64) {
        let embedding = self.embedding();
        self.mat(&format!("blk.{i}.attn_q.weight"), 4 * head, embedding);
        self.mat(
            &format!("blk.{i}.attn_k.weight"),
            kv_heads * head,
            embedding,
        );
        self.mat(
            &format!("blk.{i}.attn_v.weight"),
            kv_heads * head,
            embedding,
        );
        self.mat(&format!("blk.{i}.attn_output.weight"), embedding, 4 * head);
    }

    fn feed_forward(&mut self, i: u32) {
        let (embedding, inner) = (self.embedding(), u64::from(self.sizes.feed_forward));
        self.mat(&format!("blk.{i}.ffn_gate.weight"), inner, embedding);
        self.mat(&format!("blk.{i}.ffn_up.weight"), inner, embedding);
        self.mat(&format!("blk.{i}.ffn_down.weight"), embedding, inner);
    }

    fn embedding(&self) -> u64 {
        u64::from(self.sizes.embedding)
    }

    fn add(&mut self, key: &str, value: Value) {
        self.metadata.push((key.to_owned(), value));
    }

    fn add_u32(&mut self, key: &str, value: u32) {
        self.add(&format!("{}.{key}", self.arch), Value::U32(value));
    }

    fn add_f32(&mut self, key: &str, value: f32) {
        self.add(&format!("{}.{key}", self.arch), Value::F32(value));
    }

    /// A random weight that maps `cols` values to `rows`.
    fn mat(&mut self, name: &str, rows: u64, cols: u64) {
        let data = (0..rows * cols)
            .map(|_| self.random.normal() * 0.3)
            .collect();
        self.push(name, vec![cols, rows], data);
    }

    fn vec(&mut self, name: &str, len: u64, value: f32) {
        self.push(name, vec![len], vec![value; len as usize]);
    }

    fn push(&mut self, name: &str, dims: Vec<u64>, data: Vec<f32>) {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            dims,
            data,
            kind: 0,
            offset: None,
        });
    }
}

/// The `SplitMix64` generator, with a normal-looking distribution made of sums alone, so that every machine writes the same
/// bytes.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The sum of twelve uniform values less six: mean 0, variance 1.
    fn normal(&mut self) -> f32 {
        let mut sum = 0_u32;
        for _ in 0..3 {
            let bits = self.next();
            sum += (0..4)
                .map(|part| (bits >> (16 * part)) as u32 & 0xFFFF)
                .sum::<u32>();
        }
        sum as f32 / 65536.0 - 6.0
    }
}
