//! Launch: the process of a peer, with its output in a log.
//!
//! What ends here is what was started here and what descends from it, each by its id. Dropping
//! kills it, so that a failed row leaves nothing behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use xtask::shell;

use crate::process::{self, family};

/// How long an orderly stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A process that was started, and its log.
pub struct Launch {
    child: Child,
    log: PathBuf,
}

impl Launch {
    /// Starts `command`, which writes to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Self {
            child,
            log: log.to_owned(),
        })
    }

    /// The process that all of its processes descend from.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error with the log's end, once the process has ended.
    pub fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        bail!("it ended with {status} and said:\n{}", self.tail())
    }

    /// Asks the process called `name` to stop and waits until all of them have.
    pub fn stop(mut self, name: &str) -> Result<()> {
        let family = family(self.pid())?;
        let main = family
            .into_iter()
            .find(|pid| process::is_called(*pid, name));
        let main = main.with_context(|| format!("there is no process called {name}"))?;
        signal(main, Signal::TERM)?;
        let limit = Instant::now() + STOP_LIMIT;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= limit {
                bail!("it did not stop within {STOP_LIMIT:?}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // All of these fail only when the process is gone already.
        for pid in family(self.pid()).unwrap_or_default() {
            let _ = signal(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.context("a process has an id")?, signal)?;
    Ok(())
}

/// Runs `command`, which says something only if it fails.
pub fn quiet(mut command: Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("starting {}", shell::describe(&command)))?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(
        output.status.success(),
        "{} ended with {} and said:\n{}",
        shell::describe(&command),
        output.status,
        String::from_utf8_lossy(&said)
    );
    Ok(())
}
