//! What the checks of nodes report, and what they let pass.

use broker::{Browsed, EntityKind, LockTime, MessageState, Wall};
use store::CommitId;

use super::*;

const NODE: EntityId = EntityId(7);
const LOCK: u64 = 60_000;
const LINK: NodeLinkId = NodeLinkId {
    connection: ConnectionId(1),
    link: 1,
};
const ID: MessageId = 5;

/// A user with a link to a node that a message was sent to.
fn nodes() -> Nodes {
    let mut nodes = Nodes::default();
    nodes.users[0] = Some(LINK.connection);
    let (entity, kind) = (NODE, EntityKind::Queue);
    nodes.making.insert(LINK, LifetimePolicy::DeleteOnClose);
    nodes.opened(LINK, Ok(Node { entity, kind }));
    let payload = Bytes::copy_from_slice(&ID.to_be_bytes());
    nodes.sent.insert(ID, Sent { to: NODE, payload });
    nodes
}

/// The message comes out of its node.
fn delivery() -> Output {
    let message = Browsed {
        entity: NODE,
        number: SequenceNumber(1),
        enqueued_number: SequenceNumber(1),
        was_forwarded: false,
        was_scheduled: false,
        lock: Some(LockTime::Own(LOCK)),
        enqueued: Wall(0),
        ttl_ms: None,
        expires: None,
        delivery_count: 0,
        acquired_count: 0,
        state: MessageState::Active,
        payload: Bytes::copy_from_slice(&ID.to_be_bytes()),
        additions: None,
    };
    Output::Deliver {
        receiver: receiver_of(LINK),
        delivery: Box::new(Delivery {
            message,
            token: LockToken(1),
            rests_on: CommitId::default(),
        }),
    }
}

#[test]
fn a_locked_message_has_no_other_holder() {
    let mut nodes = nodes();
    let first = nodes.handle_output(delivery(), Mono(1_000), Mono(1_000));
    assert_eq!(first, Ok(()));
    let last = Mono(1_000 + LOCK - 1);
    let second = nodes.handle_output(delivery(), last, last);
    assert_eq!(second.unwrap_err().invariant, "I3");
}

#[test]
fn a_lock_lasts_from_the_decision_and_not_from_the_delivery() {
    let mut nodes = nodes();
    let waited = Mono(8_000);
    let first = nodes.handle_output(delivery(), waited, Mono(1_000));
    assert_eq!(first, Ok(()));
    let end = Mono(1_000 + LOCK);
    assert_eq!(nodes.handle_output(delivery(), end, end), Ok(()));
}
