//! Node: a request to a management node.

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{Role, Value};
use bytes::BytesMut;
use endpoint::LinkId;

use crate::Peer;

/// Asks a node for something and waits for its answer.
///
/// # Panics
/// When the peer may not attach it.
pub fn request_node(peer: &mut Peer, node: &str, properties: &[(&str, &str)], body: &Value) {
    let answers = ask_node(peer, node, properties, body);
    drop(peer.receive(answers));
}

/// Asks a node for something. Returns the link of its answer.
///
/// # Panics
/// When the peer may not attach it.
#[must_use]
pub fn ask_node(peer: &mut Peer, node: &str, properties: &[(&str, &str)], body: &Value) -> LinkId {
    let answers = peer.try_attach(Role::Receiver, node);
    let answers = answers.expect("the owner may attach it");
    peer.credit(answers, 1);
    let requests = peer.sender(node);
    let mut request = BytesMut::new();
    let head = Properties {
        message_id: Some(Value::Ulong(1)),
        ..Properties::default()
    };
    head.encode(&mut request);
    let properties = properties.iter();
    let properties: Vec<_> = properties
        .map(|&(key, value)| (Value::from(key), Value::from(value)))
        .collect();
    encode_map_section(
        &mut request,
        descriptor::APPLICATION_PROPERTIES,
        &properties,
    );
    amqp::encode::descriptor(&mut request, 0x77);
    amqp::encode::value(&mut request, body);
    peer.send_encoded(requests, &request);
    answers
}
