//! `GET /$railbus/entities/{path}/explain`: why messages of a queue or subscription are not
//! delivered, in words.
//!
//! Without `?sequence=` it is about the next message, with it about the one of that number.
//! `?part=dead-letter` or `transfer-dead-letter` is about such a message. Each reason has a code
//! for programs and a text for people; the first is what stands in the way most. What the answer
//! says was so at one moment.

use broker::{
    ActiveReceiver, ActiveSession, Activity, Browsed, EntityError, EntityInfo, EntityKind, Expiry,
    LockTime, MessageState, QueueInfo, Status, Subqueue, Wall, is_same_session,
};
use entity::time::checked_text;
use filter::Message;
use hyper::StatusCode;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::messages::{MessagePart, browse, facts};
use super::{ApiError, ResourcePath, show};
use crate::http::request::query;
use crate::messages::DecodedMessage;
use crate::shard::shard_client::ShardClient;

/// Receivers, locks and sessions that are looked at.
const MOST: usize = 10_000;

/// What is to be explained.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Question {
    subqueue: Subqueue,
    number: Option<u64>,
}

/// Something that stands between a message and a receiver.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct Reason {
    code: &'static str,
    text: String,
}

impl Question {
    /// The messages of its subqueue that receivers are given.
    fn part(self) -> MessagePart {
        match self.subqueue {
            Subqueue::Main => MessagePart::Active,
            Subqueue::DeadLetter => MessagePart::DeadLetter,
            Subqueue::TransferDeadLetter => MessagePart::TransferDeadLetter,
        }
    }

    /// Parses a query.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut question = Self {
            subqueue: Subqueue::Main,
            number: None,
        };
        for (name, value) in query::parameters(query) {
            let value = value?;
            match name {
                "part" => {
                    let (subqueue, _) = MessagePart::parse(&value)?.subqueue_and_state();
                    question.subqueue = subqueue;
                }
                "sequence" => question.number = Some(query::number(name, &value, 1..=u64::MAX)?),
                other => {
                    return Err(format!(
                        "unknown parameter `{other}`: the parameters are part and sequence"
                    ));
                }
            }
        }
        Ok(question)
    }
}

/// Shows the reasons.
pub async fn show(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    question: Question,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let queue = show::describe(shard_client, &path).await?.queue;
    if queue.kind == EntityKind::Topic && question.number.is_none() {
        let text = "a topic delivers no messages; its subscriptions do";
        return Err(ApiError::Bad(text.to_owned()));
    }
    let activity = shard_client.activity(queue.id, MOST).await?;
    let activity = activity.ok_or(EntityError::NotFound)?;
    let settings = queue.in_force();
    let forward_to = match question.subqueue {
        Subqueue::Main => settings.forward_to.clone(),
        Subqueue::DeadLetter => settings.forward_dead_lettered_messages_to.clone(),
        Subqueue::TransferDeadLetter => None,
    };
    let target = match forward_to {
        Some(target) => match show::describe(shard_client, &target).await {
            Ok(info) => Some(Ok(info)),
            Err(ApiError::Entity(EntityError::NotFound)) => Some(Err(target)),
            Err(error) => return Err(error),
        },
        None => None,
    };
    // What may not be received may not be browsed either.
    let is_shown = settings.status.allows_receive();
    let next = match is_shown {
        true => browse(shard_client, queue.id, question.part(), 1, 1).await?,
        false => Vec::new(),
    };
    let place = Place {
        queue: &queue,
        subqueue: question.subqueue,
        activity: &activity,
        next: next.first(),
        target,
    };
    let reasons = match question.number {
        None => place.next_message(),
        Some(_) if !is_shown => vec![disabled()],
        Some(number) => match find(shard_client, &queue, question.subqueue, number).await? {
            Some(message) => place.message(&message),
            None => vec![missing(shard_client, &queue, question.subqueue, number).await?],
        },
    };
    let answer = json!({
        "entity": queue.path,
        "sequence-number": question.number,
        "reasons": reasons,
    });
    Ok((StatusCode::OK, answer))
}

