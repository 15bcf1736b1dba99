//! Actions: what the user of the governed namespace asks for, and what must be true in the end.

use broker::{
    Access, ApplyTo, ClientAffineProperties, Command, ConnectionId, Ensured, EntityDescription,
    EntityKind, EntityPath, NamespaceDefinition, NamespaceOrder, Order, Policy, PolicyLayer,
    QueueInfo, QueueSettings, ReceiveMode, ReceiverId, Subqueue, SubqueueId, SubscribeRequest,
};
use store::{EntityId, NamespaceId};

use super::model::{
    LEASE, LEASED, LENGTH, PATTERNS, PolicyKey, QUEUE, REFUSING, TOPIC, definition,
};
use super::{Asked, Consumer, Governed, INDEX, NAME, Survey};
use crate::message::{self, SendOptions};
use crate::server;
use crate::violation::Violation;
use crate::world::World;
use crate::world::script::incoming;

/// The exclusive queue.
const OWN: &str = "own";
/// Subscriptions that consumers ask for, and whether they are durable and shared.
const SUBSCRIPTIONS: [(&str, bool, bool); 3] = [
    ("kept", true, false),
    ("common", true, true),
    ("passing", false, true),
];
const NAMES: [&str; 3] = ["a", "b", "c"];

impl World {
    /// The user does something, unless it waits for an answer.
    ///
    /// # Errors
    /// I1 or I13.
    pub(in crate::world) fn use_governed(&mut self) -> Result<(), Violation> {
        let waits = !matches!(self.governed.asked, Asked::Nothing);
        if self.faults_stopped || waits || !self.governed.commands.is_empty() {
            return Ok(());
        }
        let Some((namespace, infos)) = self.look_at_governed()? else {
            self.make_governed();
            return Ok(());
        };
        if self.governed.doubt.is_some() {
            self.governed.list_policies(namespace, None);
            return Ok(());
        }
        for info in &infos {
            self.governed.model.check_rules(info)?;
        }
        let is_missing = |path: &&str| infos.iter().all(|info| info.path != **path);
        if [QUEUE, LEASED, REFUSING, TOPIC].iter().any(is_missing) {
            self.governed.ensure(namespace);
            return Ok(());
        }
        let user = self.rng.below(2);
        let Some(connection) = self.governed.users[user] else {
            let connection = self.governed.next_connection();
            self.governed.users[user] = Some(connection);
            return Ok(());
        };
        // What is published goes to the subscriptions of that moment.
        let is_publishing = infos
            .iter()
            .any(|it| it.kind == EntityKind::Topic && it.active > 0);
        match self.rng.weighted(&[10, 4, 30, 8, 6, 4, 4, 8, 3, 3]) {
            0 => self.change_policy(namespace),
            1 => {
                let layer = self.any_layer();
                self.governed.list_policies(namespace, Some(layer));
            }
            2 => self.send_to_governed(&infos),
            3 if !is_publishing => self.subscribe(connection, &infos),
            4 if !is_publishing => self.unsubscribe(namespace, &infos),
            5 => self.governed.own(namespace, connection, &infos),
            6 => self.governed.intrude(&infos),
            7 => self.attach_to_any(connection, &infos),
            8 if !is_publishing => self.governed.leave(user),
            9 if !is_publishing => self.governed.survey(&infos),
            _ => {}
        }
        Ok(())
    }

    /// The namespace, if it is there, and its entities, which are what they must be.
    pub(super) fn look_at_governed(
        &mut self,
    ) -> Result<Option<(NamespaceId, Vec<QueueInfo>)>, Violation> {
        let Some(namespace) = self.space_id(NAME) else {
            return match self.governed.model.places.is_empty() {
                true => Ok(None),
                false => {
                    let what = "the governed namespace is gone".to_owned();
                    Err(Violation::new("I1", what))
                }
            };
        };
        let broker = &self.server.shard.broker;
        let infos: Vec<_> = broker.queues_of(namespace, self.now).collect();
        let expired = self.governed.model.check_places(&infos)?;
        self.governed.done.expired_entities += expired;
        Ok(Some((namespace, infos)))
    }

