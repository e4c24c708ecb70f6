//! A model that says what the test tells it, takes as long as the test says, and fails when the test wants.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use platen::clock::FakeClock;
use platen::engine::event::{EngineError, MemoryKind, ModelFacts, TemplateSource};
use platen::engine::inference::{
    DecodeError, Inference, Interrupt, Loaded, Loader, Logits, Seq, StateError, StatePart,
    Truncation,
};
use platen::engine::options::{FlashAttention, KvType, LoadOptions};
use platen::engine::prompt::{
    ChatTemplate, ModelIdentity, PromptBuilder, SpecialKind, SpecialToken, SpecialTokens,
    TokenizeError, Vocabulary,
};
use platen::engine::sampling::SamplingPatch;
use platen::engine::token::TokenId;

/// One token a byte, then the control tokens, then what the script adds.
const FIRST_CONTROL: usize = 256;
const CONTROLS: [&str; 5] = [
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|stop|>",
];
const FIRST_EXTRA: usize = FIRST_CONTROL + CONTROLS.len();
const TEMPLATE: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}\
                        {% if add_generation_prompt %}<|assistant|>{% endif %}";

/// What the model does.
#[derive(Clone)]
pub struct Script {
    /// The pieces of each reply, each one token; a reply ends with an end-of-generation token.
    pub replies: VecDeque<Vec<Vec<u8>>>,
    /// The control token that ends replies.
    pub end: &'static str,
    pub context: u32,
    pub batch: u32,
    pub memory: MemoryKind,
    pub sequences: u32,
    pub spare_ram: usize,
    pub clock: FakeClock,
    pub prefill_each: Duration,
    pub decode_each: Duration,
    /// Decode calls, counted from 0 over the model's life, that fail, and how many of their tokens stay.
    pub failures: HashMap<usize, (DecodeError, usize)>,
    /// Called with its number at the start of each decode call.
    pub before_decode: Arc<dyn Fn(usize) + Send + Sync>,
    /// The decode calls: their tokens.
    pub calls: Arc<Mutex<Vec<Vec<TokenId>>>>,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            replies: VecDeque::new(),
            end: "<|end|>",
            context: 4096,
            batch: 512,
            memory: MemoryKind::Attention,
            sequences: 4,
            spare_ram: 1 << 20,
            clock: FakeClock::default(),
            prefill_each: Duration::from_millis(1),
            decode_each: Duration::from_millis(10),
            failures: HashMap::new(),
            before_decode: Arc::new(|_| {}),
            calls: Arc::default(),
        }
    }
}

impl Script {
    pub fn replying<R: AsRef<[u8]>>(replies: &[&[R]]) -> Script {
        let replies = replies
            .iter()
            .map(|reply| reply.iter().map(|piece| piece.as_ref().to_vec()).collect())
            .collect();
        Script {
            replies,
            ..Script::default()
        }
    }
}

pub struct ScriptedLoader(pub Script);

impl Loader for ScriptedLoader {
    fn load(
        &mut self,
        path: &Path,
        _: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError> {
        if path == Path::new("missing.gguf") {
            return Err(EngineError::new(
                "missing.gguf does not exist.",
                "Choose another file.",
            ));
        }
        report(0.5);
        let model = Scripted::new(self.0.clone(), Arc::clone(interrupt));
        Ok(Loaded {
            model: Box::new(model),
            notices: Vec::new(),
            spare_ram: self.0.spare_ram,
        })
    }
}

struct Scripted {
    script: Script,
    interrupt: Arc<Interrupt>,
    facts: ModelFacts,
    vocabulary: ScriptVocabulary,
    prompts: PromptBuilder,
    /// The tokens of each sequence, each with its cell.
    held: Vec<Vec<(TokenId, usize)>>,
    cells: usize,
    logits: Option<Vec<f32>>,
    reply: VecDeque<Vec<u8>>,
    call: usize,
}

impl Scripted {
    fn new(script: Script, interrupt: Arc<Interrupt>) -> Scripted {
        let vocabulary = ScriptVocabulary::new(&script);
        let identity = ModelIdentity {
            name: "scripted-chat",
            architecture: "scripted",
        };
        let chosen = ChatTemplate::from_model(Some(TEMPLATE), identity, &vocabulary).unwrap();
        Scripted {
            facts: ModelFacts {
                name: "scripted".to_owned(),
                path: PathBuf::from("scripted.gguf"),
                architecture: "scripted".to_owned(),
                quantization: "F32".to_owned(),
                parameters: 1,
                model_bytes: 4,
                layers: 1,
                vocab: u32::try_from(vocabulary.pieces.len()).unwrap(),
                vocabulary: "scripted".into(),
                fingerprint: "scripted".into(),
                context_train: script.context,
                context: script.context,
                batch: script.batch,
                ubatch: script.batch,
                threads_prefill: 1,
                threads_decode: 1,
                type_k: KvType::F16,
                type_v: KvType::F16,
                flash_attention: FlashAttention::Auto,
                memory: script.memory,
                kv_bytes_per_token: 100,
                state_bytes: 0,
                kv_capacity_bytes: 100 * u64::from(script.context),
                template: TemplateSource::Model,
                recommended: SamplingPatch::default(),
            },
            prompts: PromptBuilder::new(chosen.template, &vocabulary),
            vocabulary,
            interrupt,
            held: vec![Vec::new(); script.sequences as usize],
            cells: 0,
            logits: None,
            reply: VecDeque::new(),
            call: 0,
            script,
        }
    }

