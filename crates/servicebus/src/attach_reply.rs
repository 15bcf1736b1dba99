//! Echo: the reply to an attach that is let in. (docs/spec/amqp.md#3.2, #3.3; rules 4 to 7)
//!
//! Client libraries compare what comes back with what they sent, so everything is echoed as it
//! came, whatever we made of it; only filters that are not applied are left out.

use amqp::{Attach, Map, Role, Source, Symbol, Value};

const MAX_BATCH_SIZE: Symbol = Symbol::new("com.microsoft:max-message-batch-size");

/// The echo: everything as it came, but no filter that is not applied. (docs/spec/amqp.md#3.5; rules 4 to 7)
///
/// `max_message_size` is told to those who send. Those who receive are told none: a client library
/// would apply it to what it receives, which is larger than what was sent. (docs/spec/amqp.md#3.3)
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

/// Tells senders how large a batch may be; several SDKs read it. (docs/spec/amqp.md#3.2)
pub(crate) fn announce_batch_size(properties: &mut Map, size: u64) {
    properties.retain(|(key, _)| key.as_text() != Some(MAX_BATCH_SIZE.as_str()));
    properties.push((Value::Symbol(MAX_BATCH_SIZE), Value::Ulong(size)));
}
