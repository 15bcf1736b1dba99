//! Lines of scripts that ask what has happened to messages.

use broker::{HistoryQuery, MessageEvent, MessagePlace, Wall};
use store::{NamespaceId, SequenceNumber};

use super::{START, Stage, named, numbers, time};

/// More events than any script has.
const MOST: usize = 1_000;

impl Stage {
    /// `trace`, perhaps with `id=`, `session=`, `in=PATH` and `#NUMBER`, and `last=COUNT`.
    pub(super) fn trace(&mut self, args: &[&str]) {
        let text = |name| named(args, name).map(str::to_owned);
        let query = HistoryQuery {
            message_id: text("id="),
            session_id: text("session="),
            entity: text("in="),
            number: numbers(args).first().copied().map(SequenceNumber),
        };
        let most = named(args, "last=").map_or(MOST, |most| most.parse().unwrap());
        let Some(reader) = self.shard.lineage(NamespaceId::default()) else {
            return self.tell("trace: nothing is recorded");
        };
        let history = reader.history(&query, most);
        let since = |at: Wall| time(at.0 - START);
        let mut text = format!("trace: since {}", since(history.since));
        if !history.is_complete {
            text += ", incomplete";
        }
        if history.more {
            text += ", with more before";
        }
        self.tell(&text);
        let place = |place: MessagePlace| {
            let path = history.paths.get(&place.entity).map_or("?", |path| path);
            format!("{path}{}", place.number)
        };
        let told = history.events.iter().map(|event| {
            let what = match &event.event {
                MessageEvent::Activated { from } => format!("Activated from {}", place(*from)),
                MessageEvent::Arrived { from } => format!("Arrived from {}", place(*from)),
                MessageEvent::Redriven { from, by } => {
                    format!("Redriven from {} by {}", place(*from), by.0)
                }
                MessageEvent::Copied { from, rule } => {
                    let rule = rule.as_deref().unwrap_or("no rule");
                    format!("Copied from {} by {rule}", place(*from))
                }
                MessageEvent::Forwarded { to } => {
                    let number = SequenceNumber(0);
                    let entity = *to;
                    format!("Forwarded to {}", place(MessagePlace { entity, number }))
                }
                MessageEvent::Scheduled { due, .. } => format!("Scheduled for {}", since(*due)),
                MessageEvent::Delayed { until } => format!("Delayed until {}", since(*until)),
                other => format!("{other:?}").replace("ConnectionId", ""),
            };
            format!("  {} {}: {what}", since(event.at), place(event.place))
        });
        let told: Vec<_> = told.collect();
        for line in told {
            self.tell(&line);
        }
    }
}
