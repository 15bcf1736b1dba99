//! Attach reply: the attach that accepts a link. (docs/spec/amqp.md#3.2, #3.3; rules 4 to 7)
//!
//! Client libraries compare the reply with what they sent, so every field is returned as it was
//! received. Only filters that are not applied are left out.

use amqp::{Attach, Map, Role, Source, Symbol, Value};

const MAX_BATCH_SIZE: Symbol = Symbol::new("com.microsoft:max-message-batch-size");

/// The reply repeats every field of the attach, without filters that are not applied.
/// (docs/spec/amqp.md#3.5; rules 4 to 7)
///
/// A sender gets `max_message_size`, a receiver gets none: a client library would apply it to the
/// messages that it receives, which are larger than those that were sent. (docs/spec/amqp.md#3.3)
pub(crate) fn reply(attach: &Attach, max_message_size: u64) -> Attach {
    let role = match attach.role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    };
    Attach {
        name: attach.name.clone(),
        handle: attach.handle,
        role,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        source: attach
            .source
            .as_deref()
            .map(|source| Box::new(without_filter(source))),
        target: attach.target.clone(),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: (role == Role::Receiver).then_some(max_message_size),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: attach.properties.clone(),
    }
}

fn without_filter(source: &Source) -> Source {
    Source {
        filter: None,
        ..source.clone()
    }
}

/// Adds the largest size of a batch, which several SDKs read. (docs/spec/amqp.md#3.2)
pub(crate) fn announce_batch_size(properties: &mut Map, size: u64) {
    properties.retain(|(key, _)| key.as_text() != Some(MAX_BATCH_SIZE.as_str()));
    properties.push((Value::Symbol(MAX_BATCH_SIZE), Value::Ulong(size)));
}
