//! Administration: entities and rules that are made, changed, shown and deleted while clients use
//! them, by administrators at the same time and by clients that may manage.
//!
//! Some of what they ask for cannot be done. The ledger says of each order what must come of it.

use broker::{
    Answer, Batch, Command, ConnectionId, EntityChange, EntityDescription, EntityPath, Listing,
    Order, Output, RequestId, Status,
};
use store::EntityId;

use super::queues::{self, Definition, What};
use super::{World, namespace};
use crate::inbox::NamespaceIndex;
use crate::rule::Rule;
use crate::server;
use crate::violation::Violation;

/// Most rules of a subscription.
const MOST_RULES: usize = 5;
/// Most requests that are not answered yet.
const MOST_WAITING: usize = 4;
/// Those whose status changes. Nothing is forwarded to them.
const SWITCHED: [&str; 4] = [
    "expires-away",
    "expires-to-dead-letter",
    "publishes",
    "news/Subscriptions/some",
];

/// The administrators.
#[derive(Debug, Default)]
pub(super) struct Administration {
    /// How many requests they made.
    count: u64,
    /// How many have not been answered.
    waiting: usize,
    /// The version of the namespace that was shown last.
    version: Option<u64>,
}

impl Administration {
    /// The broker is another one now.
    pub(super) fn crashed(&mut self) {
        self.waiting = 0;
    }

    fn request(&mut self, namespace: NamespaceIndex) -> RequestId {
        self.count += 1;
        RequestId {
            connection: ConnectionId::SERVER,
            token: namespace::id_in(namespace, self.count),
        }
    }
}

impl World {
    /// Changes something, or asks for it, or not.
    pub(super) fn administer(&mut self, n: NamespaceIndex) {
        if self.namespaces[n].administration.waiting >= MOST_WAITING || self.faults_stopped {
            return;
        }
        let request = self.namespaces[n].administration.request(n);
        let command = match self.rng.below(20) {
            0..=2 => self.add_rule(n, request),
            3..=4 => self.remove_rule(n, request),
            kind => {
                let order = self.order(n, kind);
                order.map(|order| server::administer(request, n, order))
            }
        };
        if let Some(command) = command {
            self.namespaces[n].administration.waiting += 1;
            self.server.inbox.push(n, command);
        }
    }

    fn order(&mut self, n: NamespaceIndex, kind: usize) -> Option<Order> {
        match kind {
            5..=6 => Some(self.create()),
            7 => Some(self.remove()),
            8..=9 => self.change_a_rule(n),
            10..=11 => Some(self.switch(n)),
            12 => self.update_any(n),
            13..=15 => Some(self.batch(n)),
            16 => Some(Order::DescribeNamespace),
            _ => self.inquire(n),
        }
    }