    fn line(&self, seq: Seq) -> &Vec<(TokenId, usize)> {
        &self.held[seq.0 as usize]
    }

    fn line_mut(&mut self, seq: Seq) -> &mut Vec<(TokenId, usize)> {
        &mut self.held[seq.0 as usize]
    }

    fn append(&mut self, seq: Seq, tokens: &[TokenId]) {
        let first = self.cells;
        self.cells += tokens.len();
        self.line_mut(seq)
            .extend(tokens.iter().copied().zip(first..));
    }

    fn next_logits(&mut self, tokens: &[TokenId]) -> Vec<f32> {
        let assistant = self.vocabulary.control("<|assistant|>");
        if tokens.last() == Some(&assistant) {
            self.reply = self.script.replies.pop_front().unwrap_or_default().into();
        }
        let next = match self.reply.pop_front() {
            Some(piece) => self.vocabulary.find(&piece),
            None => self.vocabulary.control(self.script.end),
        };
        let mut logits = vec![0.0; self.vocabulary.pieces.len()];
        logits[usize::try_from(next.0).unwrap()] = 50.0;
        logits
    }
}

impl Inference for Scripted {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn vocabulary(&self) -> &dyn Vocabulary {
        &self.vocabulary
    }

    fn prompts(&self) -> &PromptBuilder {
        &self.prompts
    }

    fn sequences(&self) -> u32 {
        self.script.sequences
    }

    fn len(&self, seq: Seq) -> usize {
        self.line(seq).len()
    }

    fn decode(
        &mut self,
        seq: Seq,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let call = self.call;
        self.call += 1;
        (self.script.before_decode)(call);
        assert_eq!(
            start,
            self.len(seq),
            "the engine's ledger and the context disagree"
        );
        assert!(
            tokens.len() <= self.script.batch as usize,
            "more tokens than a batch takes"
        );
        assert!(!tokens.is_empty(), "an empty batch");
        self.script.calls.lock().unwrap().push(tokens.to_vec());
        self.logits = None;
        if let Some((error, kept)) = self.script.failures.get(&call) {
            let (error, kept) = (*error, tokens.len().min(*kept));
            self.append(seq, &tokens[..kept]);
            return Err(error);
        }
        if self.interrupt.is_cancelled() {
            return Err(DecodeError::Cancelled);
        }
        let cells: HashSet<usize> = self.held.iter().flatten().map(|(_, cell)| *cell).collect();
        if cells.len() + tokens.len() > self.script.context as usize {
            return Err(DecodeError::Full);
        }
        let each = if tokens.len() == 1 {
            self.script.decode_each
        } else {
            self.script.prefill_each
        };
        self.script
            .clock
            .advance(each * u32::try_from(tokens.len()).unwrap());
        self.append(seq, tokens);
        self.logits = (logits == Logits::Last).then(|| self.next_logits(tokens));
        Ok(())
    }

    fn logits(&self) -> Option<&[f32]> {
        self.logits.as_deref()
    }

