//! Transfer queue: where messages wait that are sent via one entity to another.
//! (docs/spec/amqp.md#8.2)
//!
//! Each pair of a via entity and a destination has one, from the first message on until it has been
//! empty for some time. It is a queue that forwards to the destination: a message that can go on
//! arrives in the step that sends it, or that commits its transaction, and what cannot go on at all
//! becomes a dead letter of the via entity. No path leads to it, so no client can receive from it
//! and no list shows it; it goes with its via entity.
//! Invariant: its stored path is the one by which it is recognized after a restart.

use std::ops::Bound;

use store::{EntityId, NamespaceId};

use crate::api::error::SendError;
use crate::api::forward_error::ForwardError;
use crate::api::id::Subqueue;
use crate::api::incoming::Incoming;
use crate::api::info::SentVia;
use crate::api::lineage::MessageEvent;
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::forward::hop;
use crate::forward::transfer::Transfer;
use crate::queue::kind::Kind;
use crate::receive::run::run;
use crate::send::enqueue::{below, check_sizes};

/// Between the path of the via entity and that of the destination. Names cannot have it.
const SEPARATOR: &str = "/$Transfer/";
/// Most destinations of one via entity at a time.
const MOST_DESTINATIONS: usize = 1_000;
/// Why there is the via entity of a transfer queue.
const HAS_VIA: &str = "a via entity takes its transfer queues along";

/// Whether a stored path is that of a transfer queue, if its via entity is there.
pub(crate) fn is_path(path: &str) -> bool {
    path.contains(SEPARATOR)
}

/// The entity that takes these messages: the one that they are sent to, or its transfer queue for
/// their destination. All messages of a send have the same. A dynamic node of another namespace is
/// not there.
pub(crate) fn route(
    directory: &mut Directory,
    entity: EntityId,
    messages: &[Incoming],
    cx: &mut Context<'_>,
) -> Result<EntityId, SendError> {
    let first = messages.first();
    if let Some(namespace) = first.and_then(|it| it.only_in)
        && let Some(queue) = directory.get(entity)
        && queue.namespace != namespace
    {
        return Err(SendError::NotFound);
    }
    let destination = first.and_then(|it| it.transfer_to.as_deref());
    match destination {
        None => Ok(entity),
        Some(destination) => {
            let sizes = messages.iter().map(|message| message.payload.len() as u64);
            queue_of(directory, entity, destination, sizes, cx)
        }
    }
}

fn queue_of(
    directory: &mut Directory,
    via: EntityId,
    destination: &str,
    sizes: impl Iterator<Item = u64>,
    cx: &mut Context<'_>,
) -> Result<EntityId, SendError> {
    // A transfer queue is kept, which a dynamic node is not.
    let kept = directory.get(via).filter(|queue| !queue.id.is_volatile());
    let queue = kept.ok_or(SendError::NotFound)?;
    if matches!(queue.kind, Kind::Subscription(_)) {
        return Err(SendError::Subscription);
    }
    if !queue.settings.status.allows_send() {
        return Err(SendError::Disabled);
    }
    if cx.shared.nearly_full {
        return Err(SendError::DiskNearlyFull);
    }
    // What waits counts for the via entity, where it is dead-lettered if it cannot go on.
    let held = below(queue, cx).saturating_add(directory.sent_via(via).bytes);
    check_sizes(queue, sizes, held)?;
    let (max_size, max_message_size) = (queue.settings.max_size, queue.settings.max_message_size);
    let (namespace, path) = (queue.namespace, queue.path.clone());
    directory.note_use(via, cx);
    if let Some(id) = directory.transfer_queue(via, destination) {
        let settings = &mut directory.get_mut(id).expect(HAS_VIA).settings;
        settings.max_size = max_size;
        settings.max_message_size = max_message_size;
        // It stays at least for the life of a transaction that has a message for it.
        directory.note_use(id, cx);
        return Ok(id);
    }
    if directory.transfer_queues(via).count() >= MOST_DESTINATIONS {
        let limit = MOST_DESTINATIONS;
        return Err(SendError::TooManyDestinations { limit });
    }
    let settings = QueueSettings {
        forward_to: Some(destination.to_owned()),
        max_size,
        max_message_size,
        ..QueueSettings::default()
    };
    let path = format!("{path}{SEPARATOR}{destination}");
    Ok(directory.create(namespace, path, Kind::Transfer { via }, settings, cx))
}

/// A message of a transfer queue that cannot go on becomes a dead letter of the via entity.
pub(super) fn dead_letter(
    directory: &mut Directory,
    source: EntityId,
    via: EntityId,
    transfer: &Transfer,
    error: &ForwardError,
    cx: &mut Context<'_>,
) {
    let queue = directory.get_mut(source).expect(hop::HAS_PUMP);
    hop::leave(queue, Subqueue::Main, transfer, cx);
    queue.record(transfer.number, || MessageEvent::Forwarded { to: via }, cx);
    let via = directory.get_mut(via).expect(HAS_VIA);
    hop::arrive_stuck(via, transfer.clone(), error.clone(), cx);
    run(via, cx);
}

impl Directory {
    /// What a recovered queue of this path is: a transfer queue, if its via entity is there.
    pub(crate) fn recovered_kind(&self, namespace: NamespaceId, path: &str, kind: Kind) -> Kind {
        let via = path.split_once(SEPARATOR);
        match via.and_then(|(via, _)| self.find(namespace, via)) {
            Some(via) if matches!(kind, Kind::Queue) => Kind::Transfer { via },
            _ => kind,
        }
    }

    /// The transfer queue of a via entity for a destination.
    fn transfer_queue(&self, via: EntityId, destination: &str) -> Option<EntityId> {
        self.transfers
            .get(&(via, destination.to_lowercase()))
            .copied()
    }

    /// All transfer queues of a via entity.
    pub(crate) fn transfer_queues(&self, via: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        let from = Bound::Included((via, String::new()));
        let found = self.transfers.range((from, Bound::Unbounded));
        let found = found.take_while(move |((of, _), _)| *of == via);
        found.map(|(_, id)| *id)
    }

    /// What waits in the transfer queues of a via entity.
    pub(crate) fn sent_via(&self, via: EntityId) -> SentVia {
        let queues = self.transfer_queues(via).filter_map(|id| self.get(id));
        queues.fold(SentVia::default(), |sum, queue| SentVia {
            messages: sum.messages + queue.rows.count(Subqueue::Main.part()),
            bytes: sum.bytes.saturating_add(queue.bytes()),
        })
    }
}
