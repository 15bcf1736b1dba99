//! Place: where a broker is, how one signs in, what its queues are called, and its processes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amqp::Symbol;
use anyhow::{Context, Result};
use load::Peer;

use super::client::{Client, Workload};
use super::drive;
use load::receiver::SettleMode;

/// Between two tries to open a connection to a broker that starts.
const PAUSE: Duration = Duration::from_millis(5);
/// The longest a broker may take to start.
const START: Duration = Duration::from_secs(120);

/// A broker as its clients see it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it listens.
    pub address: SocketAddr,
    /// The mechanism and the initial response. [AMQP 5.3.3.2]
    pub sasl: (Symbol, Vec<u8>),
    /// How its messages are completed.
    pub settle_mode: SettleMode,
    /// What stands before a queue's name in an address.
    pub prefix: &'static str,
    /// The process that all of its processes descend from.
    pub pid: u32,
}

impl From<&Place> for Peer {
    fn from(place: &Place) -> Self {
        Self {
            addresses: vec![place.address],
            host: "localhost".to_owned(),
            sasl: place.sasl.clone(),
            token: None,
            settle_mode: place.settle_mode,
            trust: None,
        }
    }
}

impl Place {
    /// The address of the queue called `name`.
    pub fn queue(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Signs in with SASL PLAIN. [RFC 4616]
    pub fn plain(user: &str, password: &str) -> (Symbol, Vec<u8>) {
        let response = format!("\0{user}\0{password}");
        (Symbol::new("PLAIN"), response.into_bytes())
    }

    /// Waits until a session opens, while the broker is alive.
    pub fn await_session(&self, mut check: impl FnMut() -> Result<()>) -> Result<()> {
        let limit = Instant::now() + START;
        loop {
            let Err(error) = self.open_session() else {
                return Ok(());
            };
            check()?;
            if Instant::now() >= limit {
                return Err(error).with_context(|| format!("no session within {START:?}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn open_session(&self) -> Result<()> {
        let client = Client::connect(self, Workload::Idle(None))?;
        drive::open(&mut [client])
    }
}
