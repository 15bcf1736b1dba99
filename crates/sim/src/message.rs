//! Message: what simulated clients send, so that every copy can be told and checked.
//!
//! The last eight bytes of an encoded message are its id, so whoever sees a payload knows what
//! it is without decoding it; the id and a random filling are all of the body. The id tells its
//! session.

use amqp::encode;
use amqp::message::{Header, Properties, Sections, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use broker::Now;
use bytes::{Bytes, BytesMut};

use crate::rng::Rng;
use crate::session::Session;

/// Names one message of a run.
pub type MessageId = u64;

/// What a sender asks of the broker for one of its messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wish {
    /// Milliseconds.
    pub ttl: Option<u32>,
    /// When it is to become available, by the wall clock.
    pub due: Option<u64>,
    /// By which it is known to be a duplicate; its own name without one.
    pub key: Option<MessageId>,
}

impl Wish {
    /// Some wish for the message named `id`: mostly none at all.
    pub fn any(rng: &mut Rng, id: MessageId, now: Now) -> Self {
        Self {
            ttl: rng.chance(100).then(|| rng.between(1, 20_000) as u32),
            due: rng.chance(150).then(|| any_due(rng, now)),
            key: any_key(rng, id),
        }
    }
}

/// The name of a message nearby, or one that comes again and again.
fn any_key(rng: &mut Rng, id: MessageId) -> Option<MessageId> {
    match rng.below(10) {
        0..=2 => Some(id / 16 * 16),
        3..=4 => Some(MessageId::MAX - rng.below(10) as u64),
        _ => None,
    }
}

/// A time from a little ago to some minutes ahead, not seldom the same as another's.
pub fn any_due(rng: &mut Rng, now: Now) -> u64 {
    let ahead = match rng.below(10) {
        0 => return now.wall.0 - rng.between(0, 5_000),
        1..=5 => rng.between(0, 5_000),
        6..=8 => rng.between(0, 60_000),
        _ => rng.between(0, 300_000),
    };
    (now.wall.0 + ahead) / 10 * 10
}

/// Builds the message named `id`.
pub fn build(rng: &mut Rng, id: MessageId, wish: Wish, size: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(size + 256);
    if wish.ttl.is_some() || rng.chance(300) {
        Header {
            durable: Some(true),
            ttl: wish.ttl,
            ..Header::default()
        }
        .encode(&mut out);
    }
    let mut annotations = Vec::new();
    if rng.chance(300) {
        annotations.push((Value::Symbol(Symbol::new("x-opt-mine")), Value::Ulong(id)));
    }
    if let Some(due) = wish.due {
        let key = Value::Symbol(Symbol::new("x-opt-scheduled-enqueue-time"));
        annotations.push((key, Value::Timestamp(due as i64)));
    }
    if !annotations.is_empty() {
        encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
    }
    let properties = Properties {
        message_id: Some(Value::Ulong(wish.key.unwrap_or(id))),
        subject: Some("sim".to_owned()),
        group_id: Session::of(id).map(Session::name),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let own = [(Value::String("id".to_owned()), Value::Ulong(id))];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &own);
    let mut body = rng.bytes(size);
    body.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0x00, 0x53, 0x75]);
    encode::binary(&mut out, &body);
    out.freeze()
}

/// Whose payload this is.
#[must_use]
pub fn id_of(payload: &[u8]) -> Option<MessageId> {
    let tail = payload.len().checked_sub(8)?;
    Some(u64::from_be_bytes(payload[tail..].try_into().ok()?))
}

/// Whether `received` carries the bare message of `sent`. Where the broker may change the
/// properties or application properties (a finite time to live, a modification), only what is left
/// is compared. (Invariant I12)
#[must_use]
pub fn same_bare(sent: &[u8], received: &[u8], has_ttl: bool, changed: bool) -> bool {
    let (Ok(theirs), Ok(ours)) = (Sections::scan(sent), Sections::scan(received)) else {
        return false;
    };
    sent[theirs.body] == received[ours.body]
        && (has_ttl || sent[theirs.properties] == received[ours.properties])
        && (changed || sent[theirs.application_properties] == received[ours.application_properties])
}
