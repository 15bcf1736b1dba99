//! Publish: a message goes to all queues and topics that the bindings of its router tell.
//!
//! Each destination takes it as it takes a message of its own sender: it checks its status, its
//! size and the message's session, looks for duplicates, and gives it a number. What one refuses
//! the others keep; a namespace has room for all copies or takes none. All copies are in one write
//! set. Copies in queues share one stored body, unless they are scheduled; a topic has a body of
//! its own, which its subscriptions share.
//! (docs/spec/rabbitmq.md#9)

use std::collections::BTreeMap;

use store::{BodyPointer, EntityId, StoreError, Write};

use super::waiting::Waiting;
use crate::api::error::SendError;
use crate::api::id::{ConnectionId, ReadId, RequestId};
use crate::api::output::Output;
use crate::api::publication::{Publication, PublishError, Routed};
use crate::api::router::MAX_COPIED_BYTES;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::bodies::Body;
use crate::message::id::IdHash;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::receive::run::run;
use crate::send::duplicates::known::Known;
use crate::send::{enqueue, refused};

/// Why there is a destination.
const THERE: &str = "it was found in this step";

/// What a destination says to a message that would arrive.
enum Arrival {
    Take,
    /// The destination has it already.
    Duplicate,
    Refused(SendError),
    /// The store has to be asked.
    Ask,
}

/// What is known of a message's id, by entity.
type Answers = BTreeMap<EntityId, Result<Known, StoreError>>;

/// Routes a message, and answers.
pub(crate) fn publish(
    directory: &mut Directory,
    request: RequestId,
    publication: Publication,
    cx: &mut Context<'_>,
) {
    let waiting = Waiting::new(request, publication);
    if cx.shared.publications.are_waiting(request.connection) {
        cx.shared.publications.push(waiting);
    } else if let Some(waiting) = advance(directory, waiting, cx) {
        cx.shared.publications.push(waiting);
    }
}

/// An id was looked up: the messages of the connection go on.
pub(crate) fn looked_up(
    directory: &mut Directory,
    read: ReadId,
    connection: ConnectionId,
    known: Result<Known, StoreError>,
    cx: &mut Context<'_>,
) {
    let first = cx.shared.publications.first(connection);
    let first = first.expect("a message waits until its lookups are answered");
    let asked = first.reads.get_mut(&read);
    asked.expect("it was asked for this message").1 = Some(known);
    if !first.is_answered() {
        return;
    }
    while let Some(waiting) = cx.shared.publications.take_first(connection) {
        if let Some(waiting) = advance(directory, waiting, cx) {
            return cx.shared.publications.push_first(waiting);
        }
    }
}

/// Stores a message and answers, or returns it if it has to wait for the store.
fn advance(
    directory: &mut Directory,
    mut waiting: Waiting,
    cx: &mut Context<'_>,
) -> Option<Waiting> {
    cx.enter(waiting.publication.namespace);
    let answers = directory.take_answers(&mut waiting);
    let destinations = match directory.route(&waiting.publication) {
        Ok(destinations) => destinations,
        Err(error) => {
            answer(waiting.request, Err(error), cx);
            return None;
        }
    };
    let mut arrivals = Vec::with_capacity(destinations.len());
    for id in destinations {
        let queue = directory.get_mut(id).expect(THERE);
        let arrival = check_arrival(queue, &waiting.publication, &answers, cx);
        arrivals.push((id, arrival));
    }
    if arrivals.iter().any(|(_, it)| matches!(it, Arrival::Ask)) {
        // What was answered already may be forgotten until the other answers come.
        let asked = arrivals
            .iter()
            .filter(|(id, arrival)| matches!(arrival, Arrival::Ask) || answers.contains_key(id));
        for (id, _) in asked {
            directory.look_up_id(&mut waiting, *id, cx);
        }
        return Some(waiting);
    }
    let result = directory
        .check_copies(&waiting.publication, &arrivals, cx)
        .and_then(|()| directory.check_namespace(&waiting.publication, &arrivals, cx))
        .and_then(|()| directory.store(&waiting.publication, &arrivals, cx));
    answer(waiting.request, result, cx);
    None
}

fn answer(request: RequestId, result: Result<Routed, PublishError>, cx: &mut Context<'_>) {
    cx.emit(Output::Published { request, result });
}

fn check_arrival(
    queue: &mut Queue,
    publication: &Publication,
    answers: &Answers,
    cx: &mut Context<'_>,
) -> Arrival {
    let message = &publication.message;
    let refusal = enqueue::check_room(queue, std::slice::from_ref(message), 0, cx).err();
    let detects = queue.settings.requires_duplicate_detection;
    let keeps = |error: &SendError| refused::becomes_dead_letter(queue, error, cx);
    // A duplicate is no dead letter.
    let asks = detects && refusal.as_ref().is_none_or(keeps);
    let arrival = refusal.map_or(Arrival::Take, Arrival::Refused);
    let Some(id) = IdHash::of(message).filter(|_| asks) else {
        return arrival;
    };
    let none = Known::default();
    let known = match answers.get(&queue.id) {
        Some(Ok(known)) => known,
        Some(Err(_)) => return Arrival::Refused(SendError::Unreadable),
        None => match queue.duplicates.known_at_once(id, &queue.rows, cx) {
            Some(_) => &none,
            None => return Arrival::Ask,
        },
    };
    let before = queue
        .duplicates
        .duplicate_of(id, known, &queue.settings, cx);
    match before {
        Some(_) => Arrival::Duplicate,
        None => arrival,
    }
}

