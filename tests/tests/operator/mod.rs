//! Operator: follows the page in a shell, on a machine with one broker.
//!
//! A block of commands goes to `sh` as it stands on the page, `railbus` being the program under
//! test. Only `systemctl` and `railbus serve`, which have to outlive the shell, are played here.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use e2e::{PATIENCE, broker::program};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const QUEUE: &str = "[[queues]]\nname = 'orders'\n";
/// Bytes of a segment before its first record. (docs/storage.md#the-journal)
const SEGMENT_HEAD: usize = 32;
/// Bytes of a record before its writes.
const RECORD_HEAD: usize = 24;

/// The page, in sections of blocks of commands.
pub struct Page(Vec<(String, Vec<String>)>);

impl Page {
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
        let text = fs::read_to_string(path).expect("the page is there");
        let (mut sections, mut block): (Vec<(String, Vec<String>)>, Option<String>) =
            (Vec::new(), None);
        for line in text.lines() {
            match (&mut block, line) {
                (None, "```sh") => block = Some(String::new()),
                (Some(_), "```") => {
                    let (_, blocks) = sections.last_mut().expect("commands are in a section");
                    blocks.extend(block.take());
                }
                (Some(block), line) => {
                    block.push_str(line);
                    block.push('\n');
                }
                (None, line) => {
                    if let Some(heading) = line.strip_prefix("## ") {
                        sections.push((heading.to_owned(), Vec::new()));
                    }
                }
            }
        }
        Self(sections)
    }

    pub fn sections(&self) -> Vec<(&str, usize)> {
        let sections = self.0.iter();
        sections
            .map(|(heading, blocks)| (heading.as_str(), blocks.len()))
            .collect()
    }

    fn block(&self, section: &str, number: usize) -> &str {
        let found = self.0.iter().find(|(heading, _)| heading == section);
        let (_, blocks) = found.unwrap_or_else(|| panic!("no section {section}"));
        &blocks[number]
    }
}

/// Where the broker of one machine works.
pub struct Operator {
    page: Page,
    /// Kept for as long as it is used.
    _temporary: TempDir,
    directory: PathBuf,
    programs: PathBuf,
    port: u16,
    key: (String, String),
    broker: Option<Child>,
}