/// The message of a number, in whichever state.
async fn find(
    shard_client: &mut ShardClient,
    queue: &QueueInfo,
    subqueue: Subqueue,
    number: u64,
) -> Result<Option<Browsed>, ApiError> {
    let parts: &[MessagePart] = match subqueue {
        Subqueue::Main => &[
            MessagePart::Active,
            MessagePart::Scheduled,
            MessagePart::Deferred,
        ],
        Subqueue::DeadLetter => &[MessagePart::DeadLetter],
        Subqueue::TransferDeadLetter => &[MessagePart::TransferDeadLetter],
    };
    for part in parts {
        let mut found = browse(shard_client, queue.id, *part, number, 1)
            .await?
            .into_iter();
        if let Some(message) = found.next().filter(|it| it.number.0 == number) {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

/// Why there is no message of a number: it may be a dead letter by now.
async fn missing(
    shard_client: &mut ShardClient,
    queue: &QueueInfo,
    subqueue: Subqueue,
    number: u64,
) -> Result<Reason, ApiError> {
    for (of, part) in [
        (Subqueue::DeadLetter, "dead-letter"),
        (Subqueue::TransferDeadLetter, "transfer-dead-letter"),
    ] {
        if of == subqueue {
            continue;
        }
        if let Some(message) = find(shard_client, queue, of, number).await? {
            let facts = DecodedMessage::read(&servicebus::browsed(&message));
            let facts = facts.map(|decoded| decoded.json(0)).unwrap_or_default();
            let text = |name: &str| Some(facts.get("properties")?.get(name)?.as_str()?.to_owned());
            let reason = text("DeadLetterReason").unwrap_or_else(|| "none".to_owned());
            let description = text("DeadLetterErrorDescription").unwrap_or_default();
            return Ok(Reason {
                code: "dead-lettered",
                text: format!("it is in the {part} queue; reason: {reason}; {description}"),
            });
        }
    }
    Ok(Reason {
        code: "not-there",
        text: "no message has this number: it was received, forwarded or deleted, has expired, or \
               was never here"
            .to_owned(),
    })
}

/// A subqueue, and what is going on there.
struct Place<'a> {
    queue: &'a QueueInfo,
    subqueue: Subqueue,
    activity: &'a Activity,
    /// The first message that is not deferred or scheduled.
    next: Option<&'a Browsed>,
    /// Where its messages are forwarded to, or the path of what is not there.
    target: Option<Result<EntityInfo, String>>,
}

impl Place<'_> {
    /// Why the next message is not delivered.
    fn next_message(&self) -> Vec<Reason> {
        let queue = self.queue;
        let count = match self.subqueue {
            Subqueue::Main => queue.active,
            Subqueue::DeadLetter => queue.dead_letter,
            Subqueue::TransferDeadLetter => queue.transfer_dead_letter,
        };
        if count == 0 {
            let mut text = "no message is available".to_owned();
            if self.subqueue == Subqueue::Main {
                for (count, what) in [(queue.scheduled, "scheduled"), (queue.deferred, "deferred")]
                {
                    if count > 0 {
                        let are = if count == 1 { "is" } else { "are" };
                        text += &format!("; {count} {are} {what}");
                    }
                }
            }
            return vec![Reason {
                code: "empty",
                text,
            }];
        }
        let mut reasons = Vec::new();
        let locked = self.activity.lock_counts[self.subqueue as usize];
        if locked as u64 >= count {
            reasons.push(Reason {
                code: "locked",
                text: match count {
                    1 => "the only message is locked".to_owned(),
                    _ => format!("all {count} messages are locked"),
                },
            });
        }
        let unlocked = self.next.filter(|message| message.lock.is_none());
        reasons.extend(unlocked.and_then(|message| self.expiry(message)));
        reasons.extend(self.receivers(None, unlocked));
        reasons
    }

    /// Why a message is not delivered.
    fn message(&self, message: &Browsed) -> Vec<Reason> {
        let one = |code, text: String| vec![Reason { code, text }];
        let facts = DecodedMessage::read(&servicebus::browsed(message));
        let facts = facts.map(|decoded| decoded.json(0)).unwrap_or_default();
        let text = |name: &str| facts.get(name).and_then(Json::as_str);
        match message.state {
            MessageState::Scheduled => {
                let due = moment(message.enqueued.0);
                let text = match message.delivery_count {
                    0 => format!("it is scheduled for {due}"),
                    _ => {
                        format!("it waits until {due} for its next delivery, after one has failed")
                    }
                };
                return one("scheduled", text);
            }
            MessageState::Deferred => {
                return one(
                    "deferred",
                    "it is deferred: only a receive by its sequence number gets it".to_owned(),
                );
            }
            MessageState::Active => {}
        }
        match message.lock {
            Some(LockTime::WithSession(_)) | None => {}
            Some(lock) => return one("locked", self.locked(message, lock)),
        }
        let mut reasons = Vec::new();
        reasons.extend(self.expiry(message));
        reasons.extend(self.receivers(text("session-id"), Some(message)));
        reasons
    }

    /// What the time to live of a message means for it in an entity that keeps it beyond its end.
    fn expiry(&self, message: &Browsed) -> Option<Reason> {
        let expires = message.expires?;
        if self.activity.expiry != Expiry::Cloud {
            return None;
        }
        let at = moment(expires.0);
        Some(match expires <= self.activity.at {
            true => Reason {
                code: "expired",
                text: format!(
                    "its time to live has ended at {at}; with expiry `cloud` it is there until a \
                     receiver is attached, and is not delivered"
                ),
            },
            false => Reason {
                code: "expires",
                text: format!(
                    "its time to live ends at {at}; after that it is there until a receiver is \
                     attached, and is not delivered"
                ),
            },
        })
    }

    fn locked(&self, message: &Browsed, lock: LockTime) -> String {
        let mut locks = self.activity.locks.iter();
        let holder = locks.find(|it| it.number == message.number && it.subqueue == self.subqueue);
        let by = holder.map_or_else(
            || "by a receiver".to_owned(),
            |lock| format!("by connection {}", lock.connection.0),
        );
        let until = match lock {
            LockTime::WithReceiver => "as long as its receiver is attached".to_owned(),
            LockTime::Own(left) | LockTime::WithSession(left) => {
                format!("for another {}", seconds(left))
            }
        };
        let count = message.delivery_count;
        let failed = match count {
            1 => "1 delivery has".to_owned(),
            _ => format!("{count} deliveries have"),
        };
        format!("it is locked {by} {until}; {failed} failed before")
    }

    /// What an available message waits for, which is known or not.
    fn receivers(&self, session: Option<&str>, message: Option<&Browsed>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let settings = self.queue.in_force();
        if !settings.status.allows_receive() {
            reasons.push(disabled());
        }
        let mut add = |code, text: String| reasons.push(Reason { code, text });
        if let Some(target) = &self.target {
            add("forwarded", forwarded(target, self.next));
            return reasons;
        }
        if self.subqueue == Subqueue::Main && settings.requires_session {
            add_session(self.activity, session, &mut add);
            return reasons;
        }
        let at_place = |it: &&ActiveReceiver| it.subqueue == self.subqueue && it.mode.is_some();
        let receivers: Vec<_> = self.activity.receivers.iter().filter(at_place).collect();
        if receivers.is_empty() {
            add("no-receiver", "no receiver is attached".to_owned());
        } else if receivers.iter().all(|it| it.credit == 0) {
            let count = receivers.len();
            let text = match count {
                1 => "the only receiver has no credit: it asks for no message".to_owned(),
                _ => format!("none of {count} receivers has credit: they ask for no message"),
            };
            add("no-credit", text);
        } else if receivers.iter().all(|it| it.credit == 0 || it.is_blocked) {
            let text = "the connections of all receivers with credit do not read their input";
            add("blocked", text.to_owned());
        } else if let Some(text) = message.and_then(|message| filtered(&receivers, message)) {
            add("filtered", text);
        } else {
            let text = match message {
                Some(_) => "it is available and waits for its turn",
                None => {
                    "it is available and waits for its turn, or no receiver's filter selects it"
                }
            };
            add("in-turn", text.to_owned());
        }
        reasons
    }
}

/// Why no message of an entity is received, or may be looked at.
fn disabled() -> Reason {
    Reason {
        code: "disabled",
        text: "the entity is disabled for receiving".to_owned(),
    }
}

/// Whether the filters of all receivers that ask for messages leave a message out, and which.
fn filtered(receivers: &[&ActiveReceiver], message: &Browsed) -> Option<String> {
    let encoded = message.seen_by_filters();
    let read = Message::read(&encoded, facts(message)).ok()?;
    let asking = receivers
        .iter()
        .filter(|it| it.credit > 0 && !it.is_blocked);
    let filters: Option<Vec<_>> = asking.map(|it| it.selector.as_deref()).collect();
    let filters = filters.filter(|all| !all.iter().any(|filter| filter.selects(&read)))?;
    match filters[..] {
        [only] => {
            let filter = only.text();
            Some(format!(
                "the filter of the only receiver that asks for messages does not select it: {filter}"
            ))
        }
        _ => {
            let count = filters.len();
            Some(format!(
                "none of the filters of {count} receivers that ask for messages selects it"
            ))
        }
    }
}

/// What a message of a session waits for.
fn add_session(
    activity: &Activity,
    session: Option<&str>,
    add: &mut impl FnMut(&'static str, String),
) {
    let is_it =
        |it: &&ActiveSession| session.is_some_and(|id| is_same_session(&it.id, id.as_bytes()));
    let hold = activity
        .sessions
        .iter()
        .find(is_it)
        .and_then(|it| it.hold.as_ref());
    if let (Some(id), Some(hold)) = (session, hold) {
        let mut receivers = activity.receivers.iter();
        let holder = receivers.find(|it| it.id == hold.receiver);
        let credit = holder.map_or(0, |it| it.credit);
        let (connection, left) = (hold.receiver.connection.0, seconds(hold.left_ms));
        let (locked, has) = (
            hold.locked,
            if credit == 0 { "no credit" } else { "credit" },
        );
        return add(
            "session-held",
            format!(
                "its session '{id}' is held by connection {connection} for another {left}, which \
                 has {} of it locked and {has}",
                counted(locked, "message")
            ),
        );
    }
    let waiting = activity.receivers.iter().filter(|it| it.waits_for_session);
    let held = activity.sessions.iter().filter(|it| it.hold.is_some());
    let (waiting, held) = (waiting.count(), held.count());
    add(
        "session-free",
        format!(
            "its session is held by no receiver; {} {} held, {} {} for one",
            counted(held, "session"),
            if held == 1 { "is" } else { "are" },
            counted(waiting, "receiver"),
            if waiting == 1 { "waits" } else { "wait" },
        ),
    );
}

/// A number with its noun.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Where messages go, and why the next one has not gone yet.
fn forwarded(target: &Result<EntityInfo, String>, next: Option<&Browsed>) -> String {
    match target {
        Err(path) => format!("it is forwarded to '{path}', which does not exist"),
        Ok(target) => {
            let path = &target.queue.path;
            let is_full = next.is_some_and(|next| target.is_full_for(next.payload.len() as u64));
            let why = match target.queue.in_force().status {
                Status::Disabled | Status::SendDisabled => ", which is disabled for sending",
                _ if is_full => ", which is full",
                _ => "",
            };
            format!("it is forwarded to '{path}'{why}")
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

fn moment(ms: u64) -> String {
    checked_text(Wall(ms)).unwrap_or_else(|| "the end of time".to_owned())
}
