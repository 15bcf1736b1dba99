//! A client of the management pair.

use amqp::message::{Properties, Sections};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, Map, Value, decode, encode, items};
use bytes::{Bytes, BytesMut};
use endpoint::LinkId;

use crate::client_frames::{receiver, sender, target};
use crate::world::World;

/// An open management pair.
pub struct Management {
    pub requests: LinkId,
    pub responses: LinkId,
}

/// A half of the pair as clients attach it.
pub fn half(attach: Attach) -> Attach {
    Attach {
        name: "management-link-pair".to_owned(),
        snd_settle_mode: Some(SenderSettleMode::Settled),
        rcv_settle_mode: None,
        properties: Some(vec![(Value::Symbol("paired".into()), Value::Bool(true))]),
        ..attach
    }
}

/// The client's half.
pub fn requests() -> Attach {
    half(sender("/management"))
}

/// The server's half.
pub fn responses() -> Attach {
    let mut attach = half(receiver("/management", SenderSettleMode::Settled));
    attach.target = Some(Box::new(target(Some("/management"))));
    attach
}

pub fn open(world: &mut World) -> Management {
    let session = world.session();
    let requests = world.attach(session, requests());
    let responses = world.attach(session, responses());
    world.credit(responses, 100, false);
    Management {
        requests,
        responses,
    }
}

/// A request with its body before its properties, as some clients write it.
pub fn request(method: &str, to: &str, body: Option<&Value>, body_first: bool) -> Bytes {
    let mut properties = BytesMut::new();
    Properties {
        message_id: Some(Value::Uuid([7; 16])),
        to: Some(Value::from(to)),
        subject: Some(method.to_owned()),
        reply_to: Some(Value::from("$me")),
        ..Properties::default()
    }
    .encode(&mut properties);
    let mut out = BytesMut::new();
    encode::descriptor(&mut out, 0x77);
    encode::value(&mut out, body.unwrap_or(&Value::Null));
    let pieces = match body_first {
        true => [out, properties],
        false => [properties, out],
    };
    Bytes::from(pieces.concat())
}

impl Management {
    /// Sends a request; returns the status and the body of its response.
    pub fn call(
        &self,
        world: &mut World,
        method: &str,
        to: &str,
        body: Option<&Value>,
    ) -> (String, Value) {
        world.send_as(
            self.requests,
            0,
            true,
            &request(method, to, body, body.is_none()),
        );
        let mut answers = world.received(self.responses);
        let answer = answers.pop().expect("there is a response");
        assert!(answer.settled && answers.is_empty());
        read(&answer.payload)
    }

    /// Declares a queue with arguments.
    pub fn declare(
        &self,
        world: &mut World,
        queue: &str,
        arguments: &[(&str, Value)],
    ) -> (String, Value) {
        let body = map(&[("arguments", map(arguments))]);
        self.call(world, "PUT", &format!("/queues/{queue}"), Some(&body))
    }
}

/// The status and the body of a response to a request of [`request`].
fn read(payload: &Bytes) -> (String, Value) {
    let sections = Sections::scan(payload).expect("a message");
    let properties = Properties::decode(&payload.slice(sections.properties.clone()));
    let properties = properties.expect("properties");
    assert_eq!(properties.correlation_id, Some(Value::Uuid([7; 16])));
    let body = payload.slice(sections.body);
    let value = items::undescribed(&body).expect("an amqp-value");
    let value = decode::value(&body.slice_ref(value)).expect("a value");
    (properties.subject.expect("a status"), value)
}

/// A map with strings for keys.
pub fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries.iter();
    let entries = entries.map(|(key, value)| (Value::from(*key), value.clone()));
    Value::Map(entries.collect::<Map>())
}

/// The entry of a map.
pub fn entry<'a>(map: &'a Value, key: &str) -> &'a Value {
    let map = map.as_map().expect("a map");
    amqp::value::lookup(map, key).expect("the key is there")
}
