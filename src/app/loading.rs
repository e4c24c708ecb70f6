//! Models: found, chosen, fetched, loaded.

use std::path::{Path, PathBuf};

use crate::engine::command::{Command, RequestId};
use crate::engine::event::{CacheSnapshot, EngineError, ModelFacts};
use crate::models::discover::FoundModel;
use crate::models::download::DownloadEvent;

use super::App;
use super::message::Effect;
use super::nearest;
use super::state::{Download, DownloadStage, EngineState, Load, Overlay, Picker, Scan, Wish};

impl App {
    /// Loads a model by its path or name; a name that is not known yet waits for the search.
    pub(super) fn open_model(&mut self, model: String) -> Vec<Effect> {
        let is_path = model.contains(['/', '\\']) || Path::new(&model).extension().is_some_and(|end| end == "gguf");
        let found = self.models.iter().find(|found| found.name == model);
        if let Some(path) = found.map(|found| found.path.clone()) {
            self.load(path)
        } else if is_path {
            self.load(PathBuf::from(model))
        } else {
            self.wanted_model = Some(model);
            vec![Effect::ScanModels]
        }
    }

    /// Loads a file. A running reply stops; what came of it stays.
    fn load(&mut self, path: PathBuf) -> Vec<Effect> {
        let mut effects = self.stop_turn();
        effects.extend(self.stop_loading());
        let id = self.next_id();
        self.engine = EngineState::Loading(Load { id, path: path.clone(), progress: 0.0, wish: Wish::Wanted });
        self.overlay = None;
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
        if self.last_model.as_ref() != Some(&facts.path) {
            self.conversation.forget_tokens();
            self.last_model = Some(facts.path.clone());
        }
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
        self.send_next()
    }

    pub(super) fn load_failed(&mut self, error: EngineError) -> Vec<Effect> {
        let stopped = matches!(&self.engine, EngineState::Loading(load) if load.wish == Wish::Stopped);
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
        self.overlay = Some(Overlay::ModelPicker(Picker { selected, error, scan: Scan::Running }));
        vec![Effect::ScanModels]
    }

    pub(super) fn models_found(&mut self, models: Vec<FoundModel>) -> Vec<Effect> {
        self.models = models;
        let rows = self.models.len();
        if let Some(Overlay::ModelPicker(picker)) = &mut self.overlay {
            picker.scan = Scan::Done;
            picker.selected = picker.selected.min(rows);
        }
        if let Some(name) = self.wanted_model.take() {
            return self.open_found(&name);
        }
        let is_empty_handed = matches!(self.engine, EngineState::NoModel);
        match (self.models.as_slice(), &self.overlay) {
            ([], None) if is_empty_handed => {
                self.overlay = Some(Overlay::Catalogue { selected: 0 });
                Vec::new()
            }
            ([only], None) if is_empty_handed => {
                let path = only.path.clone();
                self.load(path)
            }
            (_, None) if is_empty_handed => {
                let picker = Picker { scan: Scan::Done, ..Picker::default() };
                self.overlay = Some(Overlay::ModelPicker(picker));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Loads the model of this name; a name in other letter case, or the only one that begins so, is taken too.
    fn open_found(&mut self, name: &str) -> Vec<Effect> {
        let lower = name.to_lowercase();
        let mut same = self.models.iter().filter(|model| model.name.to_lowercase() == lower);
        let mut begins = self.models.iter().filter(|model| model.name.to_lowercase().starts_with(&lower));
        let found = same.next().or_else(|| begins.next().filter(|_| begins.next().is_none()));
        if let Some(path) = found.map(|model| model.path.clone()) {
            return self.load(path);
        }
        let meant = nearest(name, self.models.iter().map(|model| model.name.as_str()))
            .map_or_else(String::new, |near| format!("Did you mean {near}?"));
        let error = EngineError::new(format!("There is no model '{name}' on this machine."), meant);
        if self.models.is_empty() {
            self.fail(&error);
            self.overlay = Some(Overlay::Catalogue { selected: 0 });
        } else {
            self.overlay =
                Some(Overlay::ModelPicker(Picker { selected: 0, error: Some(error), scan: Scan::Done }));
        }
        Vec::new()
    }

    /// Enter in the list of models.
    pub(super) fn accept_model(&mut self, row: usize) -> Vec<Effect> {
        match self.models.get(row).map(|model| model.path.clone()) {
            Some(path) => self.load(path),
            None => {
                self.overlay = Some(Overlay::Catalogue { selected: 0 });
                Vec::new()
            }
        }
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
        let stage = DownloadStage::Connecting { source: String::new() };
        self.download = Some(Download { name: name.clone(), stage });
        vec![Effect::Download { name }]
    }

    pub(super) fn stop_download(&mut self) -> Vec<Effect> {
        self.download = None;
        vec![Effect::CancelDownload]
    }

    pub(super) fn download_moved(&mut self, event: DownloadEvent) -> Vec<Effect> {
        let now = self.now;
        let Some(download) = self.download.as_mut().filter(|download| download.is_running()) else {
            return Vec::new();
        };
        download.stage = match (event, &download.stage) {
            (DownloadEvent::Trying { source }, _) => DownloadStage::Connecting { source },
            (DownloadEvent::Progress { done, total }, DownloadStage::Fetching { began, .. }) => {
                DownloadStage::Fetching { done, total, began: *began }
            }
            (DownloadEvent::Progress { done, total }, _) => {
                DownloadStage::Fetching { done, total, began: (now, done) }
            }
            (DownloadEvent::Verifying, _) => DownloadStage::Verifying,
            (DownloadEvent::Failed { message }, _) => DownloadStage::Failed { message },
            (DownloadEvent::Done { path }, _) => return self.downloaded(path),
        };
        Vec::new()
    }

    /// The model fetched is loaded, unless another one is by now.
    fn downloaded(&mut self, path: PathBuf) -> Vec<Effect> {
        let name = self.download.take().map(|download| download.name).unwrap_or_default();
        match (&self.engine, &self.overlay) {
            (EngineState::NoModel | EngineState::Failed(_), _) | (_, Some(Overlay::Catalogue { .. })) => {
                self.load(path)
            }
            (EngineState::Loading(_) | EngineState::Ready(_), _) => {
                self.tell(format!("{name} is on this machine now; F4 shows the models."));
                Vec::new()
            }
        }
    }
}
