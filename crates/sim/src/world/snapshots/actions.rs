//! Actions: what a user of snapshots asks for, and what must be true when all is removed.

use broker::{
    Access, Command, Ensured, FilterDescription, NamespaceDefinition, NamespaceOrder, Order,
    Outcome, Priorities, QueueSettings, ReceiveMode, ReceiverId, RequestId, RuleDescription,
    Subqueue, SubqueueId, SubscriptionSettings,
};
use store::{EntityId, NamespaceId, Part, SequenceNumber};

use super::model::{Model, PATHS, Space, changed};
use super::{Asked, INDEX, Snapshots, Wanted};
use crate::message::{self, SendOptions};
use crate::session::Session;
use crate::violation::Violation;
use crate::world::script::incoming;
use crate::world::{World, governed};

/// The namespace that all others are made of.
const ORIGIN: &str = "origin";
/// The most namespaces, and the most snapshots of one of them.
const MOST: usize = 3;
/// Later than any run gets.
const NEVER: u64 = 4_000_000_000_000;

impl World {
    /// The user of snapshots does something, unless it waits for something.
    ///
    /// # Errors
    /// I1.
    pub(in crate::world) fn use_snapshots(&mut self) -> Result<(), Violation> {
        if self.faults_stopped || !matches!(self.snapshots.asked, Asked::Nothing) {
            return Ok(());
        }
        if self.snapshots.doubt.is_some() || self.rng.chance(100) {
            return self.survey_snapshots();
        }
        let Some(name) = self.any_space() else {
            self.snapshots.create(ORIGIN);
            return Ok(());
        };
        if self.queues_of_space(&name).next().is_none() {
            self.ensure_in(&name);
            return Ok(());
        }
        match self.rng.weighted(&[30, 30, 6, 6, 4, 4, 2, 1]) {
            0 => self.send_to_space(&name),
            1 => self.take_from_space(&name),
            2 => self.snapshots.take(&name),
            3 => self.restore_space(&name),
            4 => self.remove_snapshot(&name),
            5 => self.fork_space(&name),
            6 if name != ORIGIN => self.snapshots.remove(&name),
            7 => self.snapshots.reset(&name),
            _ => {}
        }
        Ok(())
    }

    fn any_space(&mut self) -> Option<String> {
        let count = self.snapshots.model.len();
        let at = self.rng.below(count.max(1));
        self.snapshots.model.keys().nth(at).cloned()
    }

    fn any_snapshot(&mut self, name: &str) -> Option<String> {
        let all = &self.snapshots.model[name].snapshots;
        let at = self.rng.below(all.len().max(1));
        all.keys().nth(at).cloned()
    }

    /// The id of a namespace, if it is there.
    pub(in crate::world) fn space_id(&self, name: &str) -> Option<NamespaceId> {
        let mut all = self.server.shard.broker.namespaces();
        let found = all.find(|it| it.definition.as_ref().is_some_and(|it| it.name == name));
        found.map(|it| it.id)
    }

    /// The entities of a namespace.
    fn queues_of_space(&self, name: &str) -> impl Iterator<Item = (String, EntityId)> {
        let broker = &self.server.shard.broker;
        let id = self.space_id(name);
        let all = id.into_iter().flat_map(|id| broker.queues_of(id, self.now));
        all.map(|info| (info.path, info.id))
    }

    fn entity_of_space(&self, name: &str, path: &str) -> EntityId {
        let mut all = self.queues_of_space(name);
        let found = all.find(|(known, _)| known == path);
        found.expect("all entities are made at once").1
    }

    fn ensure_in(&mut self, name: &str) {
        let namespace = self.space_id(name).expect("it was made");
        let request = self.snapshots.request();
        let order = Box::new(Order::ensure(entities()));
        self.snapshots.asked = Asked::Request(request);
        self.snapshots.commands.push(Command::Administer {
            request,
            namespace,
            order,
        });
    }

    fn send_to_space(&mut self, name: &str) {
        let path = ["queue", "by-session", "topic"][self.rng.below(3)];
        let entity = self.entity_of_space(name, path);
        let session = (path == "by-session").then(|| Session::any(&mut self.rng));
        let later = path == "queue" && self.rng.chance(200);
        let options = SendOptions {
            due: later.then_some(NEVER),
            ..SendOptions::default()
        };
        let mut messages = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..=self.rng.below(3) {
            self.snapshots.count += 1;
            let count = (INDEX as u64) << message::NAMESPACE_SHIFT | self.snapshots.count;
            let id = Session::name_message(session, count);
            let payload = message::build(&mut self.rng, id, options, 20);
            self.snapshots.payloads.insert(id, payload.clone());
            messages.push(incoming(id, payload, options));
            ids.push(id);
        }
        let part = match later {
            true => Part::Scheduled,
            false => Part::Active,
        };
        let to: Vec<_> = (0..PATHS.len())
            .filter(|at| PATHS[*at].split('/').next() == Some(path))
            .collect();
        let next = changed(&self.snapshots.model, name, |space| {
            let all = ids
                .iter()
                .flat_map(|id| to.iter().map(move |at| (*at, part, *id)));
            space.content.extend(all);
        });
        let request = RequestId {
            connection: self.snapshots.connection(),
            token: 1,
        };
        self.snapshots.ask(request, Some(next));
        self.snapshots.commands.push(Command::Send {
            request,
            entity,
            messages,
        });
    }

