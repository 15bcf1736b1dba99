//! Client frames: the attaches, messages, requests and tokens of the test client.

use std::sync::Arc;

use access::{AccessRule, AccessRules, Rights, Secret};
use amqp::message::{Sections, descriptor, encode_map_section};
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{
    Attach, DeliveryState, Map, Performative, Role, Source, Target, TargetTerminus, Transfer,
    Value, frame,
};
use bytes::{Bytes, BytesMut};
use endpoint::LinkId;

use crate::world::{KEY, LISTEN_KEY, SEND_KEY, START};

/// A pair of links to a node.
pub struct Pair {
    pub request: LinkId,
    pub response: LinkId,
}

/// A request in the making.
#[derive(Clone)]
pub struct Request {
    pub message_id: Option<Value>,
    pub reply_to: Option<&'static str>,
    pub properties: Map,
    pub body: Value,
}

impl Request {
    pub fn operation(operation: &str, body: Vec<(&str, Value)>) -> Self {
        Self {
            message_id: Some(Value::Ulong(1)),
            reply_to: Some("reply-here"),
            properties: vec![(Value::from("operation"), Value::from(operation))],
            body: Value::Map(
                body.into_iter()
                    .map(|(key, value)| (Value::from(key), value))
                    .collect(),
            ),
        }
    }

    pub fn put_token(audience: &str, token: &str) -> Self {
        let properties = [
            ("operation", "put-token"),
            ("type", "servicebus.windows.net:sastoken"),
            ("name", audience),
        ];
        Self {
            message_id: Some(Value::Ulong(1)),
            reply_to: Some("reply-here"),
            properties: properties
                .map(|(key, value)| (Value::from(key), Value::from(value)))
                .to_vec(),
            body: Value::from(token),
        }
    }

    /// With the body first and the properties last.
    pub fn encode_backwards(&self) -> Bytes {
        let ordered = self.encode();
        let sections = Sections::scan(&ordered).expect("a message");
        let body = &ordered[sections.body];
        let application = &ordered[sections.application_properties];
        Bytes::from([body, application, &ordered[sections.properties]].concat())
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        let properties = amqp::message::Properties {
            message_id: self.message_id.clone(),
            reply_to: self.reply_to.map(Value::from),
            ..Default::default()
        };
        properties.encode(&mut out);
        encode_map_section(
            &mut out,
            descriptor::APPLICATION_PROPERTIES,
            &self.properties,
        );
        amqp::encode::descriptor(&mut out, 0x77);
        amqp::encode::value(&mut out, &self.body);
        out.freeze()
    }
}

pub fn target(address: Option<&str>) -> TargetTerminus {
    TargetTerminus::Node(Target {
        address: address.map(Value::from),
        ..Target::default()
    })
}

fn blank(role: Role) -> Attach {
    Attach {
        name: String::new(),
        handle: 0,
        role,
        snd_settle_mode: None,
        rcv_settle_mode: None,
        source: Some(Box::default()),
        target: Some(Box::new(target(None))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: None,
        max_message_size: None,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

/// A sender as most SDKs attach it.
pub fn sender(address: &str) -> Attach {
    Attach {
        name: format!("sender of {address}"),
        target: Some(Box::new(target(Some(address)))),
        source: Some(Box::new(Source {
            address: Some(Value::from("client-side")),
            ..Source::default()
        })),
        initial_delivery_count: Some(0),
        ..blank(Role::Sender)
    }
}

/// A receiver as most SDKs attach it: `Settled` for receive-and-delete.
pub fn receiver(address: &str, mode: SenderSettleMode) -> Attach {
    Attach {
        name: format!("receiver of {address}"),
        source: Some(Box::new(Source {
            address: Some(Value::from(address)),
            ..Source::default()
        })),
        target: Some(Box::new(target(Some("client-side")))),
        snd_settle_mode: Some(mode),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        ..blank(Role::Receiver)
    }
}

/// A message with one data section.
pub fn message(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, text.as_bytes());
    out.freeze()
}

/// A token for `resource` under a key, valid until `seconds` seconds after the start.
pub fn token(resource: &str, name: &str, key: &str, seconds: u64) -> String {
    use base64::Engine as _;
    use hmac::Mac as _;
    let expiry = START / 1_000 + seconds;
    let resource =
        percent_encoding::utf8_percent_encode(resource, percent_encoding::NON_ALPHANUMERIC)
            .to_string();
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).expect("any length");
    mac.update(format!("{resource}\n{expiry}").as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    let signature =
        percent_encoding::utf8_percent_encode(&signature, percent_encoding::NON_ALPHANUMERIC);
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}")
}

/// The rules of every world.
pub fn rules() -> AccessRules {
    let rule = |name: &str, key: &str, rights| AccessRule {
        name: name.to_owned(),
        primary: Secret::new(key.to_owned()),
        secondary: None,
        rights,
        entity: None,
    };
    AccessRules {
        anonymous: Rights::NONE,
        is_development: false,
        rules: vec![
            rule("root", KEY, Rights::ALL),
            rule(
                "sender",
                SEND_KEY,
                Rights {
                    send: true,
                    ..Rights::NONE
                },
            ),
            rule(
                "listener",
                LISTEN_KEY,
                Rights {
                    listen: true,
                    ..Rights::NONE
                },
            ),
        ],
        issuers: Vec::new(),
        certificates: Vec::new(),
        host_names: Arc::default(),
        namespace: None,
    }
}

/// A frame of a settled delivery on the first channel, for a link that has no credit: the client's
/// endpoint would wait for some.
pub fn transfer(
    handle: u32,
    id: u32,
    state: Option<DeliveryState>,
    more: bool,
    payload: &[u8],
) -> BytesMut {
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, frame::FrameType::Amqp, 0);
    let transfer = Transfer {
        handle,
        delivery_id: Some(id),
        delivery_tag: Some(Bytes::from_static(b"t")),
        message_format: Some(0),
        settled: Some(true),
        state,
        more,
        ..Transfer::default()
    };
    Performative::Transfer(transfer).encode(&mut bytes);
    bytes.extend_from_slice(payload);
    frame::finish(&mut bytes, start);
    bytes
}
