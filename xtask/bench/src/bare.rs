//! Bare: the least program that the load generator can drive as it drives a broker, as a process.
//!
//! It is `bare_bench` of `railbus`: AMQP, queues without any features, and what it accepts or
//! settles is synced first. What a broker does beyond that is the difference between the two.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::place::Place;
use super::process::as_f64;
use super::receiver::SettleMode;
use super::site::Site;

/// Where it keeps messages.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    /// In RocksDB, with its own log.
    RocksDb,
    /// In one file that is there before: what the disk alone could do.
    File,
}

/// A process that listens. Dropping it kills it.
pub struct Bare {
    child: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
    /// Its directory, which goes with it.
    _data: TempDir,
}

impl Bare {
    /// Starts one on an empty directory.
    pub fn start(site: &Site, store: Store) -> Result<Self> {
        let data = tempfile::tempdir_in(site.folder())?;
        let mut command = Command::new(site.example("bare_bench"));
        command.arg(data.path()).args(["--store", store.name()]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let output = child.stdout.take().context("the output was asked for")?;
        let mut bare = Self {
            child,
            output: BufReader::new(output),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            _data: data,
        };
        let mut line = String::new();
        bare.output.read_line(&mut line)?;
        bare.address = parse(&line, "listen").with_context(|| format!("it said: {line}"))?;
        Ok(bare)
    }

    /// Where it is. It lets anyone in.
    pub fn place(&self) -> Place {
        Place {
            address: self.address,
            sasl: Place::plain("bench", "bench"),
            settle_mode: SettleMode::Second,
            prefix: "",
            pid: self.child.id(),
            trust: None,
        }
    }

    /// Stops it; returns how many messages it committed at once, on average.
    pub fn stop(mut self) -> Result<f64> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the program ended with {status}");
        group(&said).with_context(|| format!("the program said: {said}"))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::RocksDb => "rocksdb",
            Self::File => "file",
        }
    }
}

/// The average group that a program tells of which counts messages and groups.
pub fn group(said: &str) -> Result<f64> {
    let (messages, groups): (u64, u64) = (parse(said, "messages")?, parse(said, "groups")?);
    Ok(as_f64(messages) / as_f64(groups.max(1)))
}

/// What stands behind `key=` in what a program said.
pub fn parse<T: std::str::FromStr>(said: &str, key: &str) -> Result<T> {
    let mut words = said.split_whitespace();
    let word = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let value = word.and_then(|word| word.parse().ok());
    value.with_context(|| format!("no {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_tell_where_it_is_and_what_it_committed() {
        let listen = "bare_bench ready listen=127.0.0.1:40001\n";
        let address: SocketAddr = parse(listen, "listen").expect("an address");
        assert_eq!(address.port(), 40_001);
        let group = group("messages=1000 groups=8\n").expect("both are there");
        assert!((group - 125.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_there_or_no_number_is_refused() {
        assert!(group("messages=1000").is_err());
        assert!(group("messages=many groups=8").is_err());
        assert!(parse::<SocketAddr>("", "listen").is_err());
    }

    #[test]
    fn a_program_that_committed_nothing_has_no_group() {
        assert!(group("messages=0 groups=0").expect("both are there").abs() < 1e-9);
    }
}
