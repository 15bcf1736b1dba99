//! Plan: the parameters of a bench, computed from its arguments.
//!
//! A run always ends: by its number of messages, by its duration, or after an hour. Connections
//! share messages and rate evenly, and begin one after the other, so that they take turns.

use std::net::ToSocketAddrs;
use std::time::Duration;

use amqp::Symbol;
use amqp::hexadecimal::hexadecimal;
use load::receiver::SettleMode;
use load::wire::TrustStore;
use load::{Peer, STAMP, Token};

use super::error::BenchError;
use crate::arguments::{BenchArguments, BenchMode};
use crate::command_error::CommandError;
use crate::commands::messaging;
use crate::remote::{self, Remote};
use crate::serve::entropy::seed;

/// The default duration of a run.
const DURATION: Duration = Duration::from_secs(10);
/// The longest duration of a run with a number of messages.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// How much longer than a run a signature holds.
const RESERVE: Duration = Duration::from_secs(10 * 60);
/// Messages without an outcome, as in the rows of `cargo xtask bench`.
const IN_FLIGHT: u64 = 500;
/// Bytes of a run's id.
const RUN: usize = 16;

/// What to do.
#[derive(Debug)]
pub struct Plan {
    pub entity: String,
    pub mode: BenchMode,
    /// Bytes of a body.
    pub size: usize,
    /// Of senders, and of receivers.
    pub connections: u32,
    /// Over all connections.
    pub in_flight: u64,
    /// Messages a second, over all connections.
    pub rate: Option<u32>,
    pub messages: Option<u64>,
    pub duration: Duration,
    /// Whether receiving ends when nothing comes any more.
    pub ends_when_quiet: bool,
    pub credit: u32,
    pub json: bool,
    /// What this run's messages are known by.
    pub run: [u8; RUN],
    remote: Remote,
}

impl Plan {
    pub fn new(arguments: &BenchArguments) -> Result<Self, CommandError> {
        check(arguments).map_err(BenchError::Options)?;
        let seed = seed()?;
        let (run, name) = seed.split_at(RUN);
        let entity = arguments.entity.clone();
        let in_flight = match arguments.rate {
            // A late broker must not slow the schedule down.
            Some(_) => u64::MAX,
            None => IN_FLIGHT,
        };
        let duration = arguments.duration.map(Duration::from_millis);
        Ok(Self {
            entity: entity.unwrap_or_else(|| queue_name(name)),
            mode: arguments.mode,
            size: arguments.size,
            connections: arguments.connections,
            in_flight: arguments.in_flight.unwrap_or(in_flight),
            rate: arguments.rate,
            messages: arguments.messages,
            duration: duration.unwrap_or(match arguments.messages {
                Some(_) => LONGEST,
                None => DURATION,
            }),
            ends_when_quiet: arguments.mode == BenchMode::Receive && duration.is_none(),
            credit: arguments.credit,
            json: arguments.json,
            run: run.try_into().unwrap_or_default(),
            remote: Remote::new(&arguments.broker)?,
        })
    }

    /// Host and port of the broker.
    pub fn authority(&self) -> &str {
        &self.remote.broker.authority
    }

    /// Where the broker is and how one gets in.
    pub fn peer(&self) -> Result<Peer, remote::Error> {
        let broker = &self.remote.broker;
        let unknown = |reason: String| remote::Error::Connect {
            authority: broker.authority.clone(),
            reason,
        };
        let addresses = broker.authority.to_socket_addrs();
        let addresses = addresses.map_err(|error| unknown(error.to_string()))?;
        let audience = format!("amqp://{}/{}", broker.host(), self.entity);
        let validity = self.duration.saturating_add(RESERVE);
        let token = broker.token_for(&audience, validity);
        let tls = self.remote.tls()?;
        Ok(Peer {
            addresses: addresses.collect(),
            host: broker.host().to_owned(),
            sasl: (Symbol::new("ANONYMOUS"), Vec::new()),
            token: token.map(|text| Token { audience, text }),
            settle_mode: SettleMode::Second,
            trust: tls.map(|(config, name)| TrustStore::of(config, name)),
        })
    }

    /// An error before the first message.
    pub fn connecting_error(&self, error: load::Error) -> BenchError {
        match error {
            load::Error::Connect(error) | load::Error::Lost(error) => {
                let error = remote::Error::Connect {
                    authority: self.authority().to_owned(),
                    reason: error.to_string(),
                };
                messaging::Error::from(error).into()
            }
            error => self.running_error(error),
        }
    }