    /// Wants one of the messages that are there.
    fn take_from_space(&mut self, name: &str) {
        let content = &self.snapshots.model[name].content;
        let can_be_taken = |path: usize, part| {
            PATHS[path] != "by-session" && part == Part::Active || part == Part::DeadLetter
        };
        let places = content.iter().map(|(path, part, _)| (*path, *part));
        let mut places: Vec<_> = places.filter(|it| can_be_taken(it.0, it.1)).collect();
        places.dedup();
        if places.is_empty() {
            return;
        }
        let (path, part) = places[self.rng.below(places.len())];
        let is_dead = part == Part::DeadLetter;
        let changes = Vec::new();
        let outcome = match self.rng.below(6) {
            0 if !is_dead => Outcome::DeadLetter { changes },
            1 if !is_dead => Outcome::Defer { changes },
            2 => Outcome::Release,
            _ => Outcome::Complete,
        };
        let entity = self.entity_of_space(name, PATHS[path]);
        let subqueue = match is_dead {
            true => Subqueue::DeadLetter,
            false => Subqueue::Main,
        };
        self.snapshots.receive(Wanted {
            name: name.to_owned(),
            path,
            subqueue: SubqueueId { entity, subqueue },
            outcome,
        });
    }

    pub(super) fn restore_space(&mut self, name: &str) {
        if let Some(snapshot) = self.any_snapshot(name) {
            let next = changed(&self.snapshots.model, name, |space| {
                space.content = space.snapshots[&snapshot].clone();
            });
            let name = name.to_owned();
            self.snapshots
                .order(NamespaceOrder::Restore { name, snapshot }, next);
        }
    }

    fn remove_snapshot(&mut self, name: &str) {
        if let Some(snapshot) = self.any_snapshot(name) {
            let next = changed(&self.snapshots.model, name, |space| {
                space.snapshots.remove(&snapshot);
            });
            let name = name.to_owned();
            self.snapshots
                .order(NamespaceOrder::RemoveSnapshot { name, snapshot }, next);
        }
    }

    fn fork_space(&mut self, name: &str) {
        if self.snapshots.model.len() >= MOST {
            return;
        }
        let snapshot = match self.rng.chance(500) {
            true => self.any_snapshot(name),
            false => None,
        };
        self.snapshots.fork(name, snapshot);
    }

    /// Looks at everything, once nothing is on its way between entities.
    ///
    /// # Errors
    /// I1, when there are no namespaces and should be.
    pub(super) fn survey_snapshots(&mut self) -> Result<(), Violation> {
        let all = self.server.shard.broker.namespaces();
        let own = all.filter(|it| it.id >= crate::server::namespace_id(INDEX));
        let names = own.filter_map(|it| Some(it.definition?.name.clone()));
        let names: Vec<_> = names.filter(|name| name != governed::NAME).collect();
        let is_moving = |name: &String| {
            let id = self.space_id(name);
            let mut all = id
                .into_iter()
                .flat_map(|id| self.server.shard.broker.queues_of(id, self.now));
            all.any(|info| info.path == "topic" && info.active > 0)
        };
        if names.iter().any(is_moving) {
            return Ok(());
        }
        let spaces = names.into_iter().map(|name| {
            let known = self.queues_of_space(&name);
            let at = |path: &str| PATHS.iter().position(|known| *known == path);
            let entities = known.filter_map(|(path, entity)| Some((at(&path)?, entity)));
            let entities = entities.collect();
            (name, entities)
        });
        let spaces = spaces.collect();
        self.snapshots.survey(spaces)
    }

    /// The end of a run: everything is as it must be, and when it is removed, nothing is left.
    ///
    /// # Errors
    /// I1, I9 or I14.
    pub(in crate::world) fn drain_snapshots(&mut self) -> Result<(), Violation> {
        self.run_until_idle()?;
        self.check_answered()?;
        self.survey_snapshots()?;
        self.run_until_idle()?;
        self.check_answered()?;
        while let Some(name) = self.any_space() {
            self.snapshots.remove(&name);
            self.run_until_idle()?;
            self.check_answered()?;
        }
        let others = self.space_id(governed::NAME);
        self.disk.with_current(|image| {
            let first = crate::server::namespace_id(INDEX);
            let is_left =
                |row: &&store::EntityRow| row.namespace >= first && Some(row.namespace) != others;
            let left = image.entities.values().find(is_left);
            let mut bodies = image.bodies.keys();
            let body = bodies.find(|(home, _)| !image.entities.contains_key(home));
            if left.is_none() && body.is_none() {
                return Ok(());
            }
            let what = format!("of namespaces that were removed {left:?} and {body:?} are left");
            Err(Violation::new("I9", what))
        })
    }

