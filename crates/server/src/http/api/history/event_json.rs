//! Event JSON: an event of a history as JSON, with a code for programs and a text for people.

use broker::{
    DropReason, History, HistoryEvent, LockEnd, MessageEvent, MessagePlace, Settlement, Subqueue,
};
use entity::time::checked_text;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::EntityId;

/// An event. What it does not say is left out.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EventJson {
    at: Option<String>,
    /// The path of the entity, or its id if that is not known.
    entity: String,
    /// Left out if the event is about all messages of the entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<u64>,
    code: &'static str,
    text: String,
    #[serde(flatten)]
    facts: serde_json::Map<String, Json>,
}

impl EventJson {
    fn with(mut self, name: &str, fact: impl Into<Json>) -> Self {
        self.facts.insert(name.to_owned(), fact.into());
        self
    }

    fn with_some(self, name: &str, fact: Option<&String>) -> Self {
        match fact {
            Some(fact) => self.with(name, fact.clone()),
            None => self,
        }
    }
}

/// An event of a history.
pub fn event_json(event: &HistoryEvent, history: &History) -> EventJson {
    let place = event.place;
    let base = EventJson {
        at: checked_text(event.at),
        entity: path_of(place.entity, history),
        sequence_number: Some(place.number.0).filter(|number| *number > 0),
        ..EventJson::default()
    };
    let say = |code: &'static str, text: &str| EventJson {
        code,
        text: text.to_owned(),
        ..base.clone()
    };
    let from = |place: &MessagePlace| {
        let path = path_of(place.entity, history);
        (
            path.clone(),
            json!({"entity": path, "sequence-number": place.number.0}),
        )
    };
    match &event.event {
        MessageEvent::Accepted {
            message_id,
            session_id,
        } => say("accepted", "it was accepted")
            .with_some("message-id", message_id.as_ref())
            .with_some("session-id", session_id.as_ref()),
        MessageEvent::Scheduled {
            message_id,
            session_id,
            due,
        } => {
            let due = checked_text(*due).unwrap_or_default();
            say(
                "scheduled",
                &format!("it was accepted and scheduled for {due}"),
            )
            .with_some("message-id", message_id.as_ref())
            .with_some("session-id", session_id.as_ref())
            .with("until", due)
        }
        MessageEvent::Routed { router, key } => {
            let exchange = match &**router {
                "" => "the default exchange".to_owned(),
                name => format!("the exchange '{name}'"),
            };
            say(
                "routed",
                &format!("it came by {exchange} with the routing key '{key}'"),
            )
            .with("exchange", router.clone())
            .with("routing-key", key.clone())
        }
        MessageEvent::DuplicateDropped => say(
            "duplicate-dropped",
            "a message with the same id was sent again and dropped",
        ),
        MessageEvent::Activated { from: place } => {
            let (_, from) = from(place);
            let number = place.number;
            let text = format!("its time has come: it was {number} while it was scheduled");
            say("activated", &text).with("from", from)
        }
        MessageEvent::Distributed { copies: 0 } => {
            say("distributed", "no rule of any subscription has selected it").with("copies", 0)
        }
        MessageEvent::Distributed { copies } => {
            let text = format!("copies were made for subscriptions: {copies}");
            say("distributed", &text).with("copies", *copies)
        }
        MessageEvent::Copied { from: place, rule } => {
            let (path, from) = from(place);
            let by = rule.as_ref().map(|rule| format!(", by the rule '{rule}'"));
            let by = by.unwrap_or_default();
            let text = format!("it is a copy of message {} of '{path}'{by}", place.number);
            say("copied", &text)
                .with("from", from)
                .with_some("rule", rule.as_ref())
        }
        MessageEvent::Forwarded { to } => {
            let to = path_of(*to, history);
            say("forwarded", &format!("it went on to '{to}'")).with("to", to)
        }
        MessageEvent::Arrived { from: place } => {
            let (path, from) = from(place);
            let text = format!("it came from '{path}', where it was {}", place.number);
            say("arrived", &text).with("from", from)
        }
        MessageEvent::Dropped { why } => match why {
            DropReason::Duplicate => say(
                "dropped",
                "it was dropped: its destination has had a message with the same id",
            ),
            DropReason::Unroutable => say(
                "dropped",
                "it was dropped: no queue takes it from its exchange",
            ),
            DropReason::NoDeadLetterRouter => say(
                "dropped",
                "it was dropped as a dead letter: its queue has no dead-letter exchange",
            ),
        },
        MessageEvent::Locked {
            connection,
            delivery_count,
        } => {
            let connection = connection.0;
            let text = format!(
                "it was locked by connection {connection}; {delivery_count} deliveries had failed"
            );
            say("locked", &text)
                .with("connection", connection)
                .with("delivery-count", *delivery_count)
        }
        MessageEvent::Renewed { connection } => {
            let connection = connection.0;
            say(
                "renewed",
                &format!("connection {connection} renewed its lock"),
            )
            .with("connection", connection)
        }
        MessageEvent::LockLost { why } => match why {
            LockEnd::Expired => say("lock-lost", "its lock has expired"),
            LockEnd::ReceiverGone => say("lock-lost", "its lock ended with its receiver"),
        },
        MessageEvent::Settled { how, by } => {
            let (code, what) = settled(*how);
            match by {
                Some(by) => say(code, &format!("it was {what} connection {}", by.0))
                    .with("connection", by.0),
                None => say(code, &format!("it was {what} a receiver")),
            }
        }
        MessageEvent::Delayed { until } => {
            let until = checked_text(*until).unwrap_or_default();
            say(
                "delayed",
                &format!("it waits until {until} for its next delivery"),
            )
            .with("until", until)
        }
        MessageEvent::Resumed => say("resumed", "it has waited, and is available again"),
        MessageEvent::DeadLettered { to, reason } => {
            let part = match to {
                Subqueue::TransferDeadLetter => "transfer-dead-letter",
                Subqueue::Main | Subqueue::DeadLetter => "dead-letter",
            };
            let why = reason.as_ref().map(|reason| format!(": {reason}"));
            let text = format!("it became a {part} message{}", why.unwrap_or_default());
            say("dead-lettered", &text)
                .with("part", part)
                .with_some("reason", reason.as_ref())
        }
        MessageEvent::Redriven { from: place, by } => {
            let (_, from) = from(place);
            let (number, by) = (place.number, by.0);
            let text = format!("connection {by} put it back; as a dead letter it was {number}");
            say("redriven", &text)
                .with("from", from)
                .with("connection", by)
        }
        MessageEvent::Expired => say("expired", "its time to live was over"),
        MessageEvent::Purged => say("purged", "it was deleted without being received"),
        MessageEvent::Cancelled => say("cancelled", "it was taken back before its time"),
        MessageEvent::EntityDeleted { path } => EventJson {
            entity: path.clone(),
            ..say(
                "entity-deleted",
                "the entity was deleted, with all messages in it",
            )
        },
    }
}

