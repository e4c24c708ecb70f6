//! Models: found, chosen, fetched, loaded.

use std::path::{Path, PathBuf};

use crate::engine::command::{Command, RequestId};
use crate::engine::event::{CacheSnapshot, EngineError, ModelFacts};
use crate::keymap::Action;
use crate::models::discover::FoundModel;
use crate::models::download::DownloadEvent;

use super::App;
use super::message::Effect;
use super::nearest;
use super::state::{
    Download, DownloadStage, EngineState, Load, Overlay, Picker, Scan, Wanted, Wish,
};

impl App {
    /// Loads a model by its path or name; a name that is not known yet waits for the search.
    pub(super) fn open_model(&mut self, model: String) -> Vec<Effect> {
        let is_file = Path::new(&model)
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
        let is_place = model.starts_with(['/', '.', '~', '\\']);
        let known = self.models.iter().find(|found| found.name == model);
        if let Some(path) = known.map(|found| found.path.clone()) {
            self.load(path)
        } else if is_file || is_place {
            self.load(PathBuf::from(model))
        } else {
            self.wanted = Wanted::Named(model);
            vec![self.search()]
        }
    }

    /// Looks for the models of this machine.
    pub(super) fn search(&mut self) -> Effect {
        self.scan = Scan::Running;
        Effect::ScanModels
    }

    /// Loads a file. A running reply stops; what came of it stays.
    fn load(&mut self, path: PathBuf) -> Vec<Effect> {
        let mut effects = self.stop_turn();
        effects.extend(self.stop_loading());
        let id = self.next_id();
        self.engine = EngineState::Loading(Load {
            id,
            path: path.clone(),
            progress: 0.0,
            wish: Wish::Wanted,
        });
        self.overlay = None;
        self.wanted = Wanted::Nothing;
        let options = self.config.load.clone();
        effects.push(Effect::Engine(Command::Load { id, path, options }));
        effects
    }

    /// Stops the loading; the engine then says that it failed.
    pub(super) fn stop_loading(&mut self) -> Vec<Effect> {
        match &mut self.engine {
            EngineState::Loading(load) if load.wish == Wish::Wanted => {
                load.wish = Wish::Stopped;
                vec![Effect::CancelThrough(load.id)]
            }
            EngineState::NoModel
            | EngineState::Loading(_)
            | EngineState::Ready(_)
            | EngineState::Failed(_) => Vec::new(),
        }
    }

    pub(super) fn load_progressed(&mut self, id: RequestId, progress: f32) {
        if let EngineState::Loading(load) = &mut self.engine
            && load.id == id
        {
            load.progress = progress;
        }
    }

    pub(super) fn load_finished(&mut self, id: RequestId, facts: Box<ModelFacts>) -> Vec<Effect> {
        if !matches!(&self.engine, EngineState::Loading(load) if load.id == id) {
            return Vec::new();
        }
        self.last_model = Some(facts.path.clone());
        self.settings.recommended = facts.recommended.clone();
        self.cache = CacheSnapshot {
            size: facts.context,
            capacity_bytes: facts.kv_capacity_bytes,
            ..CacheSnapshot::default()
        };
        self.engine = EngineState::Ready(facts);
        if let Some(Overlay::ModelPicker(_) | Overlay::Catalogue { .. }) = self.overlay {
            self.overlay = None;
        }
        let mut effects: Vec<Effect> = self.take_back_state().into_iter().collect();
        effects.extend(self.send_next());
        effects
    }

    pub(super) fn load_failed(&mut self, error: EngineError) -> Vec<Effect> {
        let stopped =
            matches!(&self.engine, EngineState::Loading(load) if load.wish == Wish::Stopped);
        self.cache = CacheSnapshot::default();
        if stopped {
            self.engine = EngineState::NoModel;
            self.tell("Loading was stopped.");
            self.choose_model(None)
        } else {
            self.engine = EngineState::Failed(error.clone());
            self.choose_model(Some(error))
        }
    }

    /// Opens the list of models and searches the machine.
    pub(super) fn choose_model(&mut self, error: Option<EngineError>) -> Vec<Effect> {
        let selected = match (&self.last_model, self.facts()) {
            (Some(path), Some(_)) => self.models.iter().position(|model| model.path == *path),
            (None, _) | (_, None) => None,
        };
        let selected = selected.unwrap_or(0);
        self.overlay = Some(Overlay::ModelPicker(Picker { selected, error }));
        self.wanted = Wanted::Nothing;
        vec![self.search()]
    }

