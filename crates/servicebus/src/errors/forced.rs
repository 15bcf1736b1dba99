//! Errors of a connection that the server closes by itself. (docs/spec/amqp.md#10)

use std::borrow::Cow;

use amqp::Error;
use amqp::error::condition;
use dialect::ForcedClose;

fn text(why: ForcedClose) -> Cow<'static, str> {
    match why {
        ForcedClose::ShutDown => "The broker is shutting down.".into(),
        ForcedClose::Operator => "An operator of the broker closes the connection.".into(),
        ForcedClose::NamespaceIsFull(limit) => {
            format!("The namespace has the maximum of {limit} connections.").into()
        }
    }
}

/// Why a link is detached.
pub(crate) fn link_forced(why: ForcedClose) -> Error {
    Error::new(condition::DETACH_FORCED, text(why))
}

/// Why the connection is closed.
pub(crate) fn connection_forced(why: ForcedClose) -> Error {
    let condition = match why {
        ForcedClose::NamespaceIsFull(_) => condition::RESOURCE_LIMIT_EXCEEDED,
        ForcedClose::ShutDown | ForcedClose::Operator => condition::CONNECTION_FORCED,
    };
    Error::new(condition, text(why))
}
