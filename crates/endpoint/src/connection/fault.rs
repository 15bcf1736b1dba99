//! Fault: an error of the peer, and the part of the conversation that it ends. [AMQP 2.8.15-18]
//!
//! A link's fault detaches the link, a session's ends the session, a connection's closes it.

use std::borrow::Cow;

use amqp::{Error, Symbol};

/// The scope that an error ends, and the error.
#[derive(Debug)]
pub(crate) enum Fault {
    Connection(Error),
    Session(Error),
    Link(u32, Error),
}

impl Fault {
    pub(crate) fn connection(condition: Symbol, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Connection(Error::new(condition, text))
    }

    pub(crate) fn session(condition: Symbol, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Session(Error::new(condition, text))
    }

    pub(crate) fn link(link: u32, condition: Symbol, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Link(link, Error::new(condition, text))
    }
}
