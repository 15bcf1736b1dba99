//! Raw `$management` requests on one entity's node, and the tests of the operations themselves.

use anyhow::{Context, Result, bail, ensure};
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::message::__private::Deserializable;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Message, MessageId, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use fe2o3_amqp::{Receiver, Sender};
use serde_amqp::Value;
use serde_amqp::primitives::{Array, OrderedMap, Symbol, Uuid};

use crate::queue::{Queue, receive};
use crate::support::{
    Received, annotation, delivery_count, id, ids, locked_until, message, patiently,
    sequence_number, unique_id,
};

/// The request and response links of one `$management` node.
pub struct Management {
    requests: Sender,
    answers: Receiver,
    reply_to: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: i32,
    pub condition: Option<String>,
    body: OrderedMap<Value, Value>,
    correlation_id: Option<MessageId>,
}

impl Answer {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.body.get(&Value::from(key))
    }

    fn read(message: &Received) -> Result<Self> {
        let properties = message
            .application_properties
            .as_ref()
            .context("no properties")?;
        let Some(SimpleValue::Int(status)) = properties.get("statusCode") else {
            bail!("the status code is {:?}", properties.get("statusCode"));
        };
        let condition = match properties.get("errorCondition") {
            Some(SimpleValue::Symbol(Symbol(name))) => Some(name.clone()),
            None => None,
            other => bail!("the error condition is {other:?}"),
        };
        let Body::Value(AmqpValue(Value::Map(body))) = &message.body else {
            bail!("the body is {:?}", message.body);
        };
        Ok(Self {
            status: *status,
            condition,
            body: body.clone(),
            correlation_id: message
                .properties
                .as_ref()
                .and_then(|one| one.correlation_id.clone()),
        })
    }
}

/// The end of the lock that a peek shows for a message without a lock: the beginning of the year 1.
const NOT_LOCKED: i64 = -62_135_596_800_000;

/// Builds the map of a request.
pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let mut map = OrderedMap::new();
    for (key, value) in entries {
        map.insert(Value::from(key), value);
    }
    Value::Map(map)
}

fn tokens(tokens: &[Uuid]) -> Value {
    Value::Array(Array(tokens.iter().cloned().map(Value::Uuid).collect()))
}

impl Management {
    pub async fn attach(session: &mut SessionHandle<()>, entity: &str) -> Result<Self> {
        let node = format!("{entity}/$management");
        let reply_to = unique_id();
        let requests = Sender::attach(session, unique_id(), node.as_str()).await?;
        let answers = Receiver::builder()
            .name(unique_id())
            .source(Source::builder().address(node).build())
            .target(Target::builder().address(reply_to.clone()).build())
            .auto_accept(true)
            .attach(session)
            .await?;
        Ok(Self {
            requests,
            answers,
            reply_to,
        })
    }

    pub async fn close(self) -> Result<()> {
        self.requests.close().await?;
        self.answers.close().await?;
        Ok(())
    }

    pub async fn request(&mut self, operation: &str, body: Value) -> Result<Answer> {
        self.request_as(MessageId::String(unique_id()), operation, body)
            .await
    }

    async fn request_as(&mut self, id: MessageId, operation: &str, body: Value) -> Result<Answer> {
        let request = Message::builder()
            .properties(
                Properties::builder()
                    .message_id(id.clone())
                    .reply_to(self.reply_to.clone())
                    .build(),
            )
            .application_properties(
                ApplicationProperties::builder()
                    .insert("operation", operation)
                    .build(),
            )
            .value(body)
            .build();
        patiently("a request", self.requests.send(request)).await??;
        let answer = patiently("an answer", self.answers.recv::<Body<Value>>()).await??;
        let answer = Answer::read(answer.message())?;
        ensure!(
            answer.correlation_id == Some(id),
            "correlated to {:?}",
            answer.correlation_id
        );
        Ok(answer)
    }

    pub async fn peek(&mut self) -> Result<Vec<Received>> {
        let body = map([
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(250)),
        ]);
        let answer = self.request("com.microsoft:peek-message", body).await?;
        match answer.status {
            204 => Ok(Vec::new()),
            200 => Ok(messages(&answer)?
                .into_iter()
                .map(|(message, _)| message)
                .collect()),
            _ => bail!("peek answered {answer:?}"),
        }
    }

    pub async fn receive_by_number(&mut self, numbers: &[i64], settle_mode: u32) -> Result<Answer> {
        let numbers = Array(numbers.iter().copied().map(Value::Long).collect());
        let body = map([
            ("sequence-numbers", Value::Array(numbers)),
            ("receiver-settle-mode", Value::Uint(settle_mode)),
        ]);
        self.request("com.microsoft:receive-by-sequence-number", body)
            .await
    }

    pub async fn renew_lock(&mut self, token: &Uuid) -> Result<Answer> {
        let body = map([("lock-tokens", tokens(std::slice::from_ref(token)))]);
        self.request("com.microsoft:renew-lock", body).await
    }

    pub async fn update_disposition(&mut self, status: &str, token: &Uuid) -> Result<Answer> {
        let body = map([
            ("disposition-status", Value::from(status)),
            ("lock-tokens", tokens(std::slice::from_ref(token))),
        ]);
        self.request("com.microsoft:update-disposition", body).await
    }
}

