//! Artemis: the official binary from Maven Central, as `artemis create` sets it up.
//!
//! That means a journal that is synced, in files with libaio or without it as `create` finds it,
//! and the flush interval that it measures on this disk. Queues are anycast and made beforehand.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use xtask::setup;

use super::launch::{Launch, quiet};
use super::{Peer, Running, Stop, free_port, install_once, queues};
use crate::place::Place;
use load::receiver::SettleMode;

const VERSION: &str = "2.44.0";
/// What `create` chose, in its instance.
const SETTINGS: &str = "etc/broker.xml";
/// Name and password of the only user.
const USER: &str = "bench";

/// An instance whose data goes with every start.
pub struct Artemis {
    instance: PathBuf,
    port: u16,
}

impl Artemis {
    /// Downloads it once into `cache` and creates an instance in `folder`.
    pub fn install(cache: &Path, folder: &Path) -> Result<Self> {
        setup::for_artemis()?;
        let home = cache.join(format!("apache-artemis-{VERSION}"));
        install_once(&home, download)?;
        let (instance, port) = (folder.join("artemis"), free_port()?);
        let mut create = Command::new(home.join("bin/artemis"));
        create.arg("create").arg(&instance);
        create.args(["--silent", "--user", USER, "--password", USER]);
        create.args(["--require-login", "--host", "127.0.0.1"]);
        create.args(["--default-port", &port.to_string()]);
        create.args(["--http-port", &free_port()?.to_string()]);
        for protocol in ["amqp", "hornetq", "mqtt", "stomp"] {
            // Ports for one protocol alone; the one for all of them is the one to connect to.
            create.arg(format!("--no-{protocol}-acceptor"));
        }
        create.args(["--queues", &queues().collect::<Vec<_>>().join(",")]);
        quiet(create)?;
        let artemis = Self { instance, port };
        artemis.allow_full_disk()?;
        Ok(artemis)
    }

    /// It gives no more credit once the disk is 90 % full, which other programs may cause; no row
    /// fills a disk.
    fn allow_full_disk(&self) -> Result<()> {
        let path = self.instance.join(SETTINGS);
        let text = std::fs::read_to_string(&path)?;
        let [old, new] = ["90", "-1"].map(|limit| format!("<max-disk-usage>{limit}<"));
        ensure!(text.contains(&old), "its settings have no {old}");
        std::fs::write(&path, text.replace(&old, &new))?;
        Ok(())
    }

    /// What `create` put into the element `name` of the settings.
    fn setting(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.instance.join(SETTINGS)).ok()?;
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let (value, _) = rest.split_once("</")?;
        Some(value.to_owned())
    }
}

impl Peer for Artemis {
    fn name(&self) -> String {
        format!("Artemis {VERSION}")
    }

    fn notes(&self) -> Vec<String> {
        let setting = |name: &str| self.setting(name).unwrap_or_else(|| "unknown".to_owned());
        let note = format!(
            "settings of `artemis create`: journal-type {}, journal-datasync {}, \
             journal-buffer-timeout {} ns; a settlement is not answered, so it counts when it is sent",
            setting("journal-type"),
            setting("journal-datasync"),
            setting("journal-buffer-timeout"),
        );
        vec![note]
    }

    fn start(&self) -> Result<Running> {
        let data = self.instance.join("data");
        if data.is_dir() {
            std::fs::remove_dir_all(&data)?;
        }
        let mut run = Command::new(self.instance.join("bin/artemis"));
        run.arg("run").current_dir(&self.instance);
        let began = Instant::now();
        let mut launch = Launch::start(&mut run, &self.instance.join("out"))?;
        let place = Place {
            address: SocketAddr::from(([127, 0, 0, 1], self.port)),
            sasl: Place::plain(USER, USER),
            settle_mode: SettleMode::First,
            prefix: "",
            pid: launch.pid(),
        };
        place.await_session(|| launch.check())?;
        Ok(Running {
            place,
            took: began.elapsed(),
            broker: Box::new(Instance(launch)),
        })
    }
}

struct Instance(Launch);

impl Stop for Instance {
    fn stop(self: Box<Self>) -> Result<()> {
        self.0.stop("java")
    }
}

/// Gets the distribution by Maven, which checks it, and unpacks it to `made`.
fn download(made: &Path) -> Result<()> {
    let parent = made.parent().context("a folder to work in")?;
    let artifact = format!("org.apache.activemq:apache-artemis:{VERSION}:tar.gz:bin");
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--strict-checksums"]);
    maven.arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy");
    maven.arg(format!("-Dartifact={artifact}"));
    maven.arg(format!("-DoutputDirectory={}", parent.display()));
    maven.current_dir(parent);
    quiet(maven)?;
    std::fs::create_dir(made)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--strip-components=1", "--file"]);
    tar.arg(parent.join(format!("apache-artemis-{VERSION}-bin.tar.gz")));
    tar.arg("--directory").arg(made);
    quiet(tar)
}