    pub(super) fn models_found(&mut self, models: Vec<FoundModel>) -> Vec<Effect> {
        self.models = models;
        self.models.retain(|model| model.problem.is_none());
        self.scan = Scan::Done;
        if let Some(Overlay::ModelPicker(picker)) = &mut self.overlay {
            picker.selected = picker.selected.min(self.models.len());
        }
        match std::mem::replace(&mut self.wanted, Wanted::Nothing) {
            Wanted::Nothing => Vec::new(),
            Wanted::Named(name) => self.open_found(&name),
            Wanted::Any => match self.models.as_slice() {
                [only] => {
                    let path = only.path.clone();
                    self.load(path)
                }
                several_or_none => {
                    self.overlay = Some(if several_or_none.is_empty() {
                        Overlay::Catalogue { selected: 0 }
                    } else {
                        Overlay::ModelPicker(Picker::default())
                    });
                    Vec::new()
                }
            },
        }
    }

    /// Loads the model of this name; a name in other letter case, or the only one that begins so, is taken too.
    fn open_found(&mut self, name: &str) -> Vec<Effect> {
        let lower = name.to_lowercase();
        let mut same = self
            .models
            .iter()
            .filter(|model| model.name.to_lowercase() == lower);
        let mut begins = self
            .models
            .iter()
            .filter(|model| model.name.to_lowercase().starts_with(&lower));
        let found = same
            .next()
            .or_else(|| begins.next().filter(|_| begins.next().is_none()));
        if let Some(path) = found.map(|model| model.path.clone()) {
            return self.load(path);
        }
        if name.contains('/') {
            return self.load(PathBuf::from(name));
        }
        let meant = nearest(name, self.models.iter().map(|model| model.name.as_str()))
            .map_or_else(String::new, |near| format!("Did you mean {near}?"));
        let error = EngineError::new(
            format!("There is no model '{name}' on this machine."),
            meant,
        );
        if self.models.is_empty() {
            self.fail(&error);
            self.overlay = Some(Overlay::Catalogue { selected: 0 });
        } else {
            self.overlay = Some(Overlay::ModelPicker(Picker {
                selected: 0,
                error: Some(error),
            }));
        }
        Vec::new()
    }

    /// Enter in the list of models.
    pub(super) fn accept_model(&mut self, row: usize) -> Vec<Effect> {
        if let Some(path) = self.models.get(row).map(|model| model.path.clone()) {
            return self.load(path);
        }
        self.overlay = Some(Overlay::Catalogue { selected: 0 });
        Vec::new()
    }

    /// Enter in the catalogue.
    pub(super) fn accept_offer(&mut self, row: usize) -> Vec<Effect> {
        if self.download.as_ref().is_some_and(Download::is_running) {
            return Vec::new();
        }
        let Some(offer) = self.offers.get(row) else {
            return Vec::new();
        };
        let name = offer.name.clone();
        let stage = DownloadStage::Connecting {
            source: String::new(),
        };
        self.download = Some(Download {
            name: name.clone(),
            stage,
        });
        vec![Effect::Download { name }]
    }

    pub(super) fn stop_download(&mut self) -> Vec<Effect> {
        self.download = None;
        vec![Effect::CancelDownload]
    }

    pub(super) fn download_moved(&mut self, event: DownloadEvent) -> Vec<Effect> {
        let now = self.now;
        let Some(download) = self
            .download
            .as_mut()
            .filter(|download| download.is_running())
        else {
            return Vec::new();
        };
        download.stage = match event {
            DownloadEvent::Trying { source } => DownloadStage::Connecting { source },
            DownloadEvent::Progress { done, total } => DownloadStage::Fetching {
                done,
                total,
                began: download.began().unwrap_or((now, done)),
            },
            DownloadEvent::Verifying => DownloadStage::Verifying,
            DownloadEvent::Failed { message } => DownloadStage::Failed { message },
            DownloadEvent::Done { path } => return self.downloaded(path),
        };
        Vec::new()
    }

    /// The model fetched is loaded, unless another one is by now.
    fn downloaded(&mut self, path: PathBuf) -> Vec<Effect> {
        let name = self
            .download
            .take()
            .map(|download| download.name)
            .unwrap_or_default();
        let is_needed = match self.engine {
            EngineState::NoModel | EngineState::Failed(_) => true,
            EngineState::Loading(_) | EngineState::Ready(_) => {
                matches!(self.overlay, Some(Overlay::Catalogue { .. }))
            }
        };
        if is_needed {
            return self.load(path);
        }
        let key = self.key_name(Action::Models);
        self.tell(format!(
            "{name} is on this machine now; {key} shows the models."
        ));
        Vec::new()
    }
}