impl Operator {
    pub fn new() -> Self {
        let temporary = TempDir::new().expect("there is room for a temporary directory");
        let directory = temporary.path().join("machine");
        fs::create_dir(&directory).expect("the directory is ours");
        let programs = temporary.path().join("bin");
        fs::create_dir(&programs).expect("the directory is ours");
        let link = std::os::unix::fs::symlink(program(), programs.join("railbus"));
        link.expect("the directory is ours");
        fs::write(directory.join("railbus.toml"), QUEUE).expect("the directory is ours");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self {
            page: Page::read(),
            _temporary: temporary,
            directory,
            programs,
            port: free.expect("there is a free port").port(),
            key: (
                "RootManageSharedAccessKey".to_owned(),
                "SAS_KEY_VALUE".to_owned(),
            ),
            broker: None,
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("railbus-data")
    }

    /// Adds to `railbus.toml`, and uses the key that is in it.
    pub fn configure(&mut self, toml: &str) {
        fs::write(
            self.directory.join("railbus.toml"),
            format!("{toml}{QUEUE}"),
        )
        .expect("the directory is ours");
        self.use_key_of("owner");
    }

    /// Runs a block of the page, which has to succeed; returns what it printed.
    pub fn run(&mut self, section: &str, block: usize) -> String {
        let (code, said) = self.try_run(section, block);
        assert_eq!(code, 0, "{section}, block {block}: {said}\n{}", self.log());
        said
    }

    /// Runs a block of the page; returns its exit code and what it printed.
    pub fn try_run(&mut self, section: &str, block: usize) -> (i32, String) {
        let block = self.page.block(section, block).to_owned();
        let (mut script, mut all) = (String::new(), String::new());
        for line in block.lines().map(Some).chain([None]) {
            let played = line.filter(|line| is_played(line));
            if line.is_none() || played.is_some() {
                let (code, said) = self.shell(&std::mem::take(&mut script));
                all.push_str(&said);
                if code != 0 {
                    return (code, all);
                }
            }
            match (line, played) {
                (_, Some(line)) => {
                    if let Err((code, said)) = self.play(line) {
                        return (code, all + &said);
                    }
                }
                (Some(line), None) => {
                    script.push_str(line);
                    script.push('\n');
                }
                (None, None) => {}
            }
        }
        (0, all)
    }

    /// Waits until the broker accepts a key that is new in `railbus.toml`.
    pub fn wait_for_key(&mut self, rule: &str) {
        self.use_key_of(rule);
        let since = Instant::now();
        while self.shell("railbus queue list").0 != 0 {
            assert!(since.elapsed() < PATIENCE, "{}", self.log());
        }
    }

    pub fn start(&mut self) {
        self.serve("")
            .unwrap_or_else(|(code, said)| panic!("{code}: {said}"));
    }

    pub fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    pub fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// What the broker wrote to stderr.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Sends messages, one after the other.
    pub fn send(&self, bodies: &[&str]) {
        for body in bodies {
            let (code, said) = self.shell(&format!("railbus send orders '{body}'"));
            assert_eq!(code, 0, "{said}");
        }
    }

    /// Everything that is in the queue, which is empty then.
    pub fn receive(&self) -> Vec<String> {
        let (code, said) = self.shell("railbus receive orders --count 1000");
        assert_eq!(code, 0, "{said}");
        said.lines().map(str::to_owned).collect()
    }

    /// Flips a bit of the record that has a message of this text, in what it says of its writes.
    pub fn damage_record_of(&self, text: &str) {
        for path in super::files(&self.data().join("journal"), ".journal") {
            let mut content = fs::read(&path).expect("it is there");
            let mut texts = content.windows(text.len());
            if let Some(at) = texts.position(|bytes| bytes == text.as_bytes()) {
                let record = record_at(&content, at);
                content[record + RECORD_HEAD] ^= 1;
                return fs::write(&path, content).expect("the directory is ours");
            }
        }
        panic!("{text} is not in the journal");
    }

    fn use_key_of(&mut self, rule: &str) {
        let text = fs::read_to_string(self.directory.join("railbus.toml")).expect("it is there");
        let mut lines = text.lines().skip_while(|line| {
            let name = line.strip_prefix("name = ");
            name.is_none_or(|name| name.trim_matches(['\'', '"']) != rule)
        });
        let key = lines.find_map(|line| line.strip_prefix("primary-key = "));
        let key = key.expect("it has one").trim_matches(['\'', '"']);
        e2e::secrets::note(key);
        self.key = (rule.to_owned(), key.to_owned());
    }

    /// `systemctl` or `railbus serve`.
    fn play(&mut self, line: &str) -> Result<(), (i32, String)> {
        match line {
            "systemctl start railbus" => self.serve("")?,
            "systemctl stop railbus" => self.stop(),
            "systemctl reload railbus" => self.signal(Signal::HUP),
            _ => {
                let options = line.strip_prefix("railbus serve").expect("it is played");
                self.serve(options.trim())?;
            }
        }
        Ok(())
    }

    fn serve(&mut self, options: &str) -> Result<(), (i32, String)> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("log"));
        let mut command = self.command("railbus");
        command.arg("serve").args(options.split_whitespace());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("the directory is ours"));
        let mut child = command.spawn().expect("the program is there");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let read = BufReader::new(stdout).read_line(&mut ready);
        read.expect("stdout is text");
        if ready.ends_with('\n') {
            self.broker = Some(child);
            return Ok(());
        }
        let code = child.wait().expect("it is our child").code();
        Err((code.expect("it ends by itself"), self.log()))
    }

    fn signal(&self, signal: Signal) {
        let broker = self.broker.as_ref().expect("there is a broker");
        kill_process(Pid::from_child(broker), signal).expect("it is our child");
    }

    fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut broker = self.broker.take().expect("there is a broker");
        let status = broker.wait().expect("it is our child");
        assert!(status.success() || signal == Signal::KILL, "{status}");
    }

    fn shell(&self, script: &str) -> (i32, String) {
        let mut command = self.command("sh");
        let output = command.args(["-e", "-c", script]).output();
        let output = output.expect("there is a shell");
        let all = [output.stdout, output.stderr].concat();
        let code = output.status.code().expect("it ends by itself");
        (code, String::from_utf8_lossy(&all).into_owned())
    }

    /// A program in the place and the environment of the broker.
    fn command(&self, name: &str) -> Command {
        let path = std::env::var("PATH").expect("there is a path");
        let programs = self.programs.display();
        let ((rule, key), port) = (&self.key, self.port);
        let mut command = Command::new(name);
        if name == "railbus" {
            command = Command::new(self.programs.join(name));
        }
        command.current_dir(&self.directory);
        command.env("PATH", format!("{programs}:{path}"));
        command.env("RAILBUS_LISTEN", format!("127.0.0.1:{port}"));
        command.env(
            "RAILBUS_CONNECTION_STRING",
            format!(
                "Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName={rule};SharedAccessKey={key};UseDevelopmentEmulator=true"
            ),
        );
        command
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(broker) = &mut self.broker {
            // It may have ended already.
            drop(broker.kill());
            drop(broker.wait());
        }
        let log = self.log();
        e2e::secrets::hand_in(&log);
        if !std::thread::panicking() {
            e2e::secrets::look_for_in(&log);
        }
    }
}

/// Whether the test does it rather than a shell.
fn is_played(line: &str) -> bool {
    line.starts_with("systemctl ") || line.starts_with("railbus serve")
}

/// Where the record of a segment begins that has the byte `at`.
fn record_at(segment: &[u8], at: usize) -> usize {
    let mut record = SEGMENT_HEAD;
    loop {
        let head = &segment[record..record + RECORD_HEAD];
        let number = |bytes: &[u8]| {
            let number = bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            usize::try_from(number).expect("a small record")
        };
        // Its highest bit tells of the records before.
        let writes = number(&head[4..8]) & 0x7fff_ffff;
        let next = record + RECORD_HEAD + writes + number(&head[8..16]);
        if next > at {
            return record;
        }
        record = next;
    }
}
