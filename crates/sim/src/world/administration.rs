//! Administration: rules that change while messages are published, entities that come and go or
//! do not let everybody in, as somebody who manages the broker would have it.
//!
//! One thing is asked at a time, by the broker's own connection, and answered before the next.

use broker::{Command, ConnectionId, EntityChange, Output, RequestId, Status};

use super::queues::{self, Definition, What};
use super::{World, ledger_queue};
use crate::rule::Rule;
use crate::server;
use crate::violation::Violation;

/// Most rules of a subscription.
const MOST_RULES: usize = 5;
/// Those whose status changes. Nothing is forwarded to them.
const SWITCHED: [&str; 4] = [
    "expires-away",
    "expires-to-dead-letter",
    "publishes",
    "news/Subscriptions/some",
];

/// Who asks for changes.
#[derive(Debug, Default)]
pub(super) struct Administration {
    /// How many were asked for.
    count: u64,
    /// One has not been answered.
    waits: bool,
}

impl Administration {
    /// The broker is another one now.
    pub(super) fn crashed(&mut self) {
        self.waits = false;
    }

    fn request(&mut self) -> RequestId {
        self.count += 1;
        RequestId {
            connection: ConnectionId::SERVER,
            token: self.count,
        }
    }
}

impl World {
    /// Changes something, or not.
    pub(super) fn administer(&mut self) {
        if self.administration.waits || self.calm {
            return;
        }
        let request = self.administration.request();
        let command = match self.rng.below(10) {
            0..=3 => self.add_rule(request),
            4..=6 => self.remove_rule(request),
            7..=8 => self.make_or_remove(request),
            _ => self.switch(request),
        };
        if let Some(command) = command {
            self.administration.waits = true;
            self.server.inbox.push(command);
        }
    }

    /// The path of any subscription, those that may not be there included.
    fn any_subscription(&mut self) -> &'static str {
        let all = self.definitions.iter().chain(&self.temporary);
        let all = all.filter(|definition| matches!(definition.what, What::Subscription { .. }));
        let all: Vec<_> = all.map(|definition| definition.path).collect();
        all[self.rng.below(all.len())]
    }

    fn add_rule(&mut self, request: RequestId) -> Option<Command> {
        let path = self.any_subscription();
        let entity = self.ledger.live(path)?;
        let rule = Rule::any(&mut self.rng, 1_000 + request.token);
        let room = self.ledger.books.rules(entity).len() < MOST_RULES;
        room.then(|| Command::AddRule {
            request,
            entity,
            rule: Box::new(rule.describe()),
        })
    }

    fn remove_rule(&mut self, request: RequestId) -> Option<Command> {
        let path = self.any_subscription();
        let entity = self.ledger.live(path)?;
        let rules = self.ledger.books.rules(entity);
        if rules.len() < 2 {
            return None;
        }
        let name = rules[self.rng.below(rules.len())].clone();
        Some(Command::RemoveRule {
            request,
            entity,
            name,
        })
    }

    /// What is there goes, and what is not comes.
    fn make_or_remove(&mut self, request: RequestId) -> Option<Command> {
        let definition = self.temporary[self.rng.below(self.temporary.len())].clone();
        if let Some(entity) = self.ledger.live(definition.path) {
            return Some(Command::RemoveEntity { request, entity });
        }
        self.ledger
            .expect(ledger_queue(store::EntityId(0), &definition));
        Some(server::ensure(request, &definition))
    }

    /// Lets an entity let fewer in, or everybody again.
    fn switch(&mut self, request: RequestId) -> Option<Command> {
        let path = SWITCHED[self.rng.below(SWITCHED.len())];
        let mut definition = self.definitions[queues::index_of(path)].clone();
        definition.settings.status = match self.rng.below(6) {
            0 => Status::Disabled,
            1 => Status::SendDisabled,
            2 => Status::ReceiveDisabled,
            _ => Status::Active,
        };
        Some(server::ensure(request, &definition))
    }

    /// Everything is as it was defined again, and what is not defined goes.
    pub(super) fn restore(&mut self) -> Result<(), Violation> {
        self.settle_down()?;
        let mut commands = Vec::new();
        for path in SWITCHED {
            let request = self.administration.request();
            let definition = &self.definitions[queues::index_of(path)];
            commands.push(server::ensure(request, definition));
        }
        let temporary: Vec<_> = self.temporary.iter().map(|it| it.path).collect();
        for entity in temporary
            .into_iter()
            .filter_map(|path| self.ledger.live(path))
        {
            let request = self.administration.request();
            commands.push(Command::RemoveEntity { request, entity });
        }
        self.server.inbox.extend(commands);
        self.settle_down()
    }

    /// The broker answers, or says what has changed.
    pub(super) fn administered(&mut self, output: Output) {
        match output {
            Output::EntityChanged(change) => {
                let change: EntityChange = *change;
                self.server.follow(change, self.now);
            }
            Output::RulesChanged(rules) => self.server.follow_rules(*rules, self.now),
            Output::Ensured { .. } | Output::Removed { .. } | Output::RuleChanged { .. } => {
                self.administration.waits = false;
            }
            _ => {}
        }
    }
}

/// Entities that come and go.
pub(super) fn temporary() -> Vec<Definition> {
    queues::temporary()
}