    fn make_governed(&mut self) {
        let request = self.governed.request(ConnectionId::SERVER);
        let definition = Box::new(NamespaceDefinition {
            name: NAME.to_owned(),
            ..NamespaceDefinition::default()
        });
        let order = Order::Namespaces(NamespaceOrder::Create {
            definition,
            like: None,
        });
        self.governed.asked = Asked::Namespace;
        let command = server::administer(request, 0, order);
        self.governed.commands.push(command);
    }

    fn any_layer(&mut self) -> PolicyLayer {
        match self.rng.chance(300) {
            true => PolicyLayer::Operator,
            false => PolicyLayer::User,
        }
    }

    fn change_policy(&mut self, namespace: NamespaceId) {
        let known = self.governed.model.names_of_policies();
        if !known.is_empty() && self.rng.chance(400) {
            let key = known[self.rng.below(known.len())].clone();
            self.governed.put_policy(namespace, key, None);
            return;
        }
        let layer = self.any_layer();
        let name = NAMES[self.rng.below(NAMES.len())].to_owned();
        let ttl = self.rng.between(5_000, 600_000);
        let definition = match self.rng.below(4) {
            0 => definition(&[("message-ttl", ttl)]),
            1 => definition(&[("max-length", self.rng.between(1, 6))]),
            2 => definition(&[("expires", self.rng.between(5_000, 300_000))]),
            _ => definition(&[("message-ttl", ttl), ("max-length", 4)]),
        };
        let policy = Policy {
            name: name.clone(),
            layer,
            pattern: PATTERNS[self.rng.below(PATTERNS.len())].to_owned(),
            apply_to: ApplyTo::All,
            priority: (self.rng.below(3) as u64).into(),
            definition,
        };
        self.governed
            .put_policy(namespace, (layer, name), Some(policy));
    }

    fn send_to_governed(&mut self, infos: &[QueueInfo]) {
        let all = infos
            .iter()
            .filter(|it| it.kind != EntityKind::Subscription);
        let all: Vec<_> = all.collect();
        let to = all[self.rng.below(all.len())];
        let entity = to.id;
        let places = &self.governed.model.places;
        let to: Vec<String> = match to.kind {
            EntityKind::Topic => {
                let all = places.iter();
                let all = all.filter(|(_, place)| place.kind == EntityKind::Subscription);
                all.map(|(path, _)| path.clone()).collect()
            }
            _ => vec![to.path.clone()],
        };
        self.governed.count += 1;
        let id = (INDEX as u64) << message::NAMESPACE_SHIFT | self.governed.count;
        let options = SendOptions::default();
        let payload = message::build(&mut self.rng, id, options, 20);
        self.governed.model.send(&to, id, payload.clone());
        let connection = self.governed.next_connection();
        let request = self.governed.request(connection);
        self.governed.asked = Asked::Send { to, id };
        self.governed.commands.push(Command::Send {
            request,
            entity,
            messages: vec![incoming(id, payload, options)],
        });
    }

    fn subscribe(&mut self, connection: ConnectionId, infos: &[QueueInfo]) {
        let (name, is_durable, mut is_shared) = SUBSCRIPTIONS[self.rng.below(SUBSCRIPTIONS.len())];
        // Now and then as the other kind, which it can only become when it is made anew.
        is_shared ^= is_durable && self.rng.chance(100);
        let path = path_of(name, is_durable);
        let place = self.governed.model.places.get(&path);
        if place.is_some_and(|place| place.is_going) {
            return;
        }
        let has_consumers = self.governed.has_consumers(&path);
        let is_refused =
            place.is_some_and(|it| it.is_shared != is_shared || !is_shared && has_consumers);
        let kind = EntityKind::Subscription;
        let model = &mut self.governed.model;
        model.ask_for(&path, kind, is_shared, !is_durable);
        let properties = ClientAffineProperties {
            client_id: String::new(),
            is_durable,
            is_shared,
            selector: None,
        };
        let receiver = self.governed.next_receiver(connection);
        let topic = entity_of(infos, TOPIC);
        self.governed.asked = Asked::Subscribe { path, is_refused };
        self.governed.commands.push(Command::Subscribe {
            receiver,
            request: Box::new(SubscribeRequest {
                topic,
                name: Some(name.to_owned()),
                properties,
                auto_delete_on_idle: u64::MAX,
                mode: ReceiveMode::PeekLock,
            }),
        });
    }