    /// An error in between.
    pub fn running_error(&self, error: load::Error) -> BenchError {
        let error = match error {
            load::Error::Detached(error) => messaging::refused(&self.entity, error.as_ref()),
            load::Error::Token { code, reason } => messaging::Error::Request {
                what: format!("access to {}", self.entity),
                code,
                reason,
            },
            load::Error::Closed(Some(error)) | load::Error::Ended(Some(error)) => {
                messaging::Error::Ended {
                    authority: self.authority().to_owned(),
                    reason: messaging::describe_error(&error),
                }
            }
            error => messaging::Error::Ended {
                authority: self.authority().to_owned(),
                reason: error.to_string(),
            },
        };
        error.into()
    }

    /// An answer did not come.
    pub fn late_error(&self) -> BenchError {
        messaging::Error::Late(self.announced()).into()
    }

    /// The part of `all` that the connection of that number has.
    pub fn share(&self, all: u64, number: u32) -> u64 {
        let connections = u64::from(self.connections);
        all / connections + u64::from(u64::from(number) < all % connections)
    }

    /// The time between two messages of one connection, if there is a rate.
    pub fn every(&self) -> Option<Duration> {
        let rate = f64::from(self.rate?);
        Some(Duration::from_secs_f64(f64::from(self.connections) / rate))
    }

    /// How much later than the first connection's the schedule of one begins, so that they take
    /// turns.
    pub fn offset(&self, number: u32) -> Duration {
        let between = self.every().unwrap_or_default() / self.connections;
        between * number
    }

    /// What is about to be done, in a line.
    pub fn announced(&self) -> String {
        let operation = match self.mode {
            BenchMode::Send => "sending to",
            BenchMode::Receive => "receiving from",
            BenchMode::Both => "sending to and receiving from",
        };
        format!("{operation} {} at {}", self.entity, self.authority())
    }
}

/// Refuses what does not fit together.
fn check(arguments: &BenchArguments) -> Result<(), &'static str> {
    match arguments.mode {
        BenchMode::Receive if arguments.create => {
            Err("there is nothing to receive from a queue that --create makes")
        }
        BenchMode::Receive if arguments.rate.is_some() => {
            Err("--rate is that of sending, and --mode receive sends nothing")
        }
        BenchMode::Both if arguments.size < STAMP => {
            Err("with --mode both a body says when it was sent: --size has to be 24 or more")
        }
        _ if arguments.duration == Some(0) => Err("--duration is nothing"),
        _ => Ok(()),
    }
}

/// What a queue is called that is made for a run.
fn queue_name(random: &[u8]) -> String {
    format!("railbus-bench-{}", hexadecimal(&random[..4]))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn plan(options: &str) -> Result<Plan, String> {
        let words = format!("railbus bench {options}");
        let arguments = Arguments::try_parse_from(words.split_whitespace());
        let Command::Bench(arguments) = arguments.expect("they parse").command else {
            panic!("it is a bench");
        };
        Plan::new(&arguments).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_run_is_bounded_whatever_is_not_said() {
        let ends = |options: &str| {
            let plan = plan(options).expect("it fits");
            (plan.messages, plan.duration, plan.ends_when_quiet)
        };
        assert_eq!(ends("orders"), (None, DURATION, false));
        assert_eq!(ends("orders --mode receive"), (None, DURATION, true));
        assert_eq!(ends("orders --messages 5"), (Some(5), LONGEST, false));
        let second = Duration::from_secs(1);
        assert_eq!(
            ends("orders --mode receive --duration 1s"),
            (None, second, false)
        );
    }

    #[test]
    fn connections_share_what_there_is_and_take_turns() {
        let plan = plan("orders --connections 3 --rate 300").expect("it fits");
        let shares: Vec<_> = (0..3).map(|number| plan.share(8, number)).collect();
        assert_eq!(shares, [3, 3, 2]);
        assert_eq!(plan.every(), Some(Duration::from_millis(10)));
        let offset = plan.offset(2).as_micros();
        assert_eq!(offset, 6_666);
        assert_eq!(plan.in_flight, u64::MAX);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let refused = |options: &str, part: &str| {
            let why = plan(options).expect_err("it does not fit");
            assert!(why.contains(part), "{why}");
        };
        refused("--create --mode receive", "--create");
        refused("orders --mode receive --rate 5", "--rate");
        refused("orders --size 23", "--size");
        refused("orders --duration 0s", "--duration");
        assert!(plan("orders --size 24").is_ok());
        assert!(plan("orders --size 0 --mode send").is_ok());
    }

    #[test]
    fn a_created_queue_has_a_unique_name() {
        let names = [plan("--create"), plan("--create")].map(|plan| plan.expect("it fits").entity);
        assert!(names[0].starts_with("railbus-bench-"));
        assert_ne!(names[0], names[1]);
        assert_eq!(plan("mine --create").expect("it fits").entity, "mine");
    }
}
