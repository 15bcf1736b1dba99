//! Report: what counters, logs and other tasks of the server learn of a connection.

use dialect::Dialect;

use super::Connection;
use crate::stream::Stream;

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// Counts newly refused credentials, and delays their answers if the address had too many.
    pub(super) fn count_refused_credentials(&mut self) {
        let refused = self.client.refused_credentials();
        let more = refused.saturating_sub(self.refused_credentials);
        if more > 0 {
            self.refused_credentials = refused;
            self.server.counts.refused_credentials.add(more);
            let until = self.server.delay_refusal(self.from.0.ip(), more);
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