    fn truncate(&mut self, seq: Seq, len: usize) -> Truncation {
        if len >= self.len(seq) {
            return Truncation::Done;
        }
        if self.script.memory.can_cut() {
            self.line_mut(seq).truncate(len);
            Truncation::Done
        } else {
            Truncation::Impossible
        }
    }

    fn share(&mut self, from: Seq, to: Seq, len: usize) -> bool {
        assert!(
            self.line(to).is_empty(),
            "only an empty sequence takes over"
        );
        if !self.script.memory.can_cut() {
            return false;
        }
        *self.line_mut(to) = self.line(from)[..len].to_vec();
        true
    }

    fn forget(&mut self, seq: Seq) {
        self.line_mut(seq).clear();
    }

    fn clear(&mut self) {
        self.held.iter_mut().for_each(Vec::clear);
        self.logits = None;
    }

    fn save(&mut self, seq: Seq, part: StatePart) -> Result<Vec<u8>, StateError> {
        if self.line(seq).is_empty() {
            return Err(StateError::Write);
        }
        let mut bytes = vec![u8::from(part == StatePart::Whole)];
        for (token, _) in self.line(seq) {
            bytes.extend(token.0.to_le_bytes());
        }
        Ok(bytes)
    }

    fn restore(&mut self, seq: Seq, part: StatePart, bytes: &[u8]) -> Result<(), StateError> {
        self.logits = None;
        self.line_mut(seq).clear();
        if bytes.first() != Some(&u8::from(part == StatePart::Whole)) {
            return Err(StateError::Mismatch);
        }
        let tokens: Vec<TokenId> = bytes[1..]
            .chunks(4)
            .map(|id| TokenId(i32::from_le_bytes(id.try_into().unwrap())))
            .collect();
        self.append(seq, &tokens);
        Ok(())
    }
}

struct ScriptVocabulary {
    pieces: Vec<Vec<u8>>,
    specials: Vec<SpecialToken>,
}

impl ScriptVocabulary {
    fn new(script: &Script) -> Self {
        let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        pieces.extend(CONTROLS.map(|name| name.as_bytes().to_vec()));
        let specials = CONTROLS
            .iter()
            .zip(FIRST_CONTROL..)
            .map(|(name, id)| SpecialToken {
                id: TokenId(i32::try_from(id).unwrap()),
                text: (*name).to_owned(),
                kind: SpecialKind::Control,
                ends_generation: matches!(*name, "<|end|>" | "<|stop|>"),
            })
            .collect();
        for piece in script.replies.iter().flatten() {
            if !pieces.contains(piece) {
                pieces.push(piece.clone());
            }
        }
        ScriptVocabulary { pieces, specials }
    }

    fn find(&self, piece: &[u8]) -> TokenId {
        TokenId(
            i32::try_from(self.pieces.iter().position(|known| known == piece).unwrap()).unwrap(),
        )
    }

    fn control(&self, name: &str) -> TokenId {
        self.find(name.as_bytes())
    }
}

impl Vocabulary for ScriptVocabulary {
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while let Some(byte) = rest.first() {
            let control = CONTROLS
                .iter()
                .filter(|_| special == SpecialTokens::Parse)
                .find(|name| rest.starts_with(name.as_bytes()));
            let (token, len) = match control {
                Some(name) => (self.control(name), name.len()),
                None => (TokenId(i32::from(*byte)), 1),
            };
            tokens.push(token);
            rest = &rest[len..];
        }
        Ok(tokens)
    }

    fn piece(&self, id: TokenId) -> Vec<u8> {
        usize::try_from(id.0)
            .ok()
            .and_then(|at| self.pieces.get(at))
            .cloned()
            .unwrap_or_default()
    }

    fn is_control(&self, id: TokenId) -> bool {
        usize::try_from(id.0).is_ok_and(|at| (FIRST_CONTROL..FIRST_EXTRA).contains(&at))
    }

    fn specials(&self) -> &[SpecialToken] {
        &self.specials
    }

    fn add_bos(&self) -> bool {
        false
    }

    fn bos(&self) -> Option<TokenId> {
        None
    }

    fn eos(&self) -> Option<TokenId> {
        Some(self.control("<|end|>"))
    }

    fn space_prefix(&self) -> bool {
        false
    }
}
