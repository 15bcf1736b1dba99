//! Event: an action of the peer, reported to the endpoint's owner in the order in which it
//! happened.

use amqp::sasl::Code;
use amqp::{Attach, DeliveryState, Error, Open, Symbol};
use bytes::Bytes;

use crate::id::{LinkId, SessionId};

/// What happened at an endpoint.
// `Debug` is written by hand, in `shown`: it hides secrets.
#[derive(Clone, PartialEq)]
#[allow(missing_docs, reason = "the fields carry the standard's names")]
pub enum Event {
    /// Server: answer with [`finish_sasl`](crate::Connection::finish_sasl). Input waits until then.
    SaslInit {
        mechanism: Symbol,
        initial_response: Option<Bytes>,
        hostname: Option<String>,
    },
    /// Client: how SASL ended.
    SaslOutcome(Code),
    /// The peer's open; ours is sent without being asked.
    Opened(Box<Open>),
    /// The peer began a session (answered already), or answered ours.
    Begun { session: SessionId },
    /// The peer wants a link: answer with [`accept`](crate::Connection::accept) or
    /// [`refuse`](crate::Connection::refuse), now or later. Flow and transfers for it are
    /// remembered. A link of the same name and role was detached as stolen before this. [AMQP
    /// 2.6.1]
    AttachRequested {
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    },
    /// The peer answered our attach; a refusal has null termini and is followed by `Detached`.
    Attached { link: LinkId, attach: Box<Attach> },
    /// Our sender link's credit changed. Usable credit is `limit` less deliveries sent so far, as
    /// serial numbers, counted from the attach's initial-delivery-count; a drain that was answered
    /// counts all up to its `limit` as sent. With `drain`, send what there is, then call
    /// [`drained`](crate::Connection::drained). [AMQP 2.6.7]
    Credit {
        link: LinkId,
        limit: u32,
        drain: bool,
    },
    /// Our receiver link was drained by the peer: no delivery is left on its way.
    Drained { link: LinkId },
    /// A whole message arrived on our receiver link.
    Delivery {
        link: LinkId,
        session: SessionId,
        delivery_id: u32,
        tag: Bytes,
        message_format: u32,
        settled: bool,
        state: Option<DeliveryState>,
        payload: Bytes,
    },
    /// A delivery grew past the link's max-message-size, which is `limit`. The rest of it is
    /// dropped as it comes; it is the owner's to reject. The sender of a `settled` one sees no
    /// rejection, so the owner detaches its link. [AMQP 2.8.18]
    TooLarge {
        link: LinkId,
        session: SessionId,
        delivery_id: u32,
        settled: bool,
        state: Option<DeliveryState>,
        limit: u64,
    },
    /// The peer disposed of a delivery of ours; one event for each delivery of a range.
    /// With `settled` the engine has forgotten it; else call
    /// [`settle_sent`](crate::Connection::settle_sent).
    Disposed {
        link: LinkId,
        cookie: u128,
        delivery_id: u32,
        settled: bool,
        state: Option<DeliveryState>,
    },
    /// The peer gave an outcome to deliveries of ours of which some are forgotten, since their link
    /// was detached and there was no room to keep them.
    Missed {
        session: SessionId,
        state: Option<DeliveryState>,
    },
    /// The sender changed the state of a delivery that we received (clients: the answer to our
    /// disposition).
    Updated {
        link: LinkId,
        delivery_id: u32,
        settled: bool,
        state: Option<DeliveryState>,
    },
    /// The peer detached the link or answered our detach. Unsettled deliveries of it are forgotten;
    /// their cookies are in `unsettled`.
    Detached {
        link: LinkId,
        closed: bool,
        error: Option<Error>,
        /// Whether it goes with its session.
        with_session: bool,
        unsettled: Vec<u128>,
    },
    /// The session ended and its links with it (each was reported as `Detached` before). For an
    /// error that we found, or for our own `end`, links are reported at once.
    Ended {
        session: SessionId,
        error: Option<Error>,
    },
    /// The connection is over: closed by the peer, failed by a protocol error, timed out, or cut.
    /// `error` is the reason, from either side. Links and sessions go without events of their own.
    /// Nothing follows. It ends in order if the peer has closed it.
    Closed {
        error: Option<Error>,
        in_order: bool,
    },
}
