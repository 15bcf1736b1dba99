//! Record: the calls by which the core tells what happens to messages.
//!
//! Each is made where it happens, and becomes an effect; nothing is kept here. An event is made
//! only if its namespace has a record, so elsewhere a call costs one look at a switch.

use amqp::hexadecimal::{hexadecimal, uuid_text};
use amqp::{Value, decode};
use bytes::Bytes;
use store::{NamespaceId, SequenceNumber};

use crate::api::id::{ConnectionId, Subqueue};
use crate::api::incoming::Incoming;
use crate::api::lineage::{LineageEvent, LockEnd, MessageEvent, MessagePlace, Settlement};
use crate::api::outcome::Outcome;
use crate::context::Context;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::subqueue::lock::{Lock, Origin};

/// An event with texts as the core has them.
pub(crate) type CoreEvent = MessageEvent<Bytes>;

impl Context<'_> {
    /// Whether what happens to the messages of a namespace is recorded.
    #[inline]
    pub(crate) fn records(&self, namespace: NamespaceId) -> bool {
        self.shared.lineage.is_on(namespace)
    }

    /// A namespace says whether its messages are recorded, or takes the broker's setting.
    pub(crate) fn switch_lineage(&mut self, namespace: NamespaceId, own: Option<bool>) {
        if let Some(is_on) = self.shared.lineage.set(namespace, own) {
            self.effects.lineage.switched.push((namespace, is_on));
        }
    }
}

impl Queue {
    /// Something happens to the message of a number.
    #[inline]
    pub(crate) fn record(
        &self,
        number: SequenceNumber,
        event: impl FnOnce() -> CoreEvent,
        cx: &mut Context<'_>,
    ) {
        if cx.records(self.namespace) {
            let event = event();
            self.push_event(number, event, cx);
        }
    }

    fn push_event(&self, number: SequenceNumber, event: CoreEvent, cx: &mut Context<'_>) {
        cx.effects.lineage.events.push(LineageEvent {
            namespace: self.namespace,
            at: cx.now.wall,
            place: self.place_of(number),
            event,
        });
    }

    pub(crate) fn place_of(&self, number: SequenceNumber) -> MessagePlace {
        MessagePlace {
            entity: self.id,
            number,
        }
    }

    /// A message is accepted, for now or for later.
    pub(crate) fn record_acceptance(
        &self,
        number: SequenceNumber,
        message: &Incoming,
        cx: &mut Context<'_>,
    ) {
        let later = message.scheduled.filter(|due| *due > cx.now.wall);
        let event = || {
            let message_id = message.message_id.as_ref().map(id_text);
            let session_id = message.session_id.clone();
            match later {
                Some(due) => MessageEvent::Scheduled {
                    message_id,
                    session_id,
                    due,
                },
                None => MessageEvent::Accepted {
                    message_id,
                    session_id,
                },
            }
        };
        self.record(number, event, cx);
    }

    /// A message is a dead letter, for the reason that its patch says.
    pub(crate) fn record_dead_letter(
        &self,
        number: SequenceNumber,
        to: Subqueue,
        patch: &Patch,
        cx: &mut Context<'_>,
    ) {
        let event = || MessageEvent::DeadLettered {
            to,
            reason: patch.dead_letter_reason().map(Bytes::from),
        };
        self.record(number, event, cx);
    }

    /// A lock ends as a client says; `by` names it, if it is not the lock's holder.
    pub(crate) fn record_settlement(
        &self,
        number: SequenceNumber,
        lock: &Lock,
        outcome: &Outcome,
        by: Option<ConnectionId>,
        cx: &mut Context<'_>,
    ) {
        let event = || MessageEvent::Settled {
            how: settlement_of(outcome),
            by: by.or(lock.holder.map(|holder| holder.connection)),
        };
        self.record(number, event, cx);
    }

    /// A lock ends without a settlement.
    pub(crate) fn record_lock_lost(
        &self,
        number: SequenceNumber,
        lock: &Lock,
        why: LockEnd,
        cx: &mut Context<'_>,
    ) {
        if lock.origin != Origin::SetAside {
            self.record(number, || MessageEvent::LockLost { why }, cx);
        }
    }
}

fn settlement_of(outcome: &Outcome) -> Settlement {
    match outcome {
        Outcome::Complete => Settlement::Completed,
        Outcome::Abandon { .. } => Settlement::Abandoned,
        Outcome::Defer { .. } => Settlement::Deferred,
        Outcome::DeadLetter { .. } => Settlement::Rejected,
        Outcome::Release | Outcome::ReleaseLater(_) => Settlement::Released,
        Outcome::Undelivered => Settlement::Undelivered,
        Outcome::Annotated { outcome, .. } | Outcome::Reported { outcome, .. } => {
            settlement_of(outcome)
        }
    }
}

/// The text of an encoded message id.
pub(crate) fn id_text(encoded: &Bytes) -> Bytes {
    // As nearly all ids are, without a copy.
    match encoded[..] {
        [0xa1, _, ..] => return encoded.slice(2..),
        [0xb1, _, _, _, _, ..] => return encoded.slice(5..),
        _ => {}
    }
    let text = match decode::value(encoded) {
        Ok(Value::Ulong(number)) => number.to_string(),
        Ok(Value::Uuid(bytes)) => uuid_text(&bytes),
        Ok(Value::Binary(bytes)) => hexadecimal(&bytes),
        _ => String::new(),
    };
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn check(id: &Value, expected: &str) {
        let mut encoded = BytesMut::new();
        amqp::encode::value(&mut encoded, id);
        assert_eq!(id_text(&encoded.freeze()), expected.as_bytes(), "{id:?}");
    }

    #[test]
    fn an_id_of_any_type_has_a_text() {
        check(&Value::String("a".into()), "a");
        check(&Value::String("é".repeat(200)), &"é".repeat(200));
        check(&Value::Ulong(7), "7");
        check(&Value::Binary(vec![1, 0xab].into()), "01ab");
        let uuid = "000102ff-0000-0000-0000-000000000010";
        let mut bytes = [0; 16];
        (bytes[1], bytes[2], bytes[3], bytes[15]) = (1, 2, 0xff, 0x10);
        check(&Value::Uuid(bytes), uuid);
    }
}
