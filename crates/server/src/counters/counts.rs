//! Counts: counters of connections, requests and bytes, for metrics.
//!
//! Each place increments its own counter. Counters are read only when `/metrics` is requested.

use crate::counters::counter::Counter;
use crate::counters::error_counters::ErrorCounters;

/// Declares an enum of few cases, the words for them, and a counter for each.
macro_rules! counters {
    ($(#[$note:meta])* $name:ident, $counts:ident { $($case:ident => $word:literal),+ $(,)? }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $($case),+ }

        impl $name {
            const WORDS: &[&str] = &[$($word),+];
        }

        /// A counter for each of them.
        #[derive(Debug, Default)]
        pub struct $counts([Counter; $name::WORDS.len()]);

        impl $counts {
            /// The counter of one of them.
            pub fn of(&self, case: $name) -> &Counter {
                &self.0[case as usize]
            }

            /// All of them with their words.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                $name::WORDS.iter().copied().zip(self.0.iter().map(Counter::get))
            }
        }
    };
}

counters! {
    /// The protocol that a connection uses; a connection with several layers counts in each.
    ServedProtocol, ByServedProtocol {
        Amqp => "amqp",
        Http => "http",
        Tls => "tls",
        WebSocket => "websocket",
    }
}

counters! {
    /// Why a connection was refused before it was one of AMQP or HTTP, or could ask anything.
    RefusalReason, ByRefusalReason {
        Full => "connections",
        FullOfAddress => "connections-per-address",
        TimeOut => "handshake-time-out",
        Tls => "tls",
        Plain => "plain",
    }
}

counters! {
    /// How an HTTP request was answered.
    StatusClass, ByStatusClass {
        Success => "2xx",
        Redirect => "3xx",
        ClientError => "4xx",
        ServerError => "5xx",
    }
}

/// All that is counted.
#[derive(Debug, Default)]
pub struct Counts {
    pub served: ByServedProtocol,
    pub refused: ByRefusalReason,
    pub responses: ByStatusClass,
    /// Errors with which this end closed AMQP connections and ended their sessions and links.
    pub error_counters: ErrorCounters,
    /// Credentials that were not accepted, over AMQP.
    pub refused_credentials: Counter,
    /// The same over HTTP: requests that were answered with 401.
    pub unauthorized: Counter,
    /// Answers to wrong credentials that were delayed, since their address had shown too many.
    pub delayed_refusals: Counter,
    /// Bytes of AMQP that arrived.
    pub received_bytes: Counter,
    /// Bytes of AMQP that were sent.
    pub sent_bytes: Counter,
    /// Times that a connection was left unread, since it had as much unanswered or unwritten as it
    /// may.
    pub pauses: Counter,
    /// Times that a connection lost unfinished messages, since all together had too many.
    pub shed: Counter,
}

impl Counts {
    /// Counts the answer to an HTTP request.
    pub fn answer(&self, status: hyper::StatusCode) {
        if status == hyper::StatusCode::UNAUTHORIZED {
            self.unauthorized.increment();
        }
        let case = match status.as_u16() {
            300..=399 => StatusClass::Redirect,
            400..=499 => StatusClass::ClientError,
            500..=599 => StatusClass::ServerError,
            _ => StatusClass::Success,
        };
        self.responses.of(case).increment();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_a_counter_under_its_own_word() {
        let counts = Counts::default();
        counts.refused.of(RefusalReason::TimeOut).increment();
        counts.refused.of(RefusalReason::Tls).add(2);
        let found: Vec<_> = counts.refused.iter().collect();
        let expected = [
            ("connections", 0),
            ("connections-per-address", 0),
            ("handshake-time-out", 1),
            ("tls", 2),
            ("plain", 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn answers_are_counted_by_the_class_of_their_status() {
        let counts = Counts::default();
        for status in [101, 200, 201, 404, 431, 503] {
            counts.answer(hyper::StatusCode::from_u16(status).unwrap());
        }
        let found: Vec<_> = counts.responses.iter().collect();
        assert_eq!(found, [("2xx", 3), ("3xx", 0), ("4xx", 2), ("5xx", 1)]);
    }
}
