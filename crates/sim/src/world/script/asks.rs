//! Asks: what a scripted client says, as the broker is told it.

use amqp::{Value, encode};
use broker::{Command, Incoming, Outcome, ReceiverId, Wall};
use bytes::{Bytes, BytesMut};

use crate::ledger::Ask;
use crate::message::{self, MessageId, SendOptions};
use crate::session::Session;

/// Names a limit.
pub(super) fn credit(receiver: ReceiverId, limit: u32) -> Command {
    Command::Credit {
        receiver,
        limit,
        drain: false,
    }
}

/// What a settlement asks for.
pub(super) fn outcome(ask: Ask) -> Outcome {
    let changes = Vec::new();
    match ask {
        Ask::Complete => Outcome::Complete,
        Ask::Abandon => Outcome::abandon(changes),
        Ask::Release => Outcome::Release,
        Ask::Defer => Outcome::Defer { changes },
        Ask::DeadLetter => {
            let mut reason = BytesMut::new();
            encode::value(&mut reason, &Value::from("script"));
            let changes = vec![("DeadLetterReason".to_owned(), reason.freeze())];
            Outcome::DeadLetter { changes }
        }
    }
}

/// A message as the dialect hands it on.
pub(in crate::world) fn incoming(id: MessageId, payload: Bytes, options: SendOptions) -> Incoming {
    let mut message_id = BytesMut::new();
    encode::value(&mut message_id, &Value::Ulong(options.key.unwrap_or(id)));
    Incoming {
        payload,
        ttl_ms: options.ttl.map(u64::from),
        priority: message::priority_of(id),
        message_id: Some(message_id.freeze()),
        session_id: Session::as_sent(id).map(Bytes::from),
        scheduled: options.due.map(Wall),
        distribution: None,
        transfer_to: None,
        only_in: None,
    }
}
