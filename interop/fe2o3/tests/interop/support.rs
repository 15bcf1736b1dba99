//! Connecting, building messages, and waiting: what every test needs and no one queue owns.
//!
//! Waits are on what can be observed and end with an error after [`PATIENCE`].

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::connection::OpenError;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{Body, Data, Message, MessageId, Properties};
use fe2o3_amqp::{Connection, Session};
use serde_amqp::Value;

/// How long anything may take before it counts as not happening.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing must come for nothing to be there.
pub const LULL: Duration = Duration::from_millis(500);

/// A message as it is received: the body may be of any kind.
pub type Received = Message<Body<Value>>;

/// A connection with one session on it.
pub struct Client {
    pub session: SessionHandle<()>,
    pub connection: ConnectionHandle<()>,
}

impl Client {
    pub async fn connect() -> Result<Self> {
        let mut connection = open(SaslProfile::Plain {
            username: "RootManageSharedAccessKey".into(),
            password: "SAS_KEY_VALUE".into(),
        })
        .await?;
        let session = Session::begin(&mut connection).await?;
        Ok(Self {
            session,
            connection,
        })
    }

    pub async fn close(mut self) -> Result<()> {
        self.session.end().await?;
        self.connection.close().await?;
        Ok(())
    }
}

/// Opens a connection to the broker that the environment names.
pub async fn open(profile: SaslProfile) -> Result<ConnectionHandle<()>, OpenError> {
    let host = std::env::var("RAILBUS_HOST").expect("RAILBUS_HOST names the broker's host");
    let port = std::env::var("RAILBUS_PORT").expect("RAILBUS_PORT is the broker's port");
    let url = format!("amqp://{host}:{port}");
    Connection::builder()
        .container_id(unique_id())
        .sasl_profile(profile)
        .open(url.as_str())
        .await
}

/// An id that no other test or run has used.
pub fn unique_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number}", now.as_nanos())
}

/// A message with a body of bytes and an id of its own.
pub fn message(body: impl Into<Vec<u8>>) -> Message<Data> {
    Message::builder()
        .properties(Properties::builder().message_id(unique_id()).build())
        .data(body.into())
        .build()
}

/// The ids of messages, as text.
pub fn ids<'a, B: 'a>(messages: impl IntoIterator<Item = &'a Message<B>>) -> Vec<String> {
    messages.into_iter().map(id).collect()
}

/// The id of a message, as text; empty when it has none.
pub fn id<B>(message: &Message<B>) -> String {
    let id = message
        .properties
        .as_ref()
        .and_then(|one| one.message_id.as_ref());
    match id {
        Some(MessageId::String(text)) => text.clone(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

/// The bytes of a body of data sections; nothing when it is of another kind.
pub fn bytes(message: &Received) -> Vec<u8> {
    match &message.body {
        Body::Data(sections) => sections
            .iter()
            .flat_map(|section| section.0.iter().copied())
            .collect(),
        _ => Vec::new(),
    }
}

/// One message annotation.
pub fn annotation<'a, B>(message: &'a Message<B>, name: &str) -> Option<&'a Value> {
    message
        .message_annotations
        .as_ref()?
        .get(&OwnedKey::from(name))
}

/// The number that the broker gave a message.
pub fn sequence_number<B>(message: &Message<B>) -> Result<i64> {
    match annotation(message, "x-opt-sequence-number") {
        Some(Value::Long(number)) => Ok(*number),
        other => bail!("the sequence number is {other:?}"),
    }
}

/// When a message's lock runs out, in milliseconds since 1970.
pub fn locked_until<B>(message: &Message<B>) -> Result<i64> {
    match annotation(message, "x-opt-locked-until") {
        Some(Value::Timestamp(moment)) => Ok(moment.milliseconds()),
        other => bail!("locked until {other:?}"),
    }
}

/// How many deliveries of a message ended before this one and did not remove it.
pub fn delivery_count<B>(message: &Message<B>) -> Result<u32> {
    Ok(message.header.as_ref().context("a header")?.delivery_count)
}

/// Awaits `future`, at most for [`PATIENCE`].
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(PATIENCE, future)
        .await
        .with_context(|| format!("{what} did not happen within {PATIENCE:?}"))
}

/// The wall clock, in milliseconds since 1970.
pub fn now() -> Result<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(now.as_millis())?)
}

/// Waits until the wall clock is past a time that the broker has announced.
pub async fn wait_until_passed(moment: i64) -> Result<()> {
    loop {
        let left = moment - now()?;
        if left < 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(left.unsigned_abs() + 10)).await;
    }
}
