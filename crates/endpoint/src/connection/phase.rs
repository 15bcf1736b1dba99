//! Phase: how far a connection is, from its first header to its end.

/// How far a connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// The peer's first header is due.
    Header,
    /// Server: the peer's sasl-init is due.
    SaslInit,
    /// Server: the owner's decision is due.
    SaslDecision,
    /// Client: the peer's sasl-mechanisms are due.
    SaslMechanisms,
    /// Client: the peer's sasl-outcome is due.
    SaslOutcome,
    /// The peer's header after SASL is due.
    AmqpHeader,
    /// The peer's open is due.
    Open,
    Opened,
    /// The peer made an error. Our close waits for the answers to its deliveries, and its input is
    /// discarded.
    Failing,
    /// We sent close; the peer's is due.
    Closing,
    /// The stream makes no sense any more; it is read until it ends.
    Draining,
    Finished,
}

impl Phase {
    pub(crate) fn is_handshake(self) -> bool {
        self.is_before_amqp() || self == Self::Open
    }

    /// Whether no AMQP frame may be written yet.
    pub(crate) fn is_before_amqp(self) -> bool {
        matches!(
            self,
            Self::Header
                | Self::SaslInit
                | Self::SaslDecision
                | Self::SaslMechanisms
                | Self::SaslOutcome
                | Self::AmqpHeader
        )
    }
}
