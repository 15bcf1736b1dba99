//! RabbitMQ: Debian's package and all that it needs, in a file system of its own.
//!
//! The packages are unpacked and never configured, so no service is started and nothing on the
//! machine changes. The first version with AMQP 1.0 in its core is in Debian 13, so that is what
//! is unpacked, on whatever release the machine has. Queues are made from a file as it starts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;
use xtask::setup;

use super::launch::{Launch, quiet};
use super::{Peer, Running, Stop, free_port, install_once, queues};
use crate::place::Place;
use load::receiver::SettleMode;

/// The release that the packages come from.
const RELEASE: &str = "trixie";
/// What the start script needs besides the package's own dependencies.
const PACKAGES: &str = "rabbitmq-server,bash,coreutils,gawk,grep,hostname,procps,sed,util-linux";
/// What maintainer scripts would have made, and what it links to.
const LINKS: [(&str, &str); 2] = [("usr/bin/sh", "bash"), ("usr/bin/awk", "gawk")];
const FILES: [(&str, &str); 2] = [
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/passwd", "root:x:0:0:root:/tmp:/usr/bin/sh\n"),
];
/// Name and password of the only user.
const USER: &str = "bench";

/// The installation, and where its data goes.
pub struct Rabbitmq {
    root: PathBuf,
    folder: PathBuf,
    version: String,
    kind: &'static str,
}

impl Rabbitmq {
    /// Unpacks it once into `cache`; its queues will be of `kind`, its data in `folder`.
    pub fn install(cache: &Path, folder: &Path, kind: &'static str) -> Result<Self> {
        setup::for_rabbitmq()?;
        let root = cache.join(format!("rabbitmq-{RELEASE}"));
        install_once(&root, unpack)?;
        Ok(Self {
            version: version(&root)?,
            root,
            folder: folder.to_owned(),
            kind,
        })
    }

    /// Runs `program` in the file system of its own, with `data` as the only place to write to.
    fn inside(&self, data: &Path, ports: &Ports, program: &str) -> Command {
        let mut command = Command::new("bwrap");
        command.arg("--die-with-parent");
        command.arg("--ro-bind").arg(&self.root).arg("/");
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        command.arg("--bind").arg(data).arg("/mnt");
        command.args(["--chdir", "/mnt", "--clearenv"]);
        let port = ports.names.to_string();
        for (key, value) in [
            ("HOME", "/mnt"),
            ("PATH", "/usr/bin:/usr/sbin"),
            ("LANG", "C.UTF-8"),
            ("ERL_EPMD_PORT", &port),
            ("RABBITMQ_NODENAME", "bench@localhost"),
            ("RABBITMQ_CONFIG_FILE", "/mnt/rabbitmq.conf"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "/mnt/enabled_plugins"),
            ("RABBITMQ_MNESIA_BASE", "/mnt/data"),
            ("RABBITMQ_LOG_BASE", "/mnt/log"),
            ("RABBITMQ_LOGS", "-"),
            // The script becomes the broker instead of watching over it.
            ("RUNNING_UNDER_SYSTEMD", "true"),
        ] {
            command.args(["--setenv", key, value]);
        }
        command.args(["--", program]);
        command
    }
}

impl Peer for Rabbitmq {
    fn name(&self) -> String {
        format!("RabbitMQ {}, {}", self.version, self.kind)
    }

    fn notes(&self) -> Vec<String> {
        let durability = if self.kind == "quorum" {
            "one node; accepted once it is in a log that is synced"
        } else {
            "accepted once it is written, without a sync"
        };
        vec![format!(
            "{durability}; a settlement is answered when the queue was told; a sender gets 170 \
             credits at most, so not all 500 are in flight"
        )]
    }

    fn start(&self) -> Result<Running> {
        let data = tempfile::tempdir_in(&self.folder)?;
        let ports = Ports::free()?;
        std::fs::write(data.path().join("rabbitmq.conf"), ports.settings())?;
        std::fs::write(data.path().join("queues.json"), definitions(self.kind))?;
        let mut names = self.inside(data.path(), &ports, "epmd");
        names.args(["-address", "127.0.0.1"]);
        let names = Launch::start(&mut names, &data.path().join("names.out"))?;
        let began = Instant::now();
        let server = "/usr/lib/rabbitmq/bin/rabbitmq-server";
        let mut server = self.inside(data.path(), &ports, server);
        let mut server = Launch::start(&mut server, &data.path().join("server.out"))?;
        let place = Place {
            address: SocketAddr::from(([127, 0, 0, 1], ports.amqp)),
            sasl: Place::plain(USER, USER),
            settle_mode: SettleMode::Answered,
            prefix: "/queues/",
            pid: server.pid(),
        };
        place.await_session(|| server.check())?;
        Ok(Running {
            place,
            took: began.elapsed(),
            broker: Box::new(Node {
                server,
                _names: names,
                _data: data,
            }),
        })
    }
}

/// A running node. Its fields go in this order.
struct Node {
    server: Launch,
    /// Where it registers; Erlang would start one that outlives it.
    _names: Launch,
    _data: TempDir,
}

impl Stop for Node {
    fn stop(self: Box<Self>) -> Result<()> {
        let Self {
            server,
            _names,
            _data,
        } = *self;
        server.stop("beam.smp")
    }
}

/// What it listens on, all on loopback.
struct Ports {
    amqp: u16,
    node: u16,
    names: u16,
}

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self {
            amqp: free_port()?,
            node: free_port()?,
            names: free_port()?,
        })
    }

    /// The node's own settings are what it needs to be alone; the rest is as it comes.
    fn settings(&self) -> String {
        let Self { amqp, node, .. } = self;
        format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\n\
             distribution.listener.interface = 127.0.0.1\n\
             distribution.listener.port_range.min = {node}\n\
             distribution.listener.port_range.max = {node}\n\
             load_definitions = /mnt/queues.json\n"
        )
    }
}

/// One user and the queues of every row.
fn definitions(kind: &str) -> String {
    let queues: Vec<_> = queues()
        .map(|name| {
            json!({
                "name": name, "vhost": "/", "durable": true, "auto_delete": false,
                "arguments": {"x-queue-type": kind},
            })
        })
        .collect();
    json!({
        "vhosts": [{"name": "/"}],
        "users": [{"name": USER, "password": USER, "tags": []}],
        "permissions": [
            {"user": USER, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        ],
        "queues": queues,
    })
    .to_string()
}

/// Unpacks the packages to `made`; apt checks their signatures.
fn unpack(made: &Path) -> Result<()> {
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=extract", "--components=main"]);
    command.arg(format!("--include={PACKAGES}"));
    command.arg(RELEASE).arg(made);
    quiet(command)?;
    std::fs::create_dir_all(made.join("mnt"))?;
    for (link, program) in LINKS {
        let link = made.join(link);
        if !link.exists() {
            std::os::unix::fs::symlink(program, link)?;
        }
    }
    for (file, text) in FILES {
        std::fs::write(made.join(file), text)?;
    }
    Ok(())
}

/// As the folder of its programs is called.
fn version(root: &Path) -> Result<String> {
    let folders = std::fs::read_dir(root.join("usr/lib/rabbitmq/lib"))?;
    let mut names = folders.filter_map(|folder| folder.ok()?.file_name().into_string().ok());
    names
        .find_map(|name| Some(name.strip_prefix("rabbitmq_server-")?.to_owned()))
        .context("no RabbitMQ was unpacked")
}
