//! Broker: a running `railbus serve` of our own, on a port of its own and in a given folder.
//!
//! It counts as started when the ready line is there. Dropping it kills it, so that a failed step
//! leaves nothing behind.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal};

/// How long a start may take; a restart with a large backlog is meant to take a second.
const START_LIMIT: Duration = Duration::from_secs(120);
/// `railbus serve` promises to stop within five seconds.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `railbus` binary.
    pub program: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// Its `railbus.toml`.
    pub config: Option<PathBuf>,
    /// Its entities.
    pub entities: Option<PathBuf>,
    /// Where its log goes.
    pub log: PathBuf,
    /// What its log tells, if not as much as usual.
    pub log_filter: Option<&'static str>,
}

/// A broker that is ready.
#[derive(Debug)]
pub struct Broker {
    child: Child,
    ready: Ready,
    /// From the start of the process to its ready line.
    pub took: Duration,
}

/// What the ready line says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ready {
    /// The first address that is listened on.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For SDKs.
    pub connection_string: String,
}

impl Broker {
    /// Starts `railbus serve` and waits until it is ready.
    pub fn start(plan: &Plan) -> Result<Self> {
        let log =
            File::create(&plan.log).with_context(|| format!("creating {}", plan.log.display()))?;
        let began = Instant::now();
        let mut child = command(plan)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", plan.program.display()))?;
        let lines = child
            .stdout
            .take()
            .map(read_lines)
            .context("the output was asked for")?;
        match await_ready(&lines, &plan.log) {
            Ok(ready) => Ok(Self {
                child,
                ready,
                took: began.elapsed(),
            }),
            Err(error) => {
                // Whatever it is doing, it will not be used.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// What the ready line said.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process as a crash would.
    pub fn crash(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop and says how it ended; one that does not stop in time is killed.
    pub fn stop(mut self) -> Result<ExitStatus> {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .context("a child has a pid")?;
        rustix::process::kill_process(pid, Signal::TERM)?;
        let limit = Instant::now() + STOP_LIMIT;
        while Instant::now() < limit {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the broker did not stop within {STOP_LIMIT:?} of SIGTERM")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(plan: &Plan) -> Command {
    let mut command = Command::new(&plan.program);
    command
        .arg("serve")
        .args(["--listen", "127.0.0.1:0"])
        .arg("--data-dir")
        .arg(&plan.data);
    if let Some(config) = &plan.config {
        command.arg("--config").arg(config);
    }
    if let Some(entities) = &plan.entities {
        command.arg("--entities").arg(entities);
    }
    if let Some(filter) = plan.log_filter {
        command.env("RUST_LOG", filter);
    }
    command
}

/// Reads the lines of `output` until it ends, so that the broker never waits for a reader.
fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // After the ready line no thread receives; reading on is the point.
            let _ = sender.send(line);
        }
    });
    receiver
}

fn await_ready(lines: &Receiver<String>, log: &Path) -> Result<Ready> {
    let limit = Instant::now() + START_LIMIT;
    loop {
        let left = limit.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|_| not_ready(log))?;
        if line.starts_with("railbus ready ") {
            return Ready::parse(&line).with_context(|| format!("reading the ready line: {line}"));
        }
    }
}

fn not_ready(log: &Path) -> anyhow::Error {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    anyhow!("the broker did not become ready; it said:\n{text}")
}

impl Ready {
    fn parse(line: &str) -> Result<Self> {
        let listen = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("listen="));
        let first = listen
            .and_then(|list| list.split(',').next())
            .context("no listen=")?;
        let (host, port) = first.rsplit_once(':').context("no port")?;
        let (_, quoted) = line
            .split_once("connection-string=\"")
            .context("no connection-string=")?;
        let (connection_string, _) = quoted.split_once('"').context("no closing quote")?;
        Ok(Self {
            host: host.to_owned(),
            port: port.parse()?,
            connection_string: connection_string.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_gives_the_first_address_and_the_connection_string() {
        let line = "railbus ready listen=127.0.0.1:40001,127.0.0.1:40002 \
                    connection-string=\"Endpoint=sb://localhost:40001;SharedAccessKeyName=n;SharedAccessKey=k=;\"";
        let ready = Ready::parse(line).expect("a ready line");
        assert_eq!(ready.host, "127.0.0.1");
        assert_eq!(ready.port, 40001);
        assert_eq!(
            ready.connection_string,
            "Endpoint=sb://localhost:40001;SharedAccessKeyName=n;SharedAccessKey=k=;"
        );
    }

    #[test]
    fn a_ready_line_without_an_address_is_refused() {
        assert!(Ready::parse("railbus ready connection-string=\"x\"").is_err());
    }
}
