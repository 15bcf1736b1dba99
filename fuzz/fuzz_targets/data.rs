//! Messages over HTTP: any request that sends is refused for a client's fault, or becomes messages
//! that can be shown again; and whatever bytes a message has, it can be shown.

#![no_main]

use admin::data;
use broker::{Browsed, MessageState, Wall};
use bytes::Bytes;
use http::{HeaderValue, Request};
use libfuzzer_sys::fuzz_target;

// A byte for the content type, then the header BrokerProperties up to a byte that none has, then
// the body.
fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    show(Bytes::copy_from_slice(rest));
    let end = rest
        .iter()
        .position(|byte| *byte == 0xff)
        .unwrap_or(rest.len());
    let (header, body) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let mut request = Request::new(Bytes::copy_from_slice(body));
    if let Ok(header) = HeaderValue::from_bytes(header) {
        request.headers_mut().insert("x-property", header.clone());
        request.headers_mut().insert("brokerproperties", header);
    }
    if kind & 1 != 0 {
        let batch = HeaderValue::from_static("application/vnd.microsoft.servicebus.json");
        request.headers_mut().insert("content-type", batch);
    }
    match data::messages(&request, Wall(0)) {
        Ok(messages) => messages.into_iter().for_each(show),
        Err(error) => assert!(error.status.is_client_error(), "{error:?}"),
    }
});

fn show(payload: Bytes) {
    let message = Browsed {
        entity: store::EntityId(1),
        number: store::SequenceNumber(1),
        enqueued_number: store::SequenceNumber(1),
        was_forwarded: false,
        was_scheduled: false,
        lock: None,
        enqueued: Wall(0),
        ttl_ms: None,
        expires: None,
        acquired_count: 0,
        delivery_count: 0,
        state: MessageState::Active,
        payload,
        additions: None,
    };
    let (headers, _) = data::received(&message, None);
    assert!(headers.contains_key("brokerproperties"));
}