/// The messages of a peek or a receive by number, with their lock tokens where there are any.
fn messages(answer: &Answer) -> Result<Vec<(Received, Option<Uuid>)>> {
    let Some(Value::List(entries)) = answer.get("messages") else {
        bail!("the messages are {:?}", answer.get("messages"));
    };
    entries.iter().map(entry).collect()
}

fn entry(entry: &Value) -> Result<(Received, Option<Uuid>)> {
    let Value::Map(entry) = entry else {
        bail!("an entry is {entry:?}");
    };
    let Some(Value::Binary(encoded)) = entry.get(&Value::from("message")) else {
        bail!("an entry has no message");
    };
    let decoded: Deserializable<Received> = serde_amqp::from_slice(encoded)?;
    let token = match entry.get(&Value::from("lock-token")) {
        Some(Value::Uuid(token)) => Some(token.clone()),
        _ => None,
    };
    Ok((decoded.0, token))
}

/// The token of a delivery's lock, from its delivery annotation.
pub fn lock_token<B>(message: &Message<B>) -> Result<Uuid> {
    let annotations = message.delivery_annotations.as_ref();
    match annotations.and_then(|map| map.get(&OwnedKey::from("x-opt-lock-token"))) {
        Some(Value::Uuid(token)) => Ok(token.clone()),
        other => bail!("the lock token is {other:?}"),
    }
}

#[tokio::test]
async fn peek_shows_messages_in_order_and_takes_nothing() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent: Vec<_> = (0..5)
        .map(|number| message(format!("number {number}")))
        .collect();
    let expected = ids(&sent);
    queue.send(sent).await?;
    let peeked = queue.peek().await?;
    assert_eq!(ids(&peeked), expected);
    for one in &peeked {
        assert_eq!(annotation(one, "x-opt-message-state"), Some(&Value::Int(0)));
        assert_eq!(locked_until(one)?, NOT_LOCKED);
        assert_eq!(one.delivery_annotations, None);
    }
    assert_eq!(ids(&queue.take(5).await?), expected);
    queue.client.close().await
}

#[tokio::test]
async fn an_answer_correlates_by_an_id_of_the_same_type() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let mut management = queue.management().await?;
    for id in [
        MessageId::Ulong(u64::MAX),
        MessageId::Uuid(Uuid::from([7; 16])),
        MessageId::Binary(vec![0, 255].into()),
        MessageId::String("text".into()),
    ] {
        let body = map([
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(1)),
        ]);
        let answer = management
            .request_as(id, "com.microsoft:peek-message", body)
            .await?;
        assert_eq!(answer.status, 204);
    }
    queue.client.close().await
}

#[tokio::test]
async fn a_deferred_message_comes_only_by_its_number() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent = message("later");
    let expected = id(&sent);
    queue.send([sent]).await?;
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    let number = sequence_number(delivery.message())?;
    let mut management = queue.management().await?;
    let token = lock_token(delivery.message())?;
    assert_eq!(
        management
            .update_disposition("defered", &token)
            .await?
            .status,
        200
    );
    assert!(crate::queue::next(&mut receiver).await?.is_none());
    let answer = management.receive_by_number(&[number], 1).await?;
    assert_eq!(answer.status, 200);
    let (deferred, token) = messages(&answer)?.pop().context("one message")?;
    assert_eq!(id(&deferred), expected);
    let token = token.context("a lock token")?;
    assert_eq!(lock_token(&deferred)?, token);
    // The defer counts, as an abandon does.
    assert_eq!(delivery_count(&deferred)?, 1);
    assert_eq!(
        management
            .update_disposition("completed", &token)
            .await?
            .status,
        200
    );
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn an_unknown_number_is_not_found() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let answer = queue
        .management()
        .await?
        .receive_by_number(&[1 << 40], 1)
        .await?;
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.condition.as_deref(),
        Some("com.microsoft:message-not-found")
    );
    queue.client.close().await
}

#[tokio::test]
async fn an_unknown_operation_is_not_implemented() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let answer = queue
        .management()
        .await?
        .request("com.microsoft:make-coffee", map([]))
        .await?;
    assert_eq!(answer.status, 501);
    assert_eq!(answer.condition.as_deref(), Some("amqp:not-implemented"));
    queue.client.close().await
}
