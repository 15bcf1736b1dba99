//! Small disk: a file system of a few mebibytes that can really be full, and can be made larger.
//!
//! It is in memory, mounted by a keeper process in a mount namespace of its own, so that no other
//! process has it among its mounts, and it is gone with the keeper, however the test ends. It is
//! reached through the keeper's root directory below `/proc`.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

/// What the keeper does: mounts, then makes the disk as large as each line of its input says.
const KEEPER: &str = r#"
    mount -t tmpfs -o size="$2" tmpfs "$1" && echo done || exit 1
    while read -r size; do mount -o remount,size="$size" tmpfs "$1" && echo done || exit 1; done
"#;
/// What is tried: a user namespace, in which any user may mount, or the test's own right to mount.
const NAMESPACES: [&[&str]; 2] = [&["--user", "--map-root-user", "--mount"], &["--mount"]];

/// A mounted file system.
#[derive(Debug)]
pub struct SmallDisk {
    keeper: Child,
    /// None once the keeper was told to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    path: PathBuf,
    _mount_point: TempDir,
}

impl SmallDisk {
    /// A disk of `mebibytes` MiB.
    ///
    /// # Panics
    /// When nothing can be mounted here.
    #[must_use]
    pub fn new(mebibytes: u32) -> Self {
        let mut refusals = String::new();
        for namespaces in NAMESPACES {
            match Self::mount(namespaces, mebibytes) {
                Ok(disk) => return disk,
                Err(refusal) => refusals.push_str(&refusal),
            }
        }
        panic!(
            "a small file system cannot be mounted here; it takes user namespaces for all users, or root with \
             CAP_SYS_ADMIN (a container has neither by default; docker run --privileged gives both):\n{refusals}"
        )
    }

    fn mount(namespaces: &[&str], mebibytes: u32) -> Result<Self, String> {
        let mount_point = TempDir::new().expect("there is room for a temporary directory");
        let mut keeper = Command::new("unshare")
            .args(namespaces)
            .args(["sh", "-c", KEEPER, "keeper"])
            .arg(mount_point.path())
            .arg(format!("{mebibytes}m"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare: {error}\n"))?;
        let mut answers = BufReader::new(keeper.stdout.take().expect("stdout is piped"));
        if !is_done(&mut answers) {
            return Err(last_words(keeper));
        }
        let root = PathBuf::from(format!("/proc/{}/root", keeper.id()));
        let inside = mount_point.path().strip_prefix("/");
        Ok(Self {
            path: root.join(inside.expect("temporary directories have absolute paths")),
            orders: keeper.stdin.take(),
            answers,
            keeper,
            _mount_point: mount_point,
        })
    }

    /// Its top directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it larger.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn grow(&mut self, mebibytes: u32) {
        let orders = self.orders.as_mut().expect("the disk is mounted");
        writeln!(orders, "{mebibytes}m").expect("the keeper lives");
        assert!(is_done(&mut self.answers), "the disk does not grow");
    }

    /// Fills all that is left, to the last byte, with a file of no use.
    ///
    /// # Panics
    /// When writing fails for another reason.
    pub fn fill(&self) {
        let mut file = File::create(self.path.join("ballast")).expect("a name needs no space");
        for size in [1 << 20, 4_096, 1] {
            let bytes = vec![0x5a; size];
            let full = std::iter::repeat_with(|| file.write_all(&bytes)).find_map(Result::err);
            let full = full.expect("it goes on until it is full").kind();
            assert_eq!(full, ErrorKind::StorageFull);
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The end of its input is the end of the keeper, and that of the mount.
        self.orders = None;
        drop(self.keeper.wait());
    }
}

fn is_done(answers: &mut impl BufRead) -> bool {
    let mut line = String::new();
    answers.read_line(&mut line).is_ok() && line == "done\n"
}

fn last_words(mut keeper: Child) -> String {
    let mut text = String::new();
    if let Some(mut stderr) = keeper.stderr.take() {
        drop(stderr.read_to_string(&mut text));
    }
    drop(keeper.wait());
    text
}
