//! Errors of the load generator.

use std::io;

use amqp::decode::DecodeError;

/// Why load cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No broker answered.
    #[error("no connection: {0}")]
    Connect(io::Error),
    /// The broker closed the connection, or it broke.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// The broker closed the socket without a word.
    #[error("the broker closed the connection")]
    Gone,
    /// The broker closed the connection and may have said why.
    #[error("the connection was closed: {}", describe(.0.as_ref()))]
    Closed(Option<amqp::Error>),
    /// The broker ended the session.
    #[error("the session was ended: {}", describe(.0.as_ref()))]
    Ended(Option<amqp::Error>),
    /// The broker refused a link, or took it away.
    #[error("the link was detached: {}", describe(.0.as_ref()))]
    Detached(Option<amqp::Error>),
    /// A token was refused.
    #[error("the token was refused with {code}: {reason}")]
    Token {
        /// As of HTTP.
        code: i64,
        /// In the broker's words.
        reason: String,
    },
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The trusted certificates cannot be read.
    #[error("the certificates cannot be read: {0}")]
    Certificates(rustls::pki_types::pem::Error),
    /// What came is no answer.
    #[error("an answer cannot be read: {0}")]
    Unreadable(#[from] DecodeError),
    /// The answer has no status code.
    #[error("an answer without a code")]
    NoCode,
}

/// The text of a peer's error.
fn describe(error: Option<&amqp::Error>) -> String {
    let Some(error) = error else {
        return "without a reason".to_owned();
    };
    let description = error.description.as_deref().unwrap_or_default();
    format!("{}: {description}", error.condition.as_str())
}