    fn unsubscribe(&mut self, namespace: NamespaceId, infos: &[QueueInfo]) {
        let durable = SUBSCRIPTIONS
            .iter()
            .filter(|(_, is_durable, _)| *is_durable);
        let paths = durable.map(|(name, ..)| path_of(name, true));
        let there: Vec<_> = paths
            .filter(|path| infos.iter().any(|info| info.path == *path))
            .collect();
        if there.is_empty() {
            return;
        }
        let path = there[self.rng.below(there.len())].clone();
        let (_, name) = path.rsplit_once('/').expect("a subscription's path");
        let order = Order::Unsubscribe {
            name: name.to_owned(),
        };
        let is_refused = self.governed.has_consumers(&path);
        if !is_refused && let Some(place) = self.governed.model.places.get_mut(&path) {
            place.is_sure = false;
        }
        self.governed
            .administer(namespace, order, Asked::Unsubscribe { path, is_refused });
    }

    /// A consumer comes to a queue that its connection may receive from.
    fn attach_to_any(&mut self, connection: ConnectionId, infos: &[QueueInfo]) {
        let all = infos.iter().filter(|info| info.kind == EntityKind::Queue);
        let is_open =
            |info: &&QueueInfo| !info.settings.exclusive || self.governed.owner == Some(connection);
        let all: Vec<_> = all.filter(is_open).collect();
        let info = all[self.rng.below(all.len())];
        let place = main(info.id);
        let receiver = self.governed.next_receiver(connection);
        self.governed.attach(receiver, place);
        self.governed.consume(receiver, info.path.clone(), place);
    }
}

impl Governed {
    fn next_receiver(&mut self, connection: ConnectionId) -> ReceiverId {
        self.count += 1;
        let link = u32::try_from(self.count).expect("a run is not that long");
        ReceiverId { connection, link }
    }

    fn administer(&mut self, namespace: NamespaceId, order: Order, asked: Asked) {
        let request = self.request(ConnectionId::SERVER);
        self.asked = asked;
        self.commands.push(Command::Administer {
            request,
            namespace,
            order: Box::new(order),
        });
    }

    /// Lists the policies of a layer, or of the one in which a change is in doubt.
    pub(super) fn list_policies(&mut self, namespace: NamespaceId, layer: Option<PolicyLayer>) {
        let doubted = self.doubt.as_ref().map(|((layer, _), _)| *layer);
        let layer = layer.or(doubted).unwrap_or_default();
        let order = Order::ListPolicies(layer);
        self.administer(namespace, order, Asked::Policies(layer));
    }

    pub(super) fn put_policy(
        &mut self,
        namespace: NamespaceId,
        key: PolicyKey,
        policy: Option<Policy>,
    ) {
        self.model.ask_policy(&key, policy.as_ref());
        let order = match &policy {
            Some(policy) => Order::PutPolicy(Box::new(policy.clone())),
            None => Order::RemovePolicy {
                layer: key.0,
                name: key.1.clone(),
            },
        };
        self.administer(namespace, order, Asked::Policy(key, policy));
    }

