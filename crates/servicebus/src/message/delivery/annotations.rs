//! Annotations: the annotations of the sender and of the broker on a delivery.
//! (docs/spec/amqp.md#4.2)
//!
//! The sender's entries are passed on, except those that only the broker may set. The broker adds
//! the annotations that the view of the message requires and no others, because clients take each
//! of them for a fact.

use amqp::encode;
use broker::{Browsed, GIVEN_ID, LockToken};
use bytes::{BufMut, BytesMut};

use super::{Lock, LockedUntil, View, signed};
use amqp::items;

/// The broker's entries: each key encoded, with the format code of its value.
const LOCK_TOKEN: &[u8] = b"\xa3\x10x-opt-lock-token\x98";
const ENQUEUED_TIME: &[u8] = b"\xa3\x13x-opt-enqueued-time\x83";
const SEQUENCE_NUMBER: &[u8] = b"\xa3\x15x-opt-sequence-number\x81";
const ENQUEUE_SEQUENCE_NUMBER: &[u8] = b"\xa3\x1dx-opt-enqueue-sequence-number\x81";
const LOCKED_UNTIL: &[u8] = b"\xa3\x12x-opt-locked-until\x83";
const DEADLETTER_SOURCE: &[u8] = b"\xa3\x17x-opt-deadletter-source";
const MESSAGE_STATE: &[u8] = b"\xa3\x13x-opt-message-state\x54";

/// The state of a message that a schedule made available, as deliveries tell it.
const ACTIVATED: i8 = 2;

/// The name of the one delivery annotation that the broker sets.
const LOCK_TOKEN_NAME: &str = "x-opt-lock-token";

/// Message annotations of a sender that are not passed on: only the broker sets them.
const OWN: [&str; 9] = [
    GIVEN_ID,
    "x-opt-enqueued-time",
    "x-opt-sequence-number",
    "x-opt-enqueue-sequence-number",
    "x-opt-locked-until",
    "x-opt-message-state",
    LOCK_TOKEN_NAME,
    "x-opt-deadletter-source",
    "x-opt-partition-id",
];

/// Writes the sender's delivery annotations and the lock's token, or nothing if there are none.
pub(super) fn write_delivery(head: &mut BytesMut, view: View, section: &[u8]) {
    let token = match view {
        View::Link(lock) | View::Deferred(lock) => lock.map(|lock| lock.token),
        View::Peek(_) => None,
    };
    match token {
        Some(token) if section.is_empty() => write_token_alone(head, token),
        _ if section.is_empty() => {}
        token => {
            encode::descriptor(head, 0x71);
            let start = encode::map32_begin(head);
            let mut entries = items::copy_entries(head, section, |key, _| key == LOCK_TOKEN_NAME);
            if let Some(token) = token {
                write_token(head, token);
                entries += 1;
            }
            encode::map32_finish(head, start, entries);
        }
    }
}

/// One entry of known size: a map8 of key, format code and 16 bytes.
fn write_token_alone(head: &mut BytesMut, token: LockToken) {
    let size = u8::try_from(1 + LOCK_TOKEN.len() + 16).expect("a short key");
    encode::descriptor(head, 0x71);
    head.extend_from_slice(&[0xc1, size, 2]);
    write_token(head, token);
}

fn write_token(head: &mut BytesMut, token: LockToken) {
    head.extend_from_slice(LOCK_TOKEN);
    head.put_u128(token.0);
}

/// Writes the sender's own message annotations, then the broker's. Returns the id that the broker
/// gave the message, encoded, if that stands among them.
pub(super) fn write_message<'a>(
    head: &mut BytesMut,
    message: &Browsed,
    view: View,
    section: &'a [u8],
) -> Option<&'a [u8]> {
    let mut given_id = None;
    encode::descriptor(head, 0x72);
    let start = encode::map32_begin(head);
    let mut entries = items::copy_entries(head, section, |key, value| {
        if key == GIVEN_ID {
            given_id = Some(value);
        }
        OWN.contains(&key)
    });
    let forwarded = message
        .was_forwarded
        .then(|| signed(message.enqueued_number.0));
    let times_and_numbers = [
        (ENQUEUED_TIME, Some(signed(message.enqueued.0))),
        (SEQUENCE_NUMBER, Some(signed(message.number.0))),
        (ENQUEUE_SEQUENCE_NUMBER, forwarded),
        (LOCKED_UNTIL, locked_until(view).map(|until| until.0)),
    ];
    for (key, value) in times_and_numbers {
        if let Some(value) = value {
            head.extend_from_slice(key);
            head.put_i64(value);
            entries += 1;
        }
    }
    if let Some(source) = message.dead_letter_source() {
        head.extend_from_slice(DEADLETTER_SOURCE);
        encode::string(head, &source.to_lowercase());
        entries += 1;
    }
    if let Some(state) = state(message, view) {
        head.extend_from_slice(MESSAGE_STATE);
        head.put_i8(state);
        entries += 1;
    }
    encode::map32_finish(head, start, entries);
    given_id
}

fn locked_until(view: View) -> Option<LockedUntil> {
    match view {
        View::Link(lock) | View::Deferred(lock) => lock.map(|Lock { until, .. }| until),
        View::Peek(until) => Some(until),
    }
}

/// A delivery has no state except that of a scheduled message; other views always have one.
fn state(message: &Browsed, view: View) -> Option<i8> {
    match view {
        View::Link(_) => message.was_scheduled.then_some(ACTIVATED),
        View::Deferred(_) | View::Peek(_) => Some(message.state as i8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_key_has_the_length_it_says() {
        for key in [
            LOCK_TOKEN,
            ENQUEUED_TIME,
            SEQUENCE_NUMBER,
            ENQUEUE_SEQUENCE_NUMBER,
            LOCKED_UNTIL,
            MESSAGE_STATE,
        ] {
            assert_eq!(usize::from(key[1]), key.len() - 3);
            let name = std::str::from_utf8(&key[2..key.len() - 1]).expect("text");
            assert!(
                OWN.contains(&name),
                "{name} must not be taken from the sender"
            );
        }
    }
}
