//! Slow work outside the engine, each job in a thread of its own: looking for models, fetching one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::sync::mpsc;

use crate::app::message::Msg;
use crate::models::discover::FoundModel;
use crate::models::download::DownloadEvent;

/// Finds and fetches models. Its calls take their time.
pub trait Library: Send + Sync + 'static {
    /// The models on this machine.
    fn scan(&self) -> Vec<FoundModel>;
    /// Fetches a model of the catalogue, reporting on the way, until it is there or `cancelled` turns true.
    fn download(&self, name: &str, report: &mut dyn FnMut(DownloadEvent), cancelled: &AtomicBool);
}

/// Starts jobs; their results arrive as messages.
pub(super) struct Jobs {
    library: Arc<dyn Library>,
    results: mpsc::UnboundedSender<Msg>,
    download_cancelled: Arc<AtomicBool>,
}

impl Jobs {
    pub(super) fn new(library: Arc<dyn Library>) -> (Jobs, mpsc::UnboundedReceiver<Msg>) {
        let (results, messages) = mpsc::unbounded_channel();
        (
            Jobs {
                library,
                results,
                download_cancelled: Arc::default(),
            },
            messages,
        )
    }

    /// Where other threads put their messages.
    pub(super) fn results(&self) -> mpsc::UnboundedSender<Msg> {
        self.results.clone()
    }

    pub(super) fn scan(&self) {
        let (library, results) = (self.library.clone(), self.results.clone());
        spawn("platen-scan", move || {
            let _ = results.send(Msg::Models(library.scan()));
        });
    }

    /// Fetches a model; the download before it is stopped.
    pub(super) fn download(&mut self, name: String) {
        self.cancel_download();
        let cancelled = Arc::new(AtomicBool::new(false));
        self.download_cancelled = cancelled.clone();
        let (library, results) = (self.library.clone(), self.results.clone());
        spawn("platen-download", move || {
            let mut report = |event| {
                let _ = results.send(Msg::Download(event));
            };
            library.download(&name, &mut report, &cancelled);
        });
    }

    pub(super) fn cancel_download(&self) {
        self.download_cancelled.store(true, Ordering::SeqCst);
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.cancel_download();
    }
}

fn spawn(name: &str, job: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name(name.into()).spawn(job) {
        tracing::error!("cannot start the thread {name}: {error}");
    }
}
