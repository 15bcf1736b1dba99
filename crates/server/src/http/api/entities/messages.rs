//! `GET /$railbus/entities/{path}/messages`: messages in their present state, in the order of
//! their sequence numbers, or scheduled ones in that of their due times.
//!
//! `?part=active` (or `scheduled`, `deferred`, `dead-letter`, `transfer-dead-letter`), `?from=` a
//! number, `?count=` a maximum and `?filter=` a condition of a rule, all of them optional. Locked
//! messages are shown too. Showing a message does not lock or take it and does not count as a
//! delivery. An answer ends early once it holds enough bytes; `next` is the number to continue
//! from, or null at the end. With `?part=scheduled&order=due` the next message is the one that is
//! due next, and `next` is a text for `from`. Of a body with more bytes than `?body=` says the size
//! and the start are shown.

use std::sync::Arc;

use broker::{
    Browsed, Command, EntityKind, MessageState, Output, RequestId, Subqueue, SubqueueId, Wall,
};
use filter::{Facts, Message, Selector};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use store::{EntityId, SequenceNumber};

use super::{ApiError, ResourcePath, show};
use crate::http::request::query;
use crate::messages::DecodedMessage;
use crate::shard::shard_client::ShardClient;

/// Messages of an answer, unless it is asked for fewer or more.
const COUNT: u64 = 100;
/// Messages of an answer at most.
const MOST: u64 = 1_000;
/// Messages that a filter is tried on for one answer; the next may find more.
const EXAMINED: usize = 10_000;
/// An answer with this many bytes of messages reads no more.
const ANSWER_BYTES: usize = 4 << 20;
/// The same of one look at the store.
const BROWSE_BYTES: usize = 1 << 20;
/// A longer body is not shown, unless a smaller limit is asked for.
const BODY_BYTES: u64 = 256 << 10;
/// The start that is shown of a longer body, at most.
const START_BYTES: usize = 1 << 10;

/// Which messages are shown.
#[derive(Debug)]
pub struct Range {
    part: MessagePart,
    from: Place,
    count: u64,
    body_bytes: usize,
    selector: Option<Arc<Selector>>,
}

/// Where an answer begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Number(u64),
    /// In the order in which messages are due; a message's number follows the time.
    Due(Wall, u64),
}

impl Place {
    fn parse(text: &str, is_due: bool) -> Result<Self, String> {
        let number = |text: &str| query::number("from", text, 0..=u64::MAX);
        if !is_due {
            return Ok(Self::Number(number(text)?));
        }
        let parts = text
            .split_once('-')
            .map(|(at, rest)| (number(at), number(rest)));
        match parts {
            Some((Ok(at), Ok(number))) => Ok(Self::Due(Wall(at), number)),
            _ => Err("from must be the `next` of an answer in this order".to_owned()),
        }
    }

    /// Behind a message that was found from here on.
    fn behind(self, message: &Browsed) -> Self {
        let next = message.number.next().0;
        match self {
            Self::Number(_) => Self::Number(next),
            Self::Due(..) => Self::Due(message.enqueued, next),
        }
    }

    fn json(self) -> Json {
        match self {
            Self::Number(number) => number.into(),
            Self::Due(Wall(at), number) => format!("{at}-{number}").into(),
        }
    }
}

/// Where messages are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum MessagePart {
    #[default]
    Active,
    Scheduled,
    Deferred,
    DeadLetter,
    TransferDeadLetter,
}

impl Range {
    /// Parses a query.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut range = Self {
            part: MessagePart::Active,
            from: Place::Number(1),
            count: COUNT,
            body_bytes: usize::try_from(BODY_BYTES).unwrap_or(usize::MAX),
            selector: None,
        };
        let (mut from, mut is_due) = (None, false);
        for (name, value) in query::parameters(query) {
            let value = value?;
            match name {
                "part" => range.part = MessagePart::parse(&value)?,
                "from" => from = Some(value),
                "order" => is_due = is_order_of_due_times(&value)?,
                "count" => range.count = query::number(name, &value, 1..=MOST)?,
                "filter" => {
                    let selector = Selector::of_filter(&value);
                    let selector = selector.map_err(|error| format!("the filter: {error}"))?;
                    range.selector = Some(Arc::new(selector));
                }
                "body" => {
                    let most = query::number(name, &value, 0..=BODY_BYTES)?;
                    range.body_bytes = usize::try_from(most).unwrap_or(usize::MAX);
                }
                other => {
                    return Err(format!(
                        "unknown parameter `{other}`: the parameters are part, order, from, count, filter and body"
                    ));
                }
            }
        }
        if is_due && range.part != MessagePart::Scheduled {
            return Err("only scheduled messages have the order `due`".to_owned());
        }
        range.from = match from {
            Some(from) => Place::parse(&from, is_due)?,
            None if is_due => Place::Due(Wall(0), 0),
            None => range.from,
        };
        Ok(range)
    }
}

