//! Message list: whole messages inside the body of a management answer. (docs/spec/amqp.md#7.3)
//!
//! `messages` is a list of maps. Each map has the message's sections as one binary, header
//! included, and the lock token if there is one.

use amqp::encode;
use broker::{Browsed, LockToken};
use bytes::{BufMut, BytesMut};

use crate::message::delivery::{self, View};

/// A message to embed.
pub(crate) struct ListedMessage<'a> {
    pub(crate) message: &'a Browsed,
    pub(crate) view: View,
    /// Stands beside the message.
    pub(crate) token: Option<LockToken>,
}

/// Writes the map that holds `messages`.
pub(crate) fn write<'a>(out: &mut BytesMut, messages: impl Iterator<Item = ListedMessage<'a>>) {
    let map = encode::map32_begin(out);
    encode::string(out, "messages");
    let list = encode::list32_begin(out);
    let mut count = 0;
    let mut head = BytesMut::new();
    for message in messages {
        write_entry(out, &message, &mut head);
        count += 1;
    }
    encode::list32_finish(out, list, count);
    encode::map32_finish(out, map, 1);
}

fn write_entry(out: &mut BytesMut, embedded: &ListedMessage<'_>, head: &mut BytesMut) {
    let entry = encode::map32_begin(out);
    if let Some(token) = embedded.token {
        encode::string(out, "lock-token");
        encode::uuid(out, &token.0.to_be_bytes());
    }
    encode::string(out, "message");
    let pieces = delivery::encode(embedded.message, embedded.view, head);
    write_binary(out, &pieces);
    encode::map32_finish(out, entry, 1 + usize::from(embedded.token.is_some()));
}

/// A binary given in pieces.
fn write_binary(out: &mut BytesMut, pieces: &[&[u8]]) {
    let size = pieces.iter().map(|piece| piece.len()).sum::<usize>();
    out.put_u8(0xb0);
    out.put_u32(u32::try_from(size).expect("messages are far smaller than 4 GiB"));
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}
