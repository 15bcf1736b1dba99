//! Message: what simulated clients send, so that every copy can be told and checked.
//!
//! The last eight bytes of an encoded message are its id, so a check that sees a payload knows what
//! it is without decoding it; the id and a random filling are all of the body. The id tells its
//! session, and its number `n` by which rules select. A copy that a subscription has taken has a
//! name of its own besides, which tells of what it is a copy.

use amqp::encode;
use amqp::message::{
    Header, Properties, Sections, decode_map_section, descriptor, encode_map_section,
};
use amqp::value::lookup;
use amqp::{Symbol, Value};
use broker::Now;
use bytes::{Bytes, BytesMut};

use crate::rng::Rng;
use crate::rule;
use crate::session::Session;

/// Names one message of a run: its session in the upper 16 bits, then which copy it is (none if it
/// is as it was sent), then a count in the lower 32.
pub type MessageId = u64;

/// Bits of a message id below the number of its copy.
const COPY_SHIFT: u32 = 32;
const COPIES: u64 = 0xffff << COPY_SHIFT;
/// Bits of a message id's count below the index of its namespace.
pub const NAMESPACE_SHIFT: u32 = 28;

/// What was sent, of which `id` may be a copy.
#[must_use]
pub fn root_of(id: MessageId) -> MessageId {
    id & !COPIES
}

/// The name of the `count`th copy, from 1 on, of something sent.
#[must_use]
pub fn name_copy(root: MessageId, count: u16) -> MessageId {
    root_of(root) | u64::from(count) << COPY_SHIFT
}

/// The number `n` with which a message was sent.
#[must_use]
pub fn number_of(id: MessageId) -> i64 {
    ((id & u64::from(u32::MAX)) % rule::NUMBERS) as i64
}

/// The number `n` of a payload, and the rule whose action has made it what it is.
#[must_use]
pub fn marks_of(payload: &Bytes) -> Option<(i64, Option<String>)> {
    let sections = Sections::scan(payload).ok()?;
    let properties = decode_map_section(&payload.slice(sections.application_properties)).ok()?;
    let number = lookup(&properties, "n")?.as_integer()?;
    let rule = lookup(&properties, "RuleName").and_then(Value::as_text);
    Some((number, rule.map(str::to_owned)))
}

/// What a sender asks of the broker for one of its messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SendOptions {
    /// Milliseconds.
    pub ttl: Option<u32>,
    /// When it is to become available, by the wall clock.
    pub due: Option<u64>,
    /// By which it is known to be a duplicate; its own name without one.
    pub key: Option<MessageId>,
    /// It is sent without a message id.
    pub unnamed: bool,
}

impl SendOptions {
    /// Some options for the message named `id`: mostly none at all.
    pub fn any(rng: &mut Rng, id: MessageId, now: Now) -> Self {
        Self {
            ttl: rng.chance(100).then(|| rng.between(1, 20_000) as u32),
            due: rng.chance(150).then(|| any_due(rng, now)),
            key: any_key(rng, id),
            unnamed: false,
        }
    }

    /// The same, without a message id now and then.
    pub fn perhaps_unnamed(self, rng: &mut Rng) -> Self {
        let unnamed = self.key.is_none() && rng.chance(300);
        Self { unnamed, ..self }
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
pub fn build(rng: &mut Rng, id: MessageId, options: SendOptions, size: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(size + 256);
    let priority = priority_of(id);
    if options.ttl.is_some() || rng.chance(300) || priority.is_some() {
        Header {
            durable: Some(true),
            priority,
            ttl: options.ttl,
            ..Header::default()
        }
        .encode(&mut out);
    }
    let mut annotations = Vec::new();
    if rng.chance(300) {
        annotations.push((Value::Symbol(Symbol::new("x-opt-mine")), Value::Ulong(id)));
    }
    if let Some(due) = options.due {
        let key = Value::Symbol(Symbol::new("x-opt-scheduled-enqueue-time"));
        annotations.push((key, Value::Timestamp(due as i64)));
    }
    if !annotations.is_empty() {
        encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
    }
    let properties = Properties {
        message_id: (!options.unnamed).then(|| Value::Ulong(options.key.unwrap_or(id))),
        subject: Some("sim".to_owned()),
        group_id: Session::as_sent(id),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let own = [
        (Value::String("id".to_owned()), Value::Ulong(id)),
        (Value::String("n".to_owned()), Value::Long(number_of(id))),
    ];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &own);
    let mut body = rng.bytes(size);
    body.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0x00, 0x53, 0x75]);
    encode::binary(&mut out, &body);
    out.freeze()
}

/// The priority that the message named `id` is sent with: mostly none.
#[must_use]
pub fn priority_of(id: MessageId) -> Option<u8> {
    root_of(id)
        .is_multiple_of(3)
        .then_some((root_of(id) / 3 % 40) as u8)
}

/// Whose payload this is.
#[must_use]
pub fn id_of(payload: &[u8]) -> Option<MessageId> {
    let tail = payload.len().checked_sub(8)?;
    Some(u64::from_be_bytes(payload[tail..].try_into().ok()?))
}

/// The token of the lock with which a payload was delivered over a link.
#[must_use]
pub fn token_of(payload: &Bytes) -> Option<[u8; 16]> {
    let sections = Sections::scan(payload).ok()?;
    let annotations = decode_map_section(&payload.slice(sections.delivery_annotations)).ok()?;
    match lookup(&annotations, "x-opt-lock-token")? {
        Value::Uuid(token) => Some(*token),
        _ => None,
    }
}

/// The sequence number that a payload was shown with.
#[must_use]
pub fn sequence_number_of(payload: &Bytes) -> Option<u64> {
    let sections = Sections::scan(payload).ok()?;
    let annotations = decode_map_section(&payload.slice(sections.message_annotations)).ok()?;
    let number = lookup(&annotations, "x-opt-sequence-number")?.as_integer()?;
    u64::try_from(number).ok()
}

/// Whether `taken` is what the broker makes of `sent` when it comes in: the same, but with a
/// message id if it came without one. (Invariant I12)
#[must_use]
pub fn is_taken_as(sent: &Bytes, taken: &Bytes) -> bool {
    let (Some(theirs), Some(ours)) = (properties_of(sent), properties_of(taken)) else {
        return false;
    };
    if theirs.message_id.is_some() {
        return sent == taken;
    }
    let has_id = ours.message_id.as_ref().and_then(Value::as_text);
    let has_id = has_id.is_some_and(|id| id.len() == 32);
    let unnamed = Properties {
        message_id: None,
        ..ours
    };
    has_id && unnamed == theirs && same_bare(sent, taken, true, false)
}

/// Whether exactly its time to live, if it has one, lies between the creation and the expiry of
/// `received`. (Invariant I12)
#[must_use]
pub fn tells_its_life(received: &Bytes) -> bool {
    let Ok(sections) = Sections::scan(received) else {
        return false;
    };
    let header = Header::decode(&received[sections.header]).unwrap_or_default();
    let Some(ttl) = header.ttl else {
        return true;
    };
    let times = properties_of(received)
        .and_then(|all| Some((all.creation_time?, all.absolute_expiry_time?)));
    times.is_some_and(|(created, expires)| expires - created == i64::from(ttl))
}

fn properties_of(payload: &Bytes) -> Option<Properties> {
    let sections = Sections::scan(payload).ok()?;
    Properties::decode(&payload.slice(sections.properties)).ok()
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
