//! Asking: requests to a queue's management node and what comes back, one at a time.

use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Map, Role, Source, Target, TargetTerminus, Value};
use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use endpoint::{Connection, LinkId, Outgoing, SessionId};

/// Where answers are sent to.
const REPLY_TO: &str = "bench-answers";
/// Answers that may be on their way.
const CREDIT: u32 = 10;

/// A request and a response link.
pub struct Asking {
    node: String,
    requests: Option<LinkId>,
    answers: Option<LinkId>,
    waiting: bool,
}

/// What came back.
pub struct Answer {
    /// 200 for most that went well.
    pub code: i32,
    /// What it says besides.
    pub fields: Map,
    body: Bytes,
}

impl Asking {
    /// Of `queue`'s node, without links.
    pub fn new(queue: &str) -> Self {
        Self {
            node: format!("{queue}/$management"),
            requests: None,
            answers: None,
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
        let answers = link("bench-answers", Role::Receiver, source, target);
        self.requests = Some(engine.attach(session, requests));
        self.answers = Some(engine.attach(session, answers));
    }

    /// Its links, once asked for.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.requests.into_iter().chain(self.answers)
    }

    /// Whether `link` is the one over which answers come.
    pub fn is_answered_by(&self, link: LinkId) -> bool {
        self.answers == Some(link)
    }

    /// Lets answers come.
    pub fn start(&self, engine: &mut Connection) {
        if let Some(answers) = self.answers {
            engine.set_credit(answers, CREDIT, false);
        }
    }

    /// Whether an answer is on its way.
    pub fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// Asks, if there is credit for it. Says whether there was.
    pub fn ask(
        &mut self,
        operation: &str,
        body: &[(Value, Value)],
        engine: &mut Connection,
    ) -> bool {
        let outgoing = Outgoing {
            tag: b"request",
            settled: true,
            ..Outgoing::default()
        };
        let request = request(operation, body);
        let asked = self.requests.is_some_and(|link| {
            let asked = engine.send(link, &outgoing, &[&request]);
            asked.is_ok()
        });
        self.waiting |= asked;
        asked
    }

    /// Takes the answer.
    pub fn answered(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        payload: &Bytes,
        engine: &mut Connection,
    ) -> Result<Answer> {
        engine.dispose_received(session, delivery_id, DeliveryState::Accepted, true);
        self.start(engine);
        self.waiting = false;
        let sections = Sections::scan(payload)?;
        let fields = decode_map_section(&payload.slice(sections.application_properties))?;
        let Some(Value::Int(code)) = amqp::value::lookup(&fields, "statusCode") else {
            bail!("an answer without a code: {fields:?}");
        };
        Ok(Answer {
            code: *code,
            fields,
            body: payload.slice(sections.body),
        })
    }
}

impl Answer {
    /// One entry of the map in its body.
    pub fn entry(mut self, key: &str) -> Result<Option<Value>> {
        let Value::Described(body) = amqp::decode::take_value(&mut self.body)? else {
            bail!("an answer without a body");
        };
        let entry = body
            .1
            .as_map()
            .and_then(|map| amqp::value::lookup(map, key));
        Ok(entry.cloned())
    }
}

fn request(operation: &str, body: &[(Value, Value)]) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::Ulong(1)),
        reply_to: Some(Value::from(REPLY_TO)),
        ..Properties::default()
    };
    properties.encode(&mut out);
    encode_map_section(
        &mut out,
        descriptor::APPLICATION_PROPERTIES,
        &[(Value::from("operation"), Value::from(operation))],
    );
    amqp::encode::descriptor(&mut out, 0x77);
    amqp::encode::map(&mut out, body);
    out.freeze()
}

fn link(name: &str, role: Role, source: Source, target: Target) -> Attach {
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
