//! Logs: what all brokers of a test run have said, in one place, and that no secret is in it.
//!
//! Each suite has a folder of its own there. The broker that we start for it logs into it, brokers
//! that it starts itself do so by the script that stands in for the program, and the end-to-end
//! tests hand their logs in with the secrets that they noted. A folder without a word is a failure
//! too: nothing would be known of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use super::secrets::Secrets;
use crate::shell::{self, Logged};
use crate::summary::{Outcome, Summary};
use crate::workspace::Workspace;

/// The step's name.
pub const NAME: &str = "secrets";
/// What a file of secrets ends with; every other file is a log.
const NOTED: &str = "secrets";

/// Forgets what brokers have said in earlier runs.
pub fn begin(workspace: &Workspace) -> Result<()> {
    let all = all(workspace);
    if all.exists() {
        fs::remove_dir_all(&all).with_context(|| format!("removing {}", all.display()))?;
    }
    Ok(())
}

/// Where the brokers of a suite log, or of a crate's tests.
pub fn folder(workspace: &Workspace, suite: &str) -> Result<PathBuf> {
    let folder = all(workspace).join(suite);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// By what a suite starts brokers of its own, so that they log there too.
pub fn environment(workspace: &Workspace, suite: &str) -> Result<Vec<(&'static str, String)>> {
    let script = workspace.root().join("interop/logged-broker.sh");
    Ok(vec![
        ("RAILBUS_BIN", text(&script)),
        ("RAILBUS_PROGRAM", text(&workspace.railbus())),
        ("RAILBUS_LOGS", text(&folder(workspace, suite)?)),
    ])
}

/// Searches everything that the brokers of `suites` have said.
pub fn search(workspace: &Workspace, suites: &[String], summary: &mut Summary) {
    let began = Instant::now();
    let keys = workspace.root().join("interop/secrets.txt");
    let searched = fs::read_to_string(&keys)
        .with_context(|| format!("reading {}", keys.display()))
        .and_then(|keys| search_all(&all(workspace), suites, &keys));
    summary.add(match searched {
        Ok(logged) => Outcome::of_suite(NAME, &logged, began.elapsed()),
        Err(error) => Outcome::broken(NAME, &error, began.elapsed()),
    });
}

fn all(workspace: &Workspace) -> PathBuf {
    workspace.logs().join("brokers")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// One line for each suite, and the lines with secrets; one that has no log fails.
fn search_all(all: &Path, suites: &[String], keys: &str) -> Result<Logged> {
    let (mut output, mut failed) = (String::new(), 0);
    for suite in suites {
        let found = Found::within(&all.join(suite), keys)?;
        failed += usize::from(!found.is_clean());
        output.push_str(&format!("{suite}: {found}\n"));
    }
    let passed = suites.len() - failed;
    output.push_str(&format!("{passed} passed, {failed} failed\n"));
    Ok(Logged {
        success: failed == 0,
        code: None,
        output,
    })
}

/// What was found in a folder.
#[derive(Debug, Default)]
struct Found {
    logs: usize,
    bytes: usize,
    /// Lines that hold a secret, with their files.
    spilt: Vec<String>,
}

impl Found {
    fn within(folder: &Path, keys: &str) -> Result<Self> {
        let files = files(folder)?;
        let (noted, logs): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_noted(file));
        let mut secrets = Secrets::default();
        secrets.add(keys);
        for file in noted {
            secrets.add(&shell::read_log(&file)?);
        }
        let mut found = Self::default();
        for file in logs {
            let log = shell::read_log(&file)?;
            found.logs += 1;
            found.bytes += log.len();
            let line = secrets.find(&log);
            let line = line.map(|line| format!("{}: {line}", file.display()));
            found.spilt.extend(line);
        }
        Ok(found)
    }

    fn is_clean(&self) -> bool {
        self.bytes > 0 && self.spilt.is_empty()
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.bytes == 0 {
            return f.write_str("no broker has logged anything, so nothing is shown");
        }
        write!(f, "{} logs, {} bytes", self.logs, self.bytes)?;
        let mut spilt = self.spilt.iter();
        spilt.try_for_each(|line| write!(f, "\na secret in {line}"))
    }
}

fn is_noted(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == NOTED)
}

/// The files of a folder, if there is one.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const KEYS: &str = "the-key-of-all-suites\n";

    fn check(files: &[(&str, &str)], is_clean: bool) -> String {
        let all = tempfile::tempdir().expect("there is room");
        let suite = all.path().join("suite");
        fs::create_dir(&suite).expect("the folder is ours");
        for (name, text) in files {
            fs::write(suite.join(name), text).expect("the folder is ours");
        }
        let logged = search_all(all.path(), &["suite".to_owned()], KEYS).expect("it can be read");
        assert_eq!(logged.success, is_clean, "{}", logged.output);
        logged.output
    }

    #[test]
    fn logs_without_secrets_pass() {
        let said = check(&[("main.log", "INFO ready\n"), ("own-1.log", "")], true);
        assert_eq!(said, "suite: 2 logs, 11 bytes\n1 passed, 0 failed\n");
    }

    #[test]
    fn a_key_in_the_log_of_any_broker_fails() {
        let spilt = "DEBUG log in with the-key-of-all-suites\n";
        let said = check(&[("main.log", "INFO ready\n"), ("own-1.log", spilt)], false);
        assert!(said.contains("own-1.log: DEBUG log in"), "{said}");
    }

    #[test]
    fn a_secret_that_a_test_has_noted_fails() {
        let files = [("a.log", "TRACE hush-hush\n"), ("a.secrets", "hush-hush\n")];
        check(&files, false);
        check(&files[..1], true);
    }

    #[test]
    fn a_suite_whose_brokers_have_said_nothing_fails() {
        check(&[], false);
        check(&[("main.log", "")], false);
    }

    /// Runs a program through the script that stands in for ours; what it wrote to stderr.
    fn through_the_script(program: &Path, logs: &Path) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop/logged-broker.sh");
        let mut command = Command::new(script);
        command
            .args(["serve", "--ephemeral"])
            .env("RAILBUS_PROGRAM", program)
            .env("RAILBUS_LOGS", logs)
            .stdin(Stdio::null());
        let output = command.output().expect("there is a shell");
        assert_eq!(
            output.status.code(),
            Some(7),
            "its exit code is that of the program"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ready serve\n");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[cfg(unix)]
    #[test]
    fn what_a_broker_of_a_suites_own_says_is_found() {
        use std::os::unix::fs::PermissionsExt as _;
        let all = tempfile::tempdir().expect("there is room");
        let logs = all.path().join("suite");
        fs::create_dir(&logs).expect("the folder is ours");
        let program = all.path().join("railbus");
        let text =
            "#!/bin/sh\necho \"ready $1\"\necho \"$RUST_LOG: the-key-of-all-suites\" >&2\nexit 7\n";
        fs::write(&program, text).expect("the folder is ours");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, executable).expect("the file is ours");
        let said = through_the_script(&program, &logs);
        assert_eq!(said, "trace: the-key-of-all-suites\n");
        let logged = search_all(all.path(), &["suite".to_owned()], KEYS).expect("it can be read");
        assert!(!logged.success, "{}", logged.output);
        assert!(logged.output.contains("a secret in"), "{}", logged.output);
    }
}
