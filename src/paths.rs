//! Where platen keeps its files: the platform's directories, or all of them below `PLATEN_HOME`.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

/// The environment variable that holds everything below one directory.
pub const HOME_VARIABLE: &str = "PLATEN_HOME";

/// The directories; none of them need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Holds `config.toml`.
    pub config_dir: PathBuf,
    /// Holds what must not be lost: models and chats.
    pub data_dir: PathBuf,
    /// Holds what can be made again.
    pub cache_dir: PathBuf,
    /// Holds the models that platen fetched.
    pub models_dir: PathBuf,
    /// Holds the logs.
    pub log_dir: PathBuf,
    /// The log.
    pub log_file: PathBuf,
}

/// Neither the environment nor the system says where files belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no home directory: set HOME, or set {HOME_VARIABLE} to a directory for platen's files"
)]
pub struct NoHome;

impl Paths {
    /// The directories of this process.
    ///
    /// # Errors
    /// [`NoHome`], where neither `PLATEN_HOME` nor a home directory is known.
    pub fn find() -> Result<Self, NoHome> {
        Paths::from_home(std::env::var_os(HOME_VARIABLE))
    }

    /// The directories below `home`, or the platform's where it is `None` or empty. A relative `home` is taken
    /// from the current directory.
    ///
    /// # Errors
    /// [`NoHome`], where no home directory is known.
    pub fn from_home(home: Option<OsString>) -> Result<Self, NoHome> {
        match home.filter(|home| !home.is_empty()) {
            Some(home) => {
                let home = std::path::absolute(&home).unwrap_or_else(|_| PathBuf::from(&home));
                Ok(Paths::below(&home))
            }
            None => ProjectDirs::from("", "", "platen")
                .map(|dirs| Paths::of_platform(&dirs))
                .ok_or(NoHome),
        }
    }

    /// The directories below one of them.
    #[must_use]
    pub fn below(home: &Path) -> Self {
        Paths::new(
            home.join("config"),
            home.join("data"),
            home.join("cache"),
            home.join("logs"),
        )
    }

    fn of_platform(dirs: &ProjectDirs) -> Self {
        let logs = dirs
            .state_dir()
            .unwrap_or_else(|| dirs.data_local_dir())
            .join("logs");
        Paths::new(
            dirs.config_dir().to_owned(),
            dirs.data_local_dir().to_owned(),
            dirs.cache_dir().to_owned(),
            logs,
        )
    }

    fn new(config_dir: PathBuf, data_dir: PathBuf, cache_dir: PathBuf, log_dir: PathBuf) -> Self {
        Paths {
            models_dir: data_dir.join("models"),
            log_file: log_dir.join("platen.log"),
            config_dir,
            data_dir,
            cache_dir,
            log_dir,
        }
    }

    /// The chats.
    #[must_use]
    pub fn chats_file(&self) -> PathBuf {
        self.data_dir.join("chats.db")
    }

    /// The states of chats, which can be made again.
    #[must_use]
    pub fn states_dir(&self) -> PathBuf {
        self.cache_dir.join("kv")
    }

    /// Which model files have been tried.
    #[must_use]
    pub fn tried_file(&self) -> PathBuf {
        self.cache_dir.join("tried")
    }

    /// The configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config_dir.join("config.toml")
    }
}

/// Makes a directory and those above it where they are missing; what is made is open to its owner alone.
///
/// # Errors
/// The directory that can't be made, and why.
pub fn create_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(dir).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("can't make the directory {}: {error}", dir.display()),
        )
    })
}

/// How a file is opened that is made, where there is none, for its owner alone. What is done with it is added.
#[must_use]
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

/// What tells a file from every other one, whatever it is called: the device and the number on it.
#[must_use]
pub fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// Opens a file by these options and locks it for this process, until it is closed; `None` where another one has it.
/// Whoever held it last may remove or rename it: what is returned is the file that is at the path.
///
/// # Errors
/// It can't be opened, or the system has no locks there.
pub fn lock(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    loop {
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Whether an open file is the one at the path.
///
/// # Errors
/// The open file can't be looked at.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = identity(&file.metadata()?);
    Ok(path.metadata().is_ok_and(|there| identity(&there) == open))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn everything_lies_below_platen_home() {
        let paths = Paths::from_home(Some("/somewhere".into())).unwrap();
        let all = [
            &paths.config_dir,
            &paths.data_dir,
            &paths.cache_dir,
            &paths.models_dir,
            &paths.log_dir,
            &paths.log_file,
            &paths.config_file(),
        ];
        for path in all {
            assert!(path.starts_with("/somewhere"), "{}", path.display());
        }
        assert_eq!(paths.models_dir, paths.data_dir.join("models"));
    }

    #[test]
    fn a_relative_home_is_taken_from_the_current_directory() {
        let paths = Paths::from_home(Some("here".into())).unwrap();
        assert!(paths.data_dir.starts_with(std::env::current_dir().unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_made_is_private_and_making_it_twice_is_fine() {
        use std::os::unix::fs::PermissionsExt;

        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        create_private(&dir).unwrap();
        create_private(&dir).unwrap();
        for made in [root.path().join("a"), dir] {
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("taken");
        std::fs::write(&file, "").unwrap();
        let error = create_private(&file.join("below")).unwrap_err();
        assert!(error.to_string().contains("taken/below"), "{error}");
    }
}
