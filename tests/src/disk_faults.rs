//! Disk faults: the library of `faults/disk_faults.c`, compiled once, and how a broker is started
//! with it. It counts the calls that change the data directory, and lets one of them go wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Exit code of a process whose power was cut.
pub const CUT: i32 = 77;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Nothing; calls are counted.
    None,
    /// The power goes: each file keeps a prefix of its unsynced writes.
    CutTail,
    /// The power goes: each file keeps any of its unsynced pages.
    CutPages,
    /// SIGKILL.
    Kill,
    /// The call fails with EIO.
    Eio,
    /// The call fails with ENOSPC.
    Enospc,
    /// The call writes a part only.
    Short,
}

impl Fault {
    /// All that fail one call and let the process go on.
    pub const OF_CALLS: [Self; 3] = [Self::Eio, Self::Enospc, Self::Short];

    /// As the library and the command line name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CutTail => "cut-tail",
            Self::CutPages => "cut-pages",
            Self::Kill => "kill",
            Self::Eio => "eio",
            Self::Enospc => "enospc",
            Self::Short => "short",
        }
    }
}

/// Which syncs do nothing, for controls: a test that does not notice cannot see.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lies {
    /// None.
    Never,
    /// Those of files.
    Files,
    /// Those of directories.
    Directories,
}

/// One fault of one run.
#[derive(Clone, Copy, Debug)]
pub struct DiskFaults {
    /// What goes wrong.
    pub fault: Fault,
    /// At which call, from 1.
    pub at: u64,
    /// Decides what a power cut takes.
    pub seed: u64,
    /// Which syncs do nothing.
    pub lies: Lies,
}

impl DiskFaults {
    /// Nothing goes wrong; calls are counted.
    pub const NONE: Self = Self {
        fault: Fault::None,
        at: 0,
        seed: 0,
        lies: Lies::Never,
    };

    /// What a process is started with to have these faults below `root`, an absolute path. The
    /// number of calls goes to `count`.
    #[must_use]
    pub fn environment(&self, root: &Path, count: &Path) -> Vec<(String, String)> {
        let lies = match self.lies {
            Lies::Never => "never",
            Lies::Files => "file",
            Lies::Directories => "directory",
        };
        let text = |path: &Path| path.to_str().expect("test paths are text").to_owned();
        let variables = [
            ("LD_PRELOAD", text(library())),
            ("RAILBUS_FAULT_ROOT", text(root)),
            ("RAILBUS_FAULT_COUNT", text(count)),
            ("RAILBUS_FAULT", self.fault.name().to_owned()),
            ("RAILBUS_FAULT_AT", self.at.to_string()),
            ("RAILBUS_FAULT_SEED", self.seed.to_string()),
            ("RAILBUS_FAULT_LIES", lies.to_owned()),
        ];
        variables
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}

/// The calls that a process counted in `count`.
///
/// # Panics
/// When it counted none.
#[must_use]
pub fn calls(count: &Path) -> u64 {
    let bytes = fs::read(count).expect("the process counts");
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

/// The compiled library.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_directory, path) = LIBRARY.get_or_init(|| {
        let directory = TempDir::new().expect("there is room for a temporary directory");
        let path = directory.path().join("disk_faults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults/disk_faults.c");
        let compiled = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([&path, &source])
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("a C compiler is there, since Rust links with it");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{said}");
        (directory, path)
    });
    path
}
