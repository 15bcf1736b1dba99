//! Errors of a connection that the server closes by itself. (docs/spec/amqp.md#10)

use amqp::Error;
use amqp::error::condition;
use dialect::ForcedClose;

fn text(why: ForcedClose) -> &'static str {
    match why {
        ForcedClose::ShutDown => "The broker is shutting down.",
        ForcedClose::Operator => "An operator of the broker closes the connection.",
    }
}

/// Why a link is detached.
pub(crate) fn link_forced(why: ForcedClose) -> Error {
    Error::new(condition::DETACH_FORCED, text(why))
}

/// Why the connection is closed.
pub(crate) fn connection_forced(why: ForcedClose) -> Error {
    Error::new(condition::CONNECTION_FORCED, text(why))
}