    fn ensure(&mut self, namespace: NamespaceId) {
        let settings = QueueSettings {
            lock_duration: 5_000,
            max_delivery_count: 1_000,
            ..QueueSettings::default()
        };
        let leased = QueueSettings {
            expires: LEASE,
            ..settings.clone()
        };
        let refusing = QueueSettings {
            max_length: Some(LENGTH),
            overflow: self.overflow,
            ..settings.clone()
        };
        for path in [QUEUE, LEASED, REFUSING] {
            self.model.ask_for(path, EntityKind::Queue, false, false);
        }
        self.model.ask_for(TOPIC, EntityKind::Topic, false, false);
        let all = vec![
            Ensured::Queue {
                path: QUEUE.to_owned(),
                settings,
            },
            Ensured::Queue {
                path: LEASED.to_owned(),
                settings: leased,
            },
            Ensured::Queue {
                path: REFUSING.to_owned(),
                settings: refusing,
            },
            Ensured::Topic {
                path: TOPIC.to_owned(),
                settings: QueueSettings::default(),
            },
        ];
        self.administer(namespace, Order::ensure(all), Asked::Entities);
    }

    /// A connection makes a queue of its own.
    fn own(&mut self, namespace: NamespaceId, connection: ConnectionId, infos: &[QueueInfo]) {
        if infos.iter().any(|info| info.path == OWN) {
            return;
        }
        self.model.ask_for(OWN, EntityKind::Queue, false, true);
        self.owner = Some(connection);
        let request = self.request(connection);
        let settings = QueueSettings {
            exclusive: true,
            lock_duration: 5_000,
            ..QueueSettings::default()
        };
        let path = OWN.to_owned();
        self.asked = Asked::Queue { path: path.clone() };
        self.commands.push(Command::Administer {
            request,
            namespace,
            order: Box::new(Order::Create {
                path: EntityPath::Queue(path),
                description: Box::new(EntityDescription {
                    settings,
                    ..EntityDescription::default()
                }),
                rules: None,
            }),
        });
    }

    /// A connection that is no user's comes for an exclusive queue.
    fn intrude(&mut self, infos: &[QueueInfo]) {
        if let Some(info) = infos.iter().find(|info| info.path == OWN) {
            let connection = self.next_connection();
            let receiver = self.next_receiver(connection);
            self.asked = Asked::Intrude(receiver);
            self.attach(receiver, main(info.id));
            self.commands.push(Command::Credit {
                receiver,
                limit: 10,
                drain: false,
            });
        }
    }

    fn attach(&mut self, receiver: ReceiverId, subqueue: SubqueueId) {
        self.commands.push(Command::Attach {
            receiver,
            subqueue,
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
    }

    /// A connection ends, and with it what is its own.
    pub(super) fn leave(&mut self, user: usize) {
        let Some(connection) = self.users[user].take() else {
            return;
        };
        let own = |receiver: &ReceiverId| receiver.connection == connection;
        let left: Vec<Consumer> = self
            .consumers
            .extract_if(.., |it, _| own(it))
            .map(|it| it.1)
            .collect();
        for Consumer { path, .. } in left {
            let is_last = !self.has_consumers(&path);
            let ends = |place: &super::model::Place| {
                place.passes && place.kind == EntityKind::Subscription
            };
            if is_last && self.model.places.get(&path).is_some_and(ends) {
                self.model.end(&path);
            }
        }
        if self.owner == Some(connection) {
            self.owner = None;
            self.model.end(OWN);
        }
        self.commands.push(Command::Disconnect { connection });
    }

    pub(super) fn survey(&mut self, infos: &[QueueInfo]) {
        let all = infos.iter().filter(|info| info.kind != EntityKind::Topic);
        let places = all.map(|info| (info.path.clone(), main(info.id)));
        self.look(Survey {
            places: places.collect(),
            ..Survey::default()
        });
    }
}

fn path_of(name: &str, is_durable: bool) -> String {
    let kind = if is_durable { "D" } else { "ND" };
    format!("{TOPIC}/Subscriptions/{name}$${kind}")
}

fn entity_of(infos: &[QueueInfo], path: &str) -> EntityId {
    let found = infos.iter().find(|info| info.path == path);
    found.expect("it is there").id
}

fn main(entity: EntityId) -> SubqueueId {
    SubqueueId {
        entity,
        subqueue: Subqueue::Main,
    }
}