fn is_order_of_due_times(order: &str) -> Result<bool, String> {
    match order {
        "number" => Ok(false),
        "due" => Ok(true),
        other => Err(format!("order `{other}` is not number or due")),
    }
}

impl MessagePart {
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "active" => Self::Active,
            "scheduled" => Self::Scheduled,
            "deferred" => Self::Deferred,
            "dead-letter" | "deadletter" => Self::DeadLetter,
            "transfer-dead-letter" => Self::TransferDeadLetter,
            other => {
                return Err(format!(
                    "part `{other}` is not active, scheduled, deferred, dead-letter or transfer-dead-letter"
                ));
            }
        })
    }

    /// Where it is looked for, and in which state. Deferred dead letters are dead letters.
    pub fn subqueue_and_state(self) -> (Subqueue, Option<MessageState>) {
        match self {
            Self::Active => (Subqueue::Main, Some(MessageState::Active)),
            Self::Scheduled => (Subqueue::Main, Some(MessageState::Scheduled)),
            Self::Deferred => (Subqueue::Main, Some(MessageState::Deferred)),
            Self::DeadLetter => (Subqueue::DeadLetter, None),
            Self::TransferDeadLetter => (Subqueue::TransferDeadLetter, None),
        }
    }
}

/// Shows them.
pub async fn show(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    range: Range,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let info = show::describe(shard_client, &path).await?;
    if info.queue.kind == EntityKind::Topic && range.part != MessagePart::Scheduled {
        let text = "a topic holds scheduled messages only; other messages are in its subscriptions";
        return Err(ApiError::Bad(text.to_owned()));
    }
    let (mut shown, mut bytes, mut next) = (Vec::new(), 0, Some(range.from));
    let mut examined = 0;
    while let Some(from) = next {
        let left = range.count.saturating_sub(shown.len() as u64);
        if left == 0 || bytes >= ANSWER_BYTES || examined >= EXAMINED {
            break;
        }
        let wanted = if range.selector.is_some() { MOST } else { left };
        let id = info.queue.id;
        let found = match from {
            Place::Number(from) => browse(shard_client, id, range.part, from, wanted).await?,
            Place::Due(at, number) => browse_due(shard_client, id, (at, number), wanted).await?,
        };
        next = found.last().map(|last| from.behind(last));
        examined += found.len();
        for message in &found {
            if let Some(selector) = &range.selector {
                tokio::task::yield_now().await;
                if !matches(selector, message) {
                    continue;
                }
            }
            bytes += message.payload.len();
            shown.push(one(message, range.body_bytes));
            if shown.len() as u64 == range.count {
                next = Some(from.behind(message));
                break;
            }
        }
    }
    let next = next.map(Place::json);
    Ok((StatusCode::OK, json!({"messages": shown, "next": next})))
}

/// The next messages; as many as the broker shows at once.
pub async fn browse(
    shard_client: &mut ShardClient,
    entity: EntityId,
    part: MessagePart,
    from: u64,
    count: u64,
) -> Result<Vec<Browsed>, ApiError> {
    let (subqueue, state) = part.subqueue_and_state();
    let command = |request| Command::Peek {
        request,
        subqueue: SubqueueId { entity, subqueue },
        state,
        from: SequenceNumber(from),
        count: usize::try_from(count).unwrap_or(usize::MAX),
        max_bytes: BROWSE_BYTES,
    };
    ask(shard_client, command).await
}

/// The scheduled messages that are due next, from a moment and a number on.
async fn browse_due(
    shard_client: &mut ShardClient,
    entity: EntityId,
    (at, number): (Wall, u64),
    count: u64,
) -> Result<Vec<Browsed>, ApiError> {
    let command = |request| Command::PeekSchedule {
        request,
        entity,
        from: (at, SequenceNumber(number)),
        count: usize::try_from(count).unwrap_or(usize::MAX),
        max_bytes: BROWSE_BYTES,
    };
    ask(shard_client, command).await
}

async fn ask(
    shard_client: &mut ShardClient,
    command: impl FnOnce(RequestId) -> Command,
) -> Result<Vec<Browsed>, ApiError> {
    let browsed = shard_client.ask(command, |output| match output {
        Output::Browsed { result, .. } => Some(result),
        _ => None,
    });
    let browsed = browsed.await?;
    browsed.map_err(|error| ApiError::Bad(error.to_string()))
}

/// A message as `railbus peek --json` shows it, with the time that is left of its lock.
fn one(message: &Browsed, body_bytes: usize) -> Json {
    let encoded = servicebus::browsed(message);
    match DecodedMessage::read(&encoded) {
        Ok(decoded) => {
            let mut shown = decoded.json(body_bytes);
            if let Some(lock) = message.lock {
                shown.insert("lock-left-ms".to_owned(), lock.left_ms().into());
            }
            let body = decoded.body();
            if body.len() > body_bytes {
                let start = &body[..body.len().min(START_BYTES).min(body_bytes)];
                let start = String::from_utf8_lossy(start);
                shown.insert("body-start".to_owned(), start.into());
            }
            Json::Object(shown)
        }
        // What is stored was read when it came in.
        Err(error) => json!({"sequence-number": message.number.0, "error": error.to_string()}),
    }
}

