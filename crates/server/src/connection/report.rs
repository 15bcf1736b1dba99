//! Report: what counters, logs and other tasks of the server learn of a connection.

use dialect::Dialect;

use super::Connection;
use crate::stream::Stream;

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
        }
    }

    /// Logs what the peer was refused.
    pub(super) fn log_refusals(&mut self) {
        if let Some(refusals) = self.client.take_refusals() {
            let (peer, id) = self.from;
            self.server.refusals.amqp(peer, id, &refusals);
        }
    }
}
