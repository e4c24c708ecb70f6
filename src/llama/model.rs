//! A loaded model: its weights, its facts and, in [`super::vocab`], its vocabulary.

use std::ffi::{CStr, CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use llama_cpp_sys_2 as sys;

use super::backend::Backend;
use super::interrupt::Interrupt;
use super::log;
use crate::models::gguf::GgufError;
use crate::models::parts::ModelFiles;

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is missing, damaged or not a GGUF file; llama.cpp was not asked.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The path can't be handed to llama.cpp.
    #[error("{0:?} is not valid UTF-8 or holds a NUL byte; rename the file")]
    Path(PathBuf),
    /// A kind of model that can't chat.
    #[error("{0}")]
    Unsupported(String),
    /// llama.cpp refused it.
    #[error("llama.cpp could not load {path}: {reason}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Its own words, from its log.
        reason: String,
    },
    /// The load was cancelled.
    #[error("loading was cancelled")]
    Cancelled,
}

/// A model in memory.
#[derive(Debug)]
pub struct Model {
    raw: NonNull<sys::llama_model>,
    path: PathBuf,
    /// Dropped after `raw` is freed.
    _backend: Backend,
}

// SAFETY: a loaded model is immutable, and llama.cpp reads it from any thread.
unsafe impl Send for Model {}
// SAFETY: as above; creating contexts, which is not reentrant, takes a lock of its own.
unsafe impl Sync for Model {}

struct Progress<'a> {
    interrupt: &'a Interrupt,
    report: &'a mut dyn FnMut(f32),
}

unsafe extern "C" fn on_progress(progress: f32, data: *mut c_void) -> bool {
    // SAFETY: `data` is the `Progress` that `Model::load` keeps on its stack during the whole load, and llama.cpp
    // calls back from the loading thread alone.
    let state = unsafe { &mut *data.cast::<Progress<'_>>() };
    // A panic must not cross into C++: it would abort the process.
    catch_unwind(AssertUnwindSafe(|| (state.report)(progress))).is_ok()
        && !state.interrupt.is_cancelled()
}

/// How weights are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelParams {
    /// Layers kept on the GPU; `None`: all that fit.
    pub gpu_layers: Option<u32>,
}

impl Model {
    /// Loads a GGUF file (of a split model, the first part). `report` hears the progress from 0 to 1;
    /// `interrupt` cancels.
    ///
    /// # Errors
    /// See [`ModelError`]. The file is checked by our own reader first, since llama.cpp aborts the process on some
    /// headers.
    pub fn load(
        path: &Path,
        params: ModelParams,
        interrupt: &Interrupt,
        report: &mut dyn FnMut(f32),
    ) -> Result<Arc<Model>, ModelError> {
        ModelFiles::open(path)?;
        let backend = Backend::acquire();
        let c_path = path
            .to_str()
            .and_then(|text| CString::new(text).ok())
            .ok_or_else(|| ModelError::Path(path.to_owned()))?;
        let mut progress = Progress { interrupt, report };
        // SAFETY: returns a plain struct of defaults.
        let mut raw_params = unsafe { sys::llama_model_default_params() };
        raw_params.n_gpu_layers = params
            .gpu_layers
            .map_or(-1, |layers| i32::try_from(layers).unwrap_or(i32::MAX));
        raw_params.progress_callback = Some(on_progress);
        raw_params.progress_callback_user_data = (&raw mut progress).cast();
        log::clear_problems();
        // SAFETY: the path is NUL-terminated, and `progress` outlives the call.
        let raw = unsafe { sys::llama_model_load_from_file(c_path.as_ptr(), raw_params) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(if interrupt.is_cancelled() {
                ModelError::Cancelled
            } else {
                ModelError::Refused {
                    path: path.to_owned(),
                    reason: last_problem(),
                }
            });
        };
        let model = Model {
            raw,
            path: path.to_owned(),
            _backend: backend,
        };
        model.check_it_can_chat()?;
        Ok(Arc::new(model))
    }

    fn check_it_can_chat(&self) -> Result<(), ModelError> {
        // SAFETY: the model is alive.
        let (encoder, decoder, diffusion) = unsafe {
            (
                sys::llama_model_has_encoder(self.as_ptr()),
                sys::llama_model_has_decoder(self.as_ptr()),
                sys::llama_model_is_diffusion(self.as_ptr()),
            )
        };
        let kind = match (encoder, decoder, diffusion) {
            (_, false, _) => "encodes text and generates none",
            (true, true, _) => "is an encoder-decoder",
            (false, true, true) => "is a diffusion model",
            (false, true, false) => return Ok(()),
        };
        Err(ModelError::Unsupported(format!(
            "{} {kind}; platen chats with models that generate token by token",
            self.path.display()
        )))
    }

    pub(super) fn as_ptr(&self) -> *const sys::llama_model {
        self.raw.as_ptr()
    }

    pub(super) fn as_mut_ptr(&self) -> *mut sys::llama_model {
        self.raw.as_ptr()
    }

    /// The file it was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_size(self.as_ptr()) }
    }

    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_n_params(self.as_ptr()) }
    }

    /// Layers.
    #[must_use]
    pub fn layers(&self) -> u32 {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_n_layer(self.as_ptr()) }.unsigned_abs()
    }

    /// The context it was trained on, in tokens.
    #[must_use]
    pub fn context_train(&self) -> u32 {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_n_ctx_train(self.as_ptr()) }.unsigned_abs()
    }

    /// The sliding window, in tokens; 0 where every layer attends to everything.
    #[must_use]
    pub fn sliding_window(&self) -> u32 {
        // SAFETY: the model is alive.
        u32::try_from(unsafe { sys::llama_model_n_swa(self.as_ptr()) }).unwrap_or(0)
    }

    /// Whether it keeps one state instead of every token's keys and values.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_is_recurrent(self.as_ptr()) }
    }

    /// Whether it has both kinds of layers.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        // SAFETY: the model is alive.
        unsafe { sys::llama_model_is_hybrid(self.as_ptr()) }
    }

    /// A metadata value (a scalar or a string) as text; `None` where the key is missing.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        // SAFETY: a null buffer of size 0 asks for the length alone.
        let len = unsafe {
            sys::llama_model_meta_val_str(self.as_ptr(), key.as_ptr(), std::ptr::null_mut(), 0)
        };
        let len = usize::try_from(len).ok()?;
        let mut buffer = vec![0_u8; len + 1];
        // SAFETY: the buffer has the length given.
        unsafe {
            sys::llama_model_meta_val_str(
                self.as_ptr(),
                key.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            );
        }
        let text = CStr::from_bytes_until_nul(&buffer).ok()?;
        Some(text.to_string_lossy().into_owned())
    }
}

/// llama.cpp's own reason, from its latest messages.
pub(super) fn last_problem() -> String {
    log::problems()
        .into_iter()
        .rev()
        .find(|line| !line.contains("failed to load model") && !line.contains("exiting"))
        .unwrap_or_else(|| "it gave no reason; see the log".to_owned())
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: contexts keep the model alive, so none is left; `_backend` is dropped after this.
        unsafe { sys::llama_model_free(self.raw.as_ptr()) };
    }
}
