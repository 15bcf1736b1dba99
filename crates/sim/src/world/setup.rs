//! Set-up: the entities as the ledger knows them, and the clients that work with them.

use broker::{Expiry, Mono, Now, Subqueue};
use store::EntityId;

use super::queues::{self, Definition, What};
use super::{SimClient, administration};
use crate::actor::Actor;
use crate::controller::Controller;
use crate::declarer::Declarer;
use crate::holder::Holder;
use crate::inbox::NamespaceIndex;
use crate::ledger::Queue;
use crate::manager::{Manager, Role};
use crate::publisher::Publisher;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::server::{self, Server};
use crate::spoken::Spoken;
use crate::topology;

/// The entities of a namespace in the order of their definitions.
pub(super) fn ledger_queues(
    server: &Server,
    namespace: NamespaceIndex,
    definitions: &[Definition],
    now: Now,
) -> Vec<Queue> {
    let broker = &server.shard.broker;
    let id = server::namespace_id(namespace);
    let known: Vec<_> = broker.queues_of(id, now).collect();
    let queue = |definition: &Definition| {
        let info = known.iter().find(|info| info.path == definition.path);
        let info = info.expect("every entity is ensured");
        ledger_queue(info.id, definition)
    };
    definitions.iter().map(queue).collect()
}

/// One entity.
pub(super) fn ledger_queue(id: EntityId, definition: &Definition) -> Queue {
    let settings = &definition.settings;
    let target = |path: &Option<String>| path.as_deref().map(queues::index_of);
    let (topic, dead_letters_failures) = match &definition.what {
        What::Subscription {
            topic,
            dead_letters_failures,
            ..
        } => (Some(queues::index_of(topic)), *dead_letters_failures),
        What::Queue | What::Topic => (None, false),
    };
    Queue {
        path: definition.path,
        id,
        lock_duration: settings.lock_duration,
        max_delivery_count: settings.max_delivery_count,
        default_ttl: settings.default_message_time_to_live,
        dead_letters_expired: settings.dead_lettering_on_message_expiration,
        drops_dead_letters: settings.drops_dead_letters(),
        sessions: settings.requires_session,
        cloud: settings.expiry == Some(Expiry::Cloud),
        duplicate_window: settings
            .requires_duplicate_detection
            .then_some(settings.duplicate_detection_history_time_window),
        forwards_to: target(&settings.forward_to),
        forwards_dead_letters_to: target(&settings.forward_dead_lettered_messages_to),
        receive_and_delete: definition.path == queues::FAST,
        is_topic: matches!(definition.what, What::Topic),
        topic,
        dead_letters_failures,
        auto_delete_on_idle: settings.auto_delete_on_idle,
        expires: settings.expires,
        max_length: settings.max_length,
        overflow: settings.overflow,
        retry_backoff: settings.retry_backoff,
        priorities: settings.priorities,
        status: settings.status,
        going: false,
        gone: false,
        unsteady: false,
        used: Mono(0),
        began: Mono(0),
    }
}

/// All clients that work with the entities.
pub(super) fn clients() -> Vec<SimClient> {
    let definitions = queues::definitions();
    let mut actors: Vec<Actor> = definitions
        .iter()
        .enumerate()
        .flat_map(|(index, definition)| actors_of(index, definition))
        .collect();
    for definition in administration::temporary() {
        let path = definition.path;
        if definition.is_open(Subqueue::Main) {
            actors.push(Actor::Receiver(Receiver::new(path, Subqueue::Main, false)));
        }
        if definition.takes_sends() {
            actors.push(Actor::Sender(Sender::new(path, Spoken::ServiceBus)));
        }
        if topology::DECLARED.contains(&path) {
            actors.push(Actor::Receiver(Receiver::consumer(path)));
        }
    }
    actors.extend((0..2).map(|_| Actor::Publisher(Publisher::default())));
    actors.extend((0..2).map(|_| Actor::Declarer(Declarer::default())));
    actors.extend((0..6).map(|_| Actor::Controller(Controller::new())));
    actors
        .into_iter()
        .map(|actor| SimClient {
            actor,
            remote: None,
        })
        .collect()
}

/// The queues that clients of RabbitMQ's dialect work with too.
const CONSUMED: [&str; 3] = ["plain", "expires-to-dead-letter", queues::LIMITED];

/// The actors that work with one entity alone.
fn actors_of(index: usize, definition: &Definition) -> Vec<Actor> {
    let path = definition.path;
    let fast = path == queues::FAST;
    let receiver = |subqueue, settled| {
        let open = definition.is_open(subqueue);
        open.then(|| Actor::Receiver(Receiver::new(path, subqueue, settled)))
    };
    let mut actors = Vec::new();
    if definition.settings.requires_session {
        actors.extend((0..3).map(|_| Actor::Holder(Holder::new(index, path))));
    } else {
        actors.extend(receiver(Subqueue::Main, fast));
        actors.extend(receiver(Subqueue::Main, fast));
    }
    if !fast {
        let role = Role::of(definition);
        actors.extend(receiver(Subqueue::DeadLetter, false));
        actors.push(Actor::Manager(Manager::new(index, path, role)));
    }
    if definition.takes_sends() {
        actors.push(Actor::Sender(Sender::new(path, Spoken::ServiceBus)));
    }
    if CONSUMED.contains(&path) {
        actors.push(Actor::Sender(Sender::new(path, Spoken::RabbitMq)));
        actors.push(Actor::Receiver(Receiver::consumer(path)));
    }
    actors
}