/// Whether a condition is true of a message, as it is of one that a receiver selects.
pub fn matches(selector: &Selector, message: &Browsed) -> bool {
    let encoded = message.seen_by_filters();
    let read = Message::read(&encoded, facts(message));
    read.is_ok_and(|message| selector.selects(&message))
}

/// What filters see of a message beside its encoded form.
pub fn facts(message: &Browsed) -> Facts<'_> {
    let signed = |value: u64| i64::try_from(value).ok();
    Facts {
        enqueued_time_ms: signed(message.enqueued.0),
        expires_at_ms: message.expires.and_then(|at| signed(at.0)),
        sequence_number: signed(message.number.0),
        enqueued_sequence_number: signed(message.enqueued_number.0),
        delivery_count: Some(message.delivery_count),
        state: Some(message.state as i32),
        dead_letter_source: message.dead_letter_source(),
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use broker::Additions;
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_condition_sees_a_message_as_a_receivers_selector_does() {
        // The application property `n` is 1 and was changed to 2.
        let sections = b"\x00\x53\x74\xc1\x06\x02\xa1\x01n\x54\x01\x00\x53\x75\xa0\x01x";
        let message = Browsed {
            entity: EntityId(1),
            number: SequenceNumber(1),
            enqueued_number: SequenceNumber(1),
            was_forwarded: true,
            was_scheduled: false,
            lock: None,
            enqueued: Wall(0),
            ttl_ms: None,
            expires: None,
            delivery_count: 0,
            state: MessageState::Active,
            payload: Bytes::from_static(sections),
            acquired_count: 0,
            additions: Some(Box::new(Additions {
                changes: vec![("n".to_owned(), Bytes::from_static(b"\x54\x02"))],
                dead_letter_source: Some("orders".to_owned()),
                ..Additions::default()
            })),
        };
        for condition in ["n = 2", "sys.DeadLetterSource = 'orders'", "sys.Size < 40"] {
            let selector = Selector::of_filter(condition).unwrap();
            assert!(matches(&selector, &message), "{condition}");
        }
    }

    fn check(query: &str, expected: Result<(MessagePart, u64, u64), &str>) {
        let parsed = Range::parse(query);
        let parsed = parsed.map(|range| match range.from {
            Place::Number(from) => (range.part, from, range.count),
            place @ Place::Due(..) => panic!("{query}: {place:?}"),
        });
        match (parsed, expected) {
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (parsed, expected) => assert_eq!(parsed, expected.map_err(str::to_owned), "{query}"),
        }
    }

    #[test]
    fn a_query_says_which_messages() {
        check("", Ok((MessagePart::Active, 1, 100)));
        check(
            "part=deadletter&from=7&count=1000",
            Ok((MessagePart::DeadLetter, 7, 1_000)),
        );
        check("part=dead%2Dletter", Ok((MessagePart::DeadLetter, 1, 100)));
        check("part=scheduled&", Ok((MessagePart::Scheduled, 1, 100)));
        check("count=2&part=deferred", Ok((MessagePart::Deferred, 1, 2)));
        check(
            "from=18446744073709551615&part=transfer-dead-letter",
            Ok((MessagePart::TransferDeadLetter, u64::MAX, 100)),
        );
    }

    #[test]
    fn scheduled_messages_may_come_by_due_time() {
        let place = |query: &str| Range::parse(query).map(|range| range.from);
        let start = Place::Due(Wall(0), 0);
        assert_eq!(place("part=scheduled&order=due"), Ok(start));
        let later = Place::Due(Wall(1_700_000_000_000), 7);
        let Json::String(next) = later.json() else {
            panic!("{later:?} is no text")
        };
        let query = format!("order=due&from={next}&part=scheduled");
        assert_eq!(place(&query), Ok(later));
        assert_eq!(place("order=number&from=7"), Ok(Place::Number(7)));
        check("order=due", Err("only scheduled messages have the order"));
        check("order=age", Err("order `age` is not number or due"));
        for from in ["7", "-7", "7-", "a-7", "7-18446744073709551616"] {
            let query = format!("part=scheduled&order=due&from={from}");
            check(&query, Err("from must be the `next` of an answer"));
        }
        check("from=7-1", Err("from must be a number"));
    }

    #[test]
    fn what_is_no_such_query_is_refused() {
        check("part=all", Err("part `all` is not active"));
        check("count=0", Err("count must be a number from 1 to 1000"));
        check("count=1001", Err("count must be a number from 1 to 1000"));
        check("from=-1", Err("from must be a number"));
        check("from=18446744073709551616", Err("from must be a number"));
        check("from", Err("from must be a number"));
        check("body=262145", Err("body must be a number from 0 to 262144"));
        check("skip=1", Err("unknown parameter `skip`"));
        check("part=%ff", Err("not UTF-8"));
    }
}
