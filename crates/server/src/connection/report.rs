//! Report: what counters, logs, operators and other tasks of the server learn of a connection.

use broker::Wall;
use dialect::{ClientRefusal, Dialect, ForcedClose};

use super::Connection;
use super::phase::{DrainReason, Phase};
use crate::connection::open_connections::{ConnectionReport, OperatorRequest};
use crate::transport::stream::Stream;

/// Links of a connection that an operator sees.
const SHOWN_LINKS: usize = 100;

/// The errors that a client was given.
#[derive(Debug, Default)]
pub struct GivenErrors {
    count: u64,
    last: Option<Box<(Wall, ClientRefusal)>>,
}

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// Counts newly refused credentials, and delays the answers to guesses if the address had too
    /// many.
    pub(super) fn count_refused_credentials(&mut self) {
        let now = self.client.refused_credentials();
        let before = std::mem::replace(&mut self.refused_credentials, now);
        let more = now.all.saturating_sub(before.all);
        self.server.counts.refused_credentials.add(more);
        let guesses = now.guesses.saturating_sub(before.guesses);
        if guesses > 0 {
            let until = self.server.delay_refusal(self.from.0.ip(), guesses);
            self.delay.extend(until);
        }
    }

    /// Has the keys of issuers loaded if the peer's token needs them.
    pub(super) fn demand_keys(&mut self) {
        if self.client.take_key_demand() {
            self.server.key_demand.notify_waiters();
        }
    }

    /// Counts the errors that are sent to the peer.
    pub(super) fn count_sent_errors(&mut self) {
        for ((scope, condition), count) in self.client.take_error_counts() {
            self.server
                .counts
                .error_counters
                .of(scope, &condition)
                .add(count);
            self.errors.count += count;
        }
    }

    /// Logs what the peer was refused.
    pub(super) fn log_refusals(&mut self) {
        if let Some(refusals) = self.client.take_refusals() {
            let (peer, id) = self.from;
            self.server.refusals.amqp(peer, id, &refusals);
            if let Some(last) = refusals.first.last() {
                let now = self.server.clock.moment().wall;
                self.errors.last = Some(Box::new((now, last.clone())));
            }
        }
    }

    /// Does what operators have asked for.
    pub(super) fn handle_operator(&mut self) {
        for request in self.registration.take_requests() {
            match request {
                // The operator may have gone meanwhile.
                OperatorRequest::Describe(sender) => drop(sender.send(self.report())),
                OperatorRequest::Close if matches!(self.phase, Phase::Open) => {
                    self.drain(DrainReason::Forced(ForcedClose::Operator));
                }
                OperatorRequest::Close => {}
            }
        }
    }

    fn report(&self) -> ConnectionReport {
        ConnectionReport {
            state: self.client.state(SHOWN_LINKS),
            errors: self.errors.count,
            last_error: self.errors.last.as_deref().cloned(),
        }
    }
}