    /// The path of any subscription, those that may not be there included.
    fn any_subscription(&mut self) -> &'static str {
        let all = self.definitions.iter().chain(&self.temporary);
        let all = all.filter(|definition| matches!(definition.what, What::Subscription { .. }));
        let all: Vec<_> = all.map(|definition| definition.path).collect();
        all[self.rng.below(all.len())]
    }

    fn any_temporary(&mut self) -> Definition {
        self.temporary[self.rng.below(self.temporary.len())].clone()
    }

    /// A path in the case in which it was made, or in another one.
    fn in_some_case(&mut self, path: &str) -> String {
        match self.rng.below(3) {
            0 => path.to_uppercase(),
            _ => path.to_owned(),
        }
    }

    fn fresh_rule(&mut self, n: NamespaceIndex) -> Rule {
        Rule::any(
            &mut self.rng,
            1_000 + self.namespaces[n].administration.count,
        )
    }

    /// The name of a rule of a subscription that has others besides.
    fn some_rule(&mut self, n: NamespaceIndex, path: &str) -> Option<String> {
        let rules = self.namespaces[n]
            .ledger
            .books
            .rules(self.namespaces[n].ledger.live(path)?);
        let at = self.rng.below(rules.len().max(1));
        (rules.len() > 1).then(|| rules[at].clone())
    }

    fn has_room(&self, n: NamespaceIndex, path: &str) -> bool {
        let live = self.namespaces[n].ledger.live(path);
        live.is_none_or(|entity| self.namespaces[n].ledger.books.rules(entity).len() < MOST_RULES)
    }

    fn add_rule(&mut self, n: NamespaceIndex, request: RequestId) -> Option<Command> {
        let path = self.any_subscription();
        let entity = self.namespaces[n].ledger.live(path)?;
        let rule = Box::new(self.fresh_rule(n).describe());
        self.has_room(n, path).then_some(Command::AddRule {
            request,
            entity,
            rule,
        })
    }

    fn remove_rule(&mut self, n: NamespaceIndex, request: RequestId) -> Option<Command> {
        let path = self.any_subscription();
        let (name, entity) = (
            self.some_rule(n, path)?,
            self.namespaces[n].ledger.live(path)?,
        );
        Some(Command::RemoveRule {
            request,
            entity,
            name,
        })
    }

    /// Also what is there already.
    fn create(&mut self) -> Order {
        let definition = self.any_temporary();
        Order::Create {
            path: path_of(&definition),
            description: Box::new(describe(&definition)),
            rules: definition.rules(),
        }
    }

    /// Also what is not there.
    fn remove(&mut self) -> Order {
        let path = self.any_temporary().path;
        let path = self.in_some_case(path);
        Order::Remove { path }
    }

    fn change_a_rule(&mut self, n: NamespaceIndex) -> Option<Order> {
        let path = self.any_subscription();
        let known = self.some_rule(n, path);
        let fresh = self.fresh_rule(n);
        let subscription = self.in_some_case(path);
        let named = known.as_deref().and_then(Rule::named);
        match self.rng.below(4) {
            0 => Some(Order::RemoveRule {
                subscription,
                name: known.unwrap_or_else(|| fresh.name()),
            }),
            1 => Some(Order::ReplaceRule {
                subscription,
                rule: Box::new(named.unwrap_or(fresh).describe()),
            }),
            2 => Some(Order::CreateRule {
                subscription,
                rule: Box::new(named.unwrap_or(fresh).describe()),
            }),
            _ => self.has_room(n, path).then(|| Order::CreateRule {
                subscription,
                rule: Box::new(fresh.describe()),
            }),
        }
    }

    /// Sets an entity's status, by an update or by a batch: less is allowed, or everything again.
    fn switch(&mut self, n: NamespaceIndex) -> Order {
        let path = SWITCHED[self.rng.below(SWITCHED.len())];
        let mut definition = self.definitions[queues::index_of(path)].clone();
        definition.settings.status = match self.rng.below(6) {
            0 => Status::Disabled,
            1 => Status::SendDisabled,
            2 => Status::ReceiveDisabled,
            _ => Status::Active,
        };
        match self.namespaces[n].ledger.live(path) {
            Some(entity) if self.rng.chance(500) => Order::Update {
                entity,
                description: Box::new(describe(&definition)),
            },
            _ => Order::ensure(vec![server::ensured(&definition)]),
        }
    }

    /// An entity that comes and goes gets the description that it has, or one that cannot be. It
    /// may have gone, and another one may be at its path.
    fn update_any(&mut self, n: NamespaceIndex) -> Option<Order> {
        let definition = self.any_temporary();
        let of_path = self.namespaces[n].ledger.queues.iter();
        let of_path = of_path.filter(|queue| queue.path == definition.path);
        let all: Vec<EntityId> = of_path.map(|queue| queue.id).collect();
        let entity = *all.get(self.rng.below(all.len().max(1)))?;
        let mut description = describe(&definition);
        description.settings.requires_session = self.rng.chance(200);
        Some(Order::Update {
            entity,
            description: Box::new(description),
        })
    }

    /// Several entities come and go at once, and a rule goes; or nothing happens, since one of
    /// these cannot, or since the namespace has changed, or since it is only tried.
    fn batch(&mut self, n: NamespaceIndex) -> Order {
        let mut batch = Batch {
            version: self.namespaces[n]
                .administration
                .version
                .filter(|_| self.rng.chance(300)),
            dry_run: self.rng.chance(200),
            ..Batch::default()
        };
        for definition in self.temporary.clone() {
            let is_live = self.namespaces[n].ledger.live(definition.path).is_some();
            let options = self.rng.below(10);
            // One in ten may not be there.
            if options == 0 || options < 4 && is_live {
                batch.removed.push(definition.path.to_owned());
            } else if options < 6 {
                batch.ensured.push(server::ensured(&definition));
            }
            // Now and then the batch names one twice.
            if self.rng.chance(20) {
                batch.ensured.push(server::ensured(&definition));
            }
        }
        let path = self.any_subscription();
        if let Some(rule) = self.some_rule(n, path).filter(|_| self.rng.chance(300)) {
            batch.removed_rules.push((path.to_owned(), rule));
        }
        Order::Apply(Box::new(batch))
    }

    fn inquire(&mut self, n: NamespaceIndex) -> Option<Order> {
        let (skip, top) = (self.rng.below(4), 1 + self.rng.below(12));
        let path = match self.rng.below(2) {
            0 => self.any_temporary().path,
            _ => SWITCHED[self.rng.below(SWITCHED.len())],
        };
        let subscription = self.any_subscription();
        let named = self.some_rule(n, subscription);
        let path = self.in_some_case(path);
        let subscription = self.in_some_case(subscription);
        Some(match self.rng.below(6) {
            0 => Order::List {
                of: Listing::Queues,
                skip,
                top,
            },
            1 => Order::List {
                of: Listing::Topics,
                skip,
                top,
            },
            2 => Order::List {
                of: Listing::Subscriptions("News".to_owned()),
                skip,
                top,
            },
            3 => Order::DescribeRule {
                subscription,
                name: named?,
            },
            4 => Order::ListRules {
                subscription,
                skip,
                top,
            },
            _ => Order::Describe { path },
        })
    }

    /// Everything is as it was defined again, and what is not defined goes.
    pub(super) fn restore(&mut self, n: NamespaceIndex) -> Result<(), Violation> {
        self.run_until_idle()?;
        let switched = SWITCHED.map(|path| &self.definitions[queues::index_of(path)]);
        let temporary = self.temporary.iter().map(|definition| definition.path);
        let removed = temporary.filter(|path| self.namespaces[n].ledger.live(path).is_some());
        let batch = Batch {
            ensured: switched.into_iter().map(server::ensured).collect(),
            removed: removed.map(str::to_owned).collect(),
            ..Batch::default()
        };
        let request = self.namespaces[n].administration.request(n);
        let order = Order::Apply(Box::new(batch));
        self.server
            .inbox
            .push(n, server::administer(request, n, order));
        self.run_until_idle()
    }

    /// The broker answers, or says what has changed.
    pub(super) fn administered(&mut self, n: NamespaceIndex, output: Output) {
        match output {
            Output::EntityChanged(change) => {
                let change: EntityChange = *change;
                self.server.follow(change, self.now);
            }
            Output::RulesChanged(namespace, rules) => {
                self.server.follow_rules(namespace, *rules, self.now);
            }
            Output::Administered { result, .. } => {
                self.answered(n);
                if let Ok(Answer::Namespace(namespace)) = *result {
                    self.namespaces[n].administration.version = Some(namespace.version);
                }
            }
            Output::RuleChanged { .. } => self.answered(n),
            _ => {}
        }
    }

    fn answered(&mut self, n: NamespaceIndex) {
        let waiting = &mut self.namespaces[n].administration.waiting;
        *waiting = waiting.saturating_sub(1);
    }
}

/// Entities that come and go.
pub(super) fn temporary() -> Vec<Definition> {
    queues::temporary()
}

fn path_of(definition: &Definition) -> EntityPath {
    let path = definition.path.to_owned();
    match definition.what {
        What::Queue => EntityPath::Queue(path),
        What::Topic => EntityPath::Topic(path),
        What::Subscription { topic, name, .. } => EntityPath::Subscription {
            topic: topic.to_owned(),
            name: name.to_owned(),
        },
    }
}

fn describe(definition: &Definition) -> EntityDescription {
    let dead_letters_failures = match definition.what {
        What::Subscription {
            dead_letters_failures,
            ..
        } => dead_letters_failures,
        What::Queue | What::Topic => true,
    };
    EntityDescription {
        settings: definition.settings.clone(),
        dead_lettering_on_filter_evaluation_exceptions: dead_letters_failures,
        ..EntityDescription::default()
    }
}