/// The code of a settlement, and its words before the connection.
fn settled(how: Settlement) -> (&'static str, &'static str) {
    match how {
        Settlement::Completed => ("completed", "completed by"),
        Settlement::ReceivedAndDeleted => ("received", "received and deleted by"),
        Settlement::Abandoned => ("abandoned", "abandoned by"),
        Settlement::Deferred => ("deferred", "deferred by"),
        Settlement::Rejected => ("rejected", "dead-lettered by"),
        Settlement::Released => ("released", "released by"),
        Settlement::Undelivered => ("undelivered", "given back: it could not be written to"),
    }
}

fn path_of(entity: EntityId, history: &History) -> String {
    let path = history.paths.get(&entity);
    path.map_or_else(|| entity.0.to_string(), |path| path.to_string())
}

#[cfg(test)]
mod tests {
    use broker::{ConnectionId, Wall};
    use store::SequenceNumber;

    use super::*;

    fn check(event: MessageEvent<String>, expected: &Json) {
        let place = |number| MessagePlace {
            entity: EntityId(1),
            number: SequenceNumber(number),
        };
        let history = History {
            paths: [(EntityId(1), "orders".into())].into(),
            ..History::default()
        };
        let event = HistoryEvent {
            at: Wall(1_000),
            place: place(7),
            event,
        };
        let json = serde_json::to_value(event_json(&event, &history)).unwrap();
        assert_eq!(json, *expected);
    }

    #[test]
    fn an_event_has_a_code_a_text_and_its_facts() {
        let by = Some(ConnectionId(3));
        let how = Settlement::Completed;
        check(
            MessageEvent::Settled { how, by },
            &json!({
                "at": "1970-01-01T00:00:01Z", "entity": "orders", "sequence-number": 7,
                "code": "completed", "text": "it was completed by connection 3", "connection": 3,
            }),
        );
        let from = MessagePlace {
            entity: EntityId(2),
            number: SequenceNumber(5),
        };
        check(
            MessageEvent::Copied {
                from,
                rule: Some("big".to_owned()),
            },
            &json!({
                "at": "1970-01-01T00:00:01Z", "entity": "orders", "sequence-number": 7,
                "code": "copied", "text": "it is a copy of message #5 of '2', by the rule 'big'",
                "from": {"entity": "2", "sequence-number": 5}, "rule": "big",
            }),
        );
    }
}
