//! Progress: how far the compilation of RocksDB is, and how long it still takes.
//!
//! Cargo is silent while it compiles RocksDB, which is nine tenths of a first build. Each of its
//! files leaves an object in the build folder, so their number tells the progress, and the time
//! that they took tells the time left.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

/// Files of RocksDB that are compiled.
const FILES: u32 = 343;
/// Fewer say nothing about the time left.
const FEW: u32 = 5;
/// Between two looks at the build.
const PAUSE: Duration = Duration::from_millis(200);
/// Between two notes.
const NOTE_EVERY: Duration = Duration::from_secs(15);

/// The compilation of RocksDB within a build.
pub struct RocksDb {
    /// The build scripts' output of the release profile.
    folder: PathBuf,
    /// When it began to be watched, and the files that were compiled then.
    first: Option<(Instant, u32)>,
}

impl RocksDb {
    /// That of a build into `target`.
    pub fn new(target: &Path) -> Self {
        Self {
            folder: target.join("release/build"),
            first: None,
        }
    }

    /// Whether there is one that is done.
    fn is_built(&self) -> bool {
        let mut outputs = self.outputs();
        outputs.any(|output| output.join("librocksdb.a").is_file())
    }

    /// How far it is at `now`, while it goes on.
    pub fn note(&mut self, now: Instant) -> Option<String> {
        let objects = self.outputs().map(|output| objects(&output)).max()?;
        if objects == 0 || self.is_built() {
            return None;
        }
        let (began, before) = *self.first.get_or_insert((now, objects));
        let left = time_left(now - began, objects - before, objects);
        let left = left.map(|left| format!(", {} left", rounded(left)));
        let left = left.unwrap_or_default();
        Some(format!("RocksDB: {objects} of {FILES} files{left}"))
    }

    /// The folders that its objects and its library go to.
    fn outputs(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let own = entries.filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("librocksdb-sys-")
        });
        own.map(|entry| entry.path().join("out"))
    }
}

/// Runs `build`, with notes on RocksDB if it has to be compiled.
pub fn build(workspace: &Workspace, mut build: Command) -> Result<()> {
    let mut rocksdb = RocksDb::new(&workspace.target());
    if rocksdb.is_built() {
        return shell::visible(build);
    }
    eprintln!(
        "first build: 30 MB of sources to download, then about 25 minutes of processor time, most of it for RocksDB"
    );
    let name = shell::describe(&build);
    let mut child = build.spawn().with_context(|| format!("starting {name}"))?;
    let mut noted = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(PAUSE);
        if noted.elapsed() >= NOTE_EVERY {
            noted = Instant::now();
            if let Some(note) = rocksdb.note(noted) {
                eprintln!("{}{note}", clear_line());
            }
        }
    };
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}

/// What takes away the bar that cargo draws on a terminal, and draws again after the note.
fn clear_line() -> &'static str {
    if stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    }
}

/// The objects in `output`.
fn objects(output: &Path) -> u32 {
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let objects = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "o"));
    u32::try_from(objects.count()).unwrap_or(FILES)
}

/// What the files after the first `done` take, if `compiled` of them took `elapsed`.
fn time_left(elapsed: Duration, compiled: u32, done: u32) -> Option<Duration> {
    (compiled >= FEW).then(|| elapsed * FILES.saturating_sub(done) / compiled)
}

/// In minutes, or in seconds if there is less than one.
fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("about {seconds} s"),
        seconds => format!("about {} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target folder with that many objects.
    fn target(objects: u32) -> tempfile::TempDir {
        let target = tempfile::tempdir().expect("a folder");
        let output = output(target.path());
        fs::create_dir_all(&output).expect("created");
        for number in 0..objects {
            fs::write(output.join(format!("{number}.o")), "").expect("written");
        }
        target
    }

    fn output(target: &Path) -> PathBuf {
        target.join("release/build/librocksdb-sys-0123/out")
    }

    #[test]
    fn the_time_left_follows_from_the_files_compiled_so_far() {
        let target = target(43);
        let mut rocksdb = RocksDb::new(target.path());
        let began = Instant::now();
        let first = rocksdb.note(began);
        assert_eq!(first.as_deref(), Some("RocksDB: 43 of 343 files"));
        for number in 43..143 {
            fs::write(output(target.path()).join(format!("{number}.o")), "").expect("written");
        }
        let second = rocksdb.note(began + Duration::from_secs(90));
        let expected = "RocksDB: 143 of 343 files, about 3 min left";
        assert_eq!(second.as_deref(), Some(expected));
    }

    #[test]
    fn there_is_no_note_before_the_first_object_and_after_the_library() {
        let mut rocksdb = RocksDb::new(target(0).path());
        assert_eq!(rocksdb.note(Instant::now()), None);
        let target = target(FILES);
        let mut rocksdb = RocksDb::new(target.path());
        assert!(!rocksdb.is_built());
        fs::write(output(target.path()).join("librocksdb.a"), "").expect("written");
        assert!(rocksdb.is_built());
        assert_eq!(rocksdb.note(Instant::now()), None);
    }

    #[test]
    fn less_than_a_minute_is_told_in_seconds() {
        assert_eq!(rounded(Duration::from_secs(59)), "about 59 s");
        assert_eq!(rounded(Duration::from_secs(100)), "about 2 min");
    }
}