    fn check_answered(&self) -> Result<(), Violation> {
        let asked = &self.snapshots.asked;
        if matches!(asked, Asked::Nothing) {
            return Ok(());
        }
        let what = format!("the user of snapshots still waits: {asked:?}");
        Err(Violation::new("I14", what))
    }
}

impl Snapshots {
    fn ask(&mut self, request: RequestId, next: Option<Model>) {
        self.asked = Asked::Request(request);
        self.next = next;
    }

    fn order(&mut self, order: NamespaceOrder, next: Model) {
        let request = self.request();
        self.ask(request, Some(next));
        self.commands.push(about_namespaces(request, order));
    }

    fn create(&mut self, name: &str) {
        let mut next = self.model.clone();
        next.insert(name.to_owned(), Space::default());
        let order = NamespaceOrder::Create {
            definition: named(name),
            like: None,
        };
        self.order(order, next);
    }

    fn take(&mut self, name: &str) {
        if self.model[name].snapshots.len() >= MOST {
            return;
        }
        self.count += 1;
        let snapshot = format!("s{}", self.count);
        let next = changed(&self.model, name, |space| {
            let content = space.content.clone();
            space.snapshots.insert(snapshot.clone(), content);
        });
        let name = name.to_owned();
        self.order(NamespaceOrder::TakeSnapshot { name, snapshot }, next);
    }

    fn fork(&mut self, name: &str, snapshot: Option<String>) {
        self.count += 1;
        let fork = format!("f{}", self.count);
        let space = &self.model[name];
        let content = match &snapshot {
            Some(snapshot) => space.snapshots[snapshot].clone(),
            None => space.content.clone(),
        };
        let mut next = self.model.clone();
        let made = Space {
            content,
            ..Space::default()
        };
        next.insert(fork.clone(), made);
        let order = NamespaceOrder::Fork {
            name: name.to_owned(),
            snapshot,
            definition: named(&fork),
        };
        self.order(order, next);
    }

    fn remove(&mut self, name: &str) {
        let mut next = self.model.clone();
        next.remove(name);
        self.order(NamespaceOrder::Remove(name.to_owned()), next);
    }

    /// Its snapshots stay.
    fn reset(&mut self, name: &str) {
        let next = changed(&self.model, name, |space| space.content.clear());
        self.order(NamespaceOrder::Reset(name.to_owned()), next);
    }

    fn receive(&mut self, wanted: Wanted) {
        let receiver = ReceiverId {
            connection: self.connection(),
            link: 0,
        };
        self.commands.push(Command::Attach {
            receiver,
            subqueue: wanted.subqueue,
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
        self.commands.push(Command::Credit {
            receiver,
            limit: 1,
            drain: false,
        });
        self.asked = Asked::Delivery(wanted);
    }
}

/// Asks for all messages of a subqueue.
pub(in crate::world) fn peek_all(request: RequestId, subqueue: SubqueueId) -> Command {
    Command::Peek {
        request,
        subqueue,
        state: None,
        from: SequenceNumber::FIRST,
        count: usize::MAX,
        max_bytes: usize::MAX,
    }
}

pub(super) fn list_snapshots(request: RequestId, name: String) -> Command {
    about_namespaces(request, NamespaceOrder::ListSnapshots(name))
}

fn about_namespaces(request: RequestId, order: NamespaceOrder) -> Command {
    Command::Administer {
        request,
        namespace: NamespaceId::default(),
        order: Box::new(Order::Namespaces(order)),
    }
}

fn named(name: &str) -> Box<NamespaceDefinition> {
    Box::new(NamespaceDefinition {
        name: name.to_owned(),
        ..NamespaceDefinition::default()
    })
}

/// The entities of all these namespaces.
fn entities() -> Vec<Ensured> {
    let settings = QueueSettings {
        lock_duration: 60_000,
        max_delivery_count: 1_000,
        ..QueueSettings::default()
    };
    let queue = |path: &str, requires_session| Ensured::Queue {
        path: path.to_owned(),
        settings: QueueSettings {
            requires_session,
            priorities: (!requires_session).then_some(Priorities::QUORUM),
            ..settings.clone()
        },
    };
    let subscription = |name: &str, rules| Ensured::Subscription {
        topic: "topic".to_owned(),
        name: name.to_owned(),
        settings: Box::new(SubscriptionSettings {
            queue: settings.clone(),
            dead_lettering_on_filter_evaluation_exceptions: false,
        }),
        rules,
    };
    // What it changes has a body of its own.
    let changing = RuleDescription {
        name: "changing".to_owned(),
        filter: FilterDescription::Sql("1 = 1".to_owned()),
        action: Some("SET x = 1".to_owned()),
        ..RuleDescription::default()
    };
    vec![
        queue("queue", false),
        queue("by-session", true),
        Ensured::Topic {
            path: "topic".to_owned(),
            settings: QueueSettings::default(),
        },
        subscription("all", None),
        subscription("changed", Some(vec![changing])),
    ]
}
