//! Broker: the real program, started on a temporary directory and any free port.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{PATIENCE, secrets};

/// How a broker is started.
#[derive(Clone, Debug)]
pub struct Setup {
    directory: Arc<TempDir>,
    data: PathBuf,
    configuration: String,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
}

/// A queue named `orders` with everything by default, and one with a short lock.
const QUEUES: &str = "
[[queues]]
name = 'orders'

[[queues]]
name = 'others'
lock-duration = 'PT5S'
";

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    /// Listens on any port of the loopback; has the queues `orders` and `others`.
    ///
    /// # Panics
    /// When there is no room for a temporary directory.
    #[must_use]
    pub fn new() -> Self {
        let directory = TempDir::new().expect("there is room for a temporary directory");
        Self {
            data: directory.path().join("data"),
            directory: Arc::new(directory),
            configuration: String::new(),
            arguments: vec!["--listen".into(), "127.0.0.1:0".into()],
            environment: Vec::new(),
        }
    }

    /// Adds top-level keys or tables to `railbus.toml`.
    #[must_use]
    pub fn configure(mut self, toml: &str) -> Self {
        secrets::note_keys(toml);
        self.configuration.push_str(toml);
        self.configuration.push('\n');
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(Into::into));
        self
    }

    /// Replaces all arguments after `serve --config FILE --data-dir DIR`.
    #[must_use]
    pub fn only_arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.clear();
        self.arguments(arguments)
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Keeps the store at `path`.
    #[must_use]
    pub fn keep_data_at(mut self, path: PathBuf) -> Self {
        self.data = path;
        self
    }

    /// The directory in which the broker works.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the broker keeps its store.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts the broker and waits for its ready line.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn start(&self) -> Broker {
        Broker::start(self)
    }

    /// Starts a broker that is expected not to become ready; returns its exit code and stderr.
    ///
    /// # Panics
    /// When it becomes ready.
    #[must_use]
    pub fn refused(&self) -> (i32, String) {
        let output = self.command().output().expect("the program is there");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "",
            "nothing is ready"
        );
        let code = output.status.code().expect("it ends by itself");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        secrets::hand_in(&said);
        secrets::look_for_in(&said);
        (code, said)
    }

    /// Starts a broker that may end before it is ready; then how it ended and what it wrote.
    ///
    /// # Errors
    /// When it is not ready.
    pub fn start_or_end(&self) -> Result<Broker, (ExitStatus, String)> {
        let broker = Broker::spawn(self);
        if broker.ready.ends_with('\n') {
            return Ok(broker);
        }
        Err(broker.end())
    }

    /// What it wrote to stderr is forgotten.
    ///
    /// # Panics
    /// When the file cannot be removed.
    pub fn forget_log(&self) {
        let removed = fs::remove_file(self.directory.path().join("stderr"));
        assert!(
            removed.map_err(|error| error.kind()) != Err(ErrorKind::PermissionDenied),
            "the directory is ours"
        );
    }

    fn command(&self) -> Command {
        let file = self.directory.path().join("railbus.toml");
        fs::write(&file, format!("{}{QUEUES}", self.configuration)).expect("the directory is ours");
        let mut command = Command::new(program());
        command.current_dir(self.directory.path()).arg("serve");
        command.arg("--config").arg(&file);
        if !self
            .arguments
            .iter()
            .any(|argument| argument == "--ephemeral")
        {
            command.arg("--data-dir").arg(self.data());
        }
        command
            .args(&self.arguments)
            .envs(self.environment.iter().cloned());
        command
    }
}

/// The program under test: named by `RAILBUS_BIN`, or beside the tests.
#[must_use]
pub fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("RAILBUS_BIN") {
        return program.into();
    }
    let test = std::env::current_exe().expect("a test knows where it is");
    let program = test
        .ancestors()
        .nth(2)
        .map(|profile| profile.join("railbus"));
    let program = program.filter(|program| program.is_file());
    program.expect("build the program first: cargo build --release --workspace")
}

/// A broker that is ready.
#[derive(Debug)]
pub struct Broker {
    process: Child,
    stdout: BufReader<ChildStdout>,
    ready: String,
    log: PathBuf,
    /// Kept for the broker, even when no other owner is left.
    _directory: Arc<TempDir>,
}

impl Broker {
    fn start(setup: &Setup) -> Self {
        let broker = Self::spawn(setup);
        assert!(broker.ready.ends_with('\n'), "not ready: {}", broker.log());
        broker
    }

    /// Starts the program and reads its first line, or none if it ends before.
    fn spawn(setup: &Setup) -> Self {
        let log = setup.directory.path().join("stderr");
        let stderr = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .expect("the directory is ours");
        let mut command = setup.command();
        command.stdout(Stdio::piped()).stderr(stderr);
        // So that whatever could be logged is looked at when the broker ends.
        if !setup.environment.iter().any(|(name, _)| name == "RUST_LOG") {
            command.env("RUST_LOG", "trace");
        }
        let mut process = command.spawn().expect("the program is there");
        let mut stdout = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut ready = String::new();
        stdout.read_line(&mut ready).expect("stdout is text");
        Self {
            process,
            stdout,
            ready,
            log,
            _directory: Arc::clone(&setup.directory),
        }
    }

    /// The ready line without its end.
    #[must_use]
    pub fn ready_line(&self) -> &str {
        self.ready.trim_end()
    }

    /// Where it listens first.
    ///
    /// # Panics
    /// When the ready line does not say.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let listen = self
            .ready
            .strip_prefix("railbus ready listen=")
            .expect("a ready line");
        let first = listen
            .split([',', ' '])
            .next()
            .expect("split gives at least one");
        first.parse().expect("an address")
    }

    /// What it wrote to stderr.
    ///
    /// # Panics
    /// When there is no such file.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is there")
    }

    /// Waits until it has written `part` to stderr.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_for_log(&self, part: &str) {
        let since = Instant::now();
        while !self.log().contains(part) {
            assert!(since.elapsed() < PATIENCE, "no `{part}` in: {}", self.log());
            std::thread::yield_now();
        }
    }

    /// A number that the system keeps about the process, in KiB, such as `VmRSS`.
    ///
    /// # Panics
    /// When the process is gone.
    #[must_use]
    pub fn memory(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))
            .expect("the process lives");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number
            .expect("the system keeps the number")
            .parse()
            .expect("a number")
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("the process lives");
    }

    /// Sends a signal, unless the process has ended.
    pub fn try_signal(&self, signal: Signal) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.process), signal);
    }

    /// SIGKILL.
    pub fn kill(self) {
        self.signal(Signal::KILL);
        let _ = self.wait();
    }

    /// SIGTERM; returns how it ended.
    #[must_use]
    pub fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for its end; returns how it ended and what it wrote to stderr.
    ///
    /// # Panics
    /// When it wrote more than the ready line to stdout.
    #[must_use]
    pub fn end(self) -> (ExitStatus, String) {
        let (log, _directory) = (self.log.clone(), Arc::clone(&self._directory));
        let status = self.wait();
        (status, fs::read_to_string(log).expect("the log is there"))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it wrote more than the ready line to stdout.
    #[must_use]
    pub fn wait(mut self) -> ExitStatus {
        let status = self.process.wait().expect("it is our child");
        let mut rest = String::new();
        self.stdout
            .read_to_string(&mut rest)
            .expect("stdout is text");
        assert_eq!(rest, "", "the ready line is all there is on stdout");
        status
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
        if !std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            secrets::hand_in(&log);
            secrets::look_for_in(&log);
        }
    }
}
