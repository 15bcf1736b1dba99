//! Request client: sends requests to a node such as a queue's `$management`, one at a time.

use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Map, Role, Source, Target, TargetTerminus, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Connection, LinkId, Outgoing, SessionId};

use crate::Error;

/// The address of responses.
const REPLY_TO: &str = "bench-answers";
/// Answers that may be on their way.
const CREDIT: u32 = 10;

/// A request and a response link.
pub struct RequestClient {
    node: String,
    requests: Option<LinkId>,
    responses: Option<LinkId>,
    waiting: bool,
}

/// A response.
pub struct Response {
    /// 200 for most that went well.
    pub code: i32,
    /// Its application properties.
    pub fields: Map,
    body: Bytes,
}

impl RequestClient {
    /// Of `queue`'s management node, without links.
    pub fn new(queue: &str) -> Self {
        Self::of_node(&format!("{queue}/$management"))
    }

    /// Of the node at an address, without links.
    pub fn of_node(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            requests: None,
            responses: None,
            waiting: false,
        }
    }

    /// Asks for both links.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let address = |address: &str| Some(Value::from(address));
        let requests = Target {
            address: address(&self.node),
            ..Target::default()
        };
        let requests = link("bench-requests", Role::Sender, Source::default(), requests);
        let source = Source {
            address: address(&self.node),
            ..Source::default()
        };
        let target = Target {
            address: address(REPLY_TO),
            ..Target::default()
        };
        let responses = link("bench-answers", Role::Receiver, source, target);
        self.requests = Some(engine.attach(session, requests));
        self.responses = Some(engine.attach(session, responses));
    }

    /// Its links, once asked for.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.requests.into_iter().chain(self.responses)
    }

    /// Whether `link` is the one over which answers come.
    pub fn is_response_link(&self, link: LinkId) -> bool {
        self.responses == Some(link)
    }

    /// Lets answers come.
    pub fn start(&self, engine: &mut Connection) {
        if let Some(responses) = self.responses {
            engine.set_credit(responses, CREDIT, false);
        }
    }

    /// Whether an answer is on its way.
    pub fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// Asks, if there is credit for it. Says whether there was.
    pub fn request(
        &mut self,
        operation: &str,
        body: &[(Value, Value)],
        engine: &mut Connection,
    ) -> bool {
        let mut encoded = BytesMut::new();
        amqp::encode::map(&mut encoded, body);
        self.send_request(&[("operation", operation)], &encoded, engine)
    }

    /// The same with application properties of one's own and any value as the body.
    pub fn put(
        &mut self,
        properties: &[(&str, &str)],
        body: &Value,
        engine: &mut Connection,
    ) -> bool {
        let mut encoded = BytesMut::new();
        amqp::encode::value(&mut encoded, body);
        self.send_request(properties, &encoded, engine)
    }

    fn send_request(
        &mut self,
        properties: &[(&str, &str)],
        body: &[u8],
        engine: &mut Connection,
    ) -> bool {
        let outgoing = Outgoing {
            tag: b"request",
            settled: true,
            ..Outgoing::default()
        };
        let request = request(properties, body);
        let requested = self.requests.is_some_and(|link| {
            let requested = engine.send(link, &outgoing, &[&request]);
            requested.is_ok()
        });
        self.waiting |= requested;
        requested
    }

    /// Takes the answer.
    pub fn handle_response(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        payload: &Bytes,
        engine: &mut Connection,
    ) -> Result<Response, Error> {
        engine.dispose_received(session, delivery_id, DeliveryState::Accepted, true);
        self.start(engine);
        self.waiting = false;
        let sections = Sections::scan(payload)?;
        let fields = decode_map_section(&payload.slice(sections.application_properties))?;
        let code = either(&fields, ["statusCode", "status-code"]).and_then(Value::as_integer);
        let code = code.and_then(|code| i32::try_from(code).ok());
        Ok(Response {
            code: code.ok_or(Error::NoCode)?,
            fields,
            body: payload.slice(sections.body),
        })
    }
}

impl Response {
    /// One entry of the map in its body.
    pub fn entry(mut self, key: &str) -> Result<Option<Value>, Error> {
        let Value::Described(body) = amqp::decode::take_value(&mut self.body)? else {
            return Ok(None);
        };
        let entry = body
            .1
            .as_map()
            .and_then(|map| amqp::value::lookup(map, key));
        Ok(entry.cloned())
    }

    /// The description of its code.
    pub fn description(&self) -> &str {
        let found = either(&self.fields, ["statusDescription", "status-description"]);
        found.and_then(Value::as_text).unwrap_or_default()
    }
}

/// The nodes call the same things differently.
fn either<'a>(fields: &'a Map, names: [&str; 2]) -> Option<&'a Value> {
    let mut found = names
        .iter()
        .filter_map(|name| amqp::value::lookup(fields, name));
    found.next()
}

fn request(properties: &[(&str, &str)], body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    let entries: Map = properties
        .iter()
        .map(|(name, value)| (Value::from(*name), Value::from(*value)))
        .collect();
    let properties = Properties {
        message_id: Some(Value::Ulong(1)),
        reply_to: Some(Value::from(REPLY_TO)),
        ..Properties::default()
    };
    properties.encode(&mut out);
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &entries);
    amqp::encode::descriptor(&mut out, 0x77);
    out.extend_from_slice(body);
    out.freeze()
}

/// An attach of a link between two addresses, as most links are.
pub fn link(name: &str, role: Role, source: Source, target: Target) -> Attach {
    Attach {
        name: name.to_owned(),
        handle: 0,
        role,
        snd_settle_mode: Some(SenderSettleMode::Mixed),
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        source: Some(Box::new(source)),
        target: Some(Box::new(TargetTerminus::Node(target))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: None,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}
