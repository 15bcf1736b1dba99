//! Workspace: where the sources are, and where everything that is built or downloaded goes.
//!
//! The sources stay clean: target folders, client libraries, logs and temporary data live in
//! `${XDG_CACHE_HOME:-$HOME/.cache}/railbus`, which a fresh clone finds again.
//! Invariant: RocksDB is built in `target()` only, in the release profile only.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The places the commands work in.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    /// Finds the workspace of the running command and makes sure that its cache folder exists.
    pub fn find() -> Result<Self> {
        // At run time where cargo says it, so that a moved clone finds itself.
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest)
            .parent()
            .context("xtask lies in the workspace")?;
        let cache = cache_home()?.join("railbus");
        fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
        Ok(Self {
            root: root.to_owned(),
            cache,
        })
    }

    /// The workspace's top folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The release build of everything, RocksDB included.
    pub fn target(&self) -> PathBuf {
        self.cache.join("target")
    }

    /// The development build of the pure crates. Apart, so that both builds can run at once.
    pub fn quick_target(&self) -> PathBuf {
        self.cache.join("target-quick")
    }

    /// The program under development.
    pub fn railbus(&self) -> PathBuf {
        self.target().join("release/railbus")
    }

    /// Developer tools that are installed by us.
    pub fn tools(&self) -> PathBuf {
        self.cache.join("tools")
    }

    /// What steps and brokers said.
    pub fn logs(&self) -> PathBuf {
        self.cache.join("logs")
    }

    /// The folder `name` in the cache, created if it is missing.
    pub fn cached(&self, name: &str) -> Result<PathBuf> {
        let folder = self.cache.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// A new temporary folder on the cache's disk; `/tmp` may be memory, where a sync means
    /// nothing.
    pub fn temporary(&self) -> Result<tempfile::TempDir> {
        let parent = self.cached("temporary")?;
        tempfile::tempdir_in(&parent).with_context(|| format!("in {}", parent.display()))
    }
}

fn cache_home() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let home = env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cache"))
}
