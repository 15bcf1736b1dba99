//! Nodes that answer requests: `$cbs` takes tokens, `$management` browses messages.
//! (docs/spec/amqp.md#2.4, #7)

use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::{Map, Role, Source, Value, value::lookup};
use bytes::{Bytes, BytesMut};
use endpoint::Event;

use super::Error;
use super::client::{Client, source, target};

/// Where answers are sent to.
const REPLY_TO: &str = "railbus-answers";
/// Most messages of one answer. (docs/spec/entities.md#13)
const PAGE: u32 = 250;
/// The descriptor of a body that is a value. [AMQP 3.2.8]
const VALUE: u8 = 0x77;

/// What came back.
struct Response {
    code: i64,
    description: String,
    body: Bytes,
}

impl Client {
    /// Gives the broker a token for an audience, which is an entity's.
    pub async fn put_token(
        &mut self,
        entity: &str,
        audience: &str,
        token: &str,
    ) -> Result<(), Error> {
        let properties = [
            ("operation", "put-token"),
            ("type", "servicebus.windows.net:sastoken"),
            ("name", audience),
        ];
        let answer = self.ask("$cbs", &properties, &Value::from(token)).await?;
        match answer.code {
            200..300 => Ok(()),
            code => Err(Error::Request {
                what: format!("access to {entity}"),
                code,
                reason: answer.description,
            }),
        }
    }

    /// Messages of `address` from a sequence number on, as they would be received.
    pub async fn peek(
        &mut self,
        address: &str,
        from: u64,
        count: u32,
    ) -> Result<Vec<Bytes>, Error> {
        let node = format!("{address}/$management");
        let properties = [("operation", "com.microsoft:peek-message")];
        let (mut from, mut found) = (from, Vec::new());
        while let Some(left) = count.checked_sub(u32::try_from(found.len()).unwrap_or(count))
            && left > 0
        {
            let body = Value::Map(vec![
                (
                    Value::from("from-sequence-number"),
                    Value::Long(i64::try_from(from).unwrap_or(i64::MAX)),
                ),
                (
                    Value::from("message-count"),
                    Value::Int(i32::try_from(left.min(PAGE)).unwrap_or(1)),
                ),
            ]);
            let answer = self.ask(&node, &properties, &body).await?;
            let page = match answer.code {
                200 => messages(&answer.body)?,
                204 => Vec::new(),
                code => {
                    return Err(Error::Request {
                        what: format!("a look at {address}"),
                        code,
                        reason: answer.description,
                    });
                }
            };
            let Some(last) = page.last().and_then(server::messages::sequence_number) else {
                break;
            };
            from = last.saturating_add(1);
            found.extend(page);
        }
        Ok(found)
    }

    /// Asks a node one question over links of its own.
    async fn ask(
        &mut self,
        node: &str,
        properties: &[(&str, &str)],
        body: &Value,
    ) -> Result<Response, Error> {
        let requests = self.link(Role::Sender, Source::default(), target(node));
        let answers = self.link(Role::Receiver, source(node), target(REPLY_TO));
        let requests = self.attach(requests, node).await?;
        let answers = self.attach(answers, node).await?;
        self.credit(answers, 1, false);
        self.send(requests, u128::MAX, &request(properties, body))
            .await?;
        let (session, delivery_id, payload) = self
            .answer(node, |event| match event {
                Event::Delivery {
                    link,
                    session,
                    delivery_id,
                    payload,
                    ..
                } if *link == answers => Some(Ok((*session, *delivery_id, payload.clone()))),
                Event::Detached { link, error, .. } if *link == answers || *link == requests => {
                    Some(Err(super::client::refused(node, error.as_ref())))
                }
                _ => None,
            })
            .await?;
        self.accept(session, delivery_id);
        self.detach(requests);
        self.detach(answers);
        read(&payload)
    }
}

fn request(properties: &[(&str, &str)], body: &Value) -> Bytes {
    let mut out = BytesMut::new();
    Properties {
        message_id: Some(Value::Ulong(1)),
        reply_to: Some(Value::from(REPLY_TO)),
        ..Properties::default()
    }
    .encode(&mut out);
    let properties = properties.iter();
    let properties: Map = properties
        .map(|(name, value)| (Value::from(*name), Value::from(*value)))
        .collect();
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
    amqp::encode::descriptor(&mut out, VALUE);
    amqp::encode::value(&mut out, body);
    out.freeze()
}

/// Both nodes' answers, which call the same things differently.
fn read(payload: &Bytes) -> Result<Response, Error> {
    let sections = Sections::scan(payload)?;
    let fields = decode_map_section(&payload.slice(sections.application_properties))?;
    let either = |one: &str, other: &str| {
        let found = lookup(&fields, one).or_else(|| lookup(&fields, other));
        found.cloned()
    };
    let code = either("statusCode", "status-code").and_then(|code| code.as_integer());
    let description = either("statusDescription", "status-description");
    let description = description.as_ref().and_then(Value::as_text);
    Ok(Response {
        code: code.unwrap_or_default(),
        description: description.unwrap_or_default().to_owned(),
        body: payload.slice(sections.body),
    })
}

/// The encoded messages that an answer holds.
fn messages(body: &Bytes) -> Result<Vec<Bytes>, Error> {
    let Value::Described(body) = amqp::decode::value(body)? else {
        return Ok(Vec::new());
    };
    let list = body.1.as_map().and_then(|map| lookup(map, "messages"));
    let Some(Value::List(list)) = list else {
        return Ok(Vec::new());
    };
    let payloads = list
        .iter()
        .filter_map(|entry| match lookup(entry.as_map()?, "message")? {
            Value::Binary(payload) => Some(payload.clone()),
            _ => None,
        });
    Ok(payloads.collect())
}