impl Directory {
    /// Asks an entity's history for the id of a message that has one.
    fn look_up_id(&mut self, waiting: &mut Waiting, entity: EntityId, cx: &mut Context<'_>) {
        let queue = self.get_mut(entity).expect(THERE);
        let id = IdHash::of(&waiting.publication.message);
        let id = id.expect("only ids are looked up");
        let purpose = Purpose::Publication(entity, waiting.request.connection);
        let (duplicates, rows) = (&mut queue.duplicates, &queue.rows);
        let read = duplicates.look_up_one(id, purpose, rows, cx);
        waiting.reads.insert(read, (entity, None));
    }

    /// What the store has answered about a message. An entity may have gone since.
    fn take_answers(&mut self, waiting: &mut Waiting) -> Answers {
        let mut answers = Answers::new();
        for (read, (entity, known)) in std::mem::take(&mut waiting.reads) {
            if let Some(queue) = self.get_mut(entity) {
                queue.duplicates.release_lookup(read);
                answers.extend(known.map(|known| (entity, known)));
            }
        }
        answers
    }

    /// Whether the copies that share no body fit in one write set.
    fn check_copies(
        &self,
        publication: &Publication,
        arrivals: &[(EntityId, Arrival)],
        cx: &Context<'_>,
    ) -> Result<(), PublishError> {
        let message = &publication.message;
        let is_scheduled = enqueue::is_scheduled(message, cx);
        let stores_body = |(id, arrival): &&(EntityId, Arrival)| {
            matches!(arrival, Arrival::Take)
                && (is_scheduled || !self.get(*id).is_some_and(is_queue))
        };
        let copies = arrivals.iter().filter(stores_body).count();
        let bytes = copies.saturating_mul(message.payload.len());
        if copies > 1 && bytes > MAX_COPIED_BYTES {
            return Err(PublishError::TooLarge { copies });
        }
        Ok(())
    }

    /// Whether the namespace has room for all copies together: each alone has. It takes all of them
    /// or none.
    fn check_namespace(
        &self,
        publication: &Publication,
        arrivals: &[(EntityId, Arrival)],
        cx: &Context<'_>,
    ) -> Result<(), PublishError> {
        let counts = |(id, arrival): &&(EntityId, Arrival)| {
            matches!(arrival, Arrival::Take) && !id.is_volatile()
        };
        let mut takers = arrivals.iter().filter(counts);
        let Some((first, _)) = takers.next() else {
            return Ok(());
        };
        let copies = 1 + takers.count() as u64;
        let bytes = copies.saturating_mul(publication.message.payload.len() as u64);
        let room = cx.shared.namespaces.check(publication.namespace, bytes);
        room.map_err(|error| PublishError::Rejected {
            destination: self.get(*first).expect(THERE).path.clone(),
            error,
        })
    }

    /// Gives a message to all that take it.
    fn store(
        &mut self,
        publication: &Publication,
        arrivals: &[(EntityId, Arrival)],
        cx: &mut Context<'_>,
    ) -> Result<Routed, PublishError> {
        if arrivals.is_empty() {
            return Ok(Routed::Unmatched);
        }
        let shared = self.share_body(publication, arrivals, cx);
        let mut refused = None;
        let mut space = MAX_COPIED_BYTES;
        for (id, arrival) in arrivals {
            let queue = self.get_mut(*id).expect(THERE);
            match arrival {
                Arrival::Take => {
                    let shared = shared.as_ref().filter(|_| is_queue(queue));
                    enqueue::accept_routed(queue, publication, shared, cx);
                    run(queue, cx);
                }
                Arrival::Refused(error) => {
                    let message = &publication.message;
                    let left = space.checked_sub(message.payload.len());
                    if let Some(left) = left
                        && refused::becomes_dead_letter(queue, error, cx)
                    {
                        space = left;
                        refused::dead_letter(queue, &[message], cx);
                        run(queue, cx);
                    }
                    refused.get_or_insert_with(|| PublishError::Rejected {
                        destination: queue.path.clone(),
                        error: error.clone(),
                    });
                }
                Arrival::Duplicate => {}
                Arrival::Ask => unreachable!("the message waits for the answer"),
            }
        }
        let destinations = arrivals.len();
        refused.map_or(Ok(Routed::Stored { destinations }), Err)
    }

    /// Stores the body that several queues are about to point to, if several do.
    fn share_body(
        &mut self,
        publication: &Publication,
        arrivals: &[(EntityId, Arrival)],
        cx: &mut Context<'_>,
    ) -> Option<(BodyPointer, Body)> {
        let message = &publication.message;
        let takes = |(id, arrival): &&(EntityId, Arrival)| {
            matches!(arrival, Arrival::Take) && self.get(*id).is_some_and(is_queue)
        };
        let copies = arrivals.iter().filter(takes).count();
        if copies < 2 || enqueue::is_scheduled(message, cx) {
            return None;
        }
        self.make_router_rows(publication.namespace, cx);
        let pointer = self.routers.take_body(publication.namespace);
        let mut body = Body::received(message.payload.clone());
        body.share();
        cx.write(Write::PutBody {
            pointer,
            body: message.payload.clone(),
        });
        cx.write(Write::ShareBody {
            pointer,
            copies: u32::try_from(copies).unwrap_or(u32::MAX),
        });
        Some((pointer, body))
    }
}

fn is_queue(queue: &Queue) -> bool {
    matches!(queue.kind, Kind::Queue)
}
