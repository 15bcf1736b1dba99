//! Forward: messages of a queue, or of its dead-letter queue, go on to another entity by
//! themselves.
//!
//! A forwarding subqueue has one taker, the pump, which runs at the end of every step: it takes
//! the first message, looks whether the destination has room for it, and moves it there in the
//! same write set. A message that is sent to a forwarding queue thus arrives at the end of the
//! chain within the step, and the store never sees the hops between. Each hop does what
//! it does with any message that arrives: it numbers it, restarts its time to live, detects
//! duplicates. What cannot go on stays (dead letters) or goes to the transfer dead-letter queue; if
//! the destination is full it is tried again for some time before. One whose id cannot be looked
//! up, because the destination's history is damaged there, is passed over for a lock's time.
//! (docs/spec/entities.md#14)
//!
//! Messages of a queue with sessions are read from the store first (`forward/session_page.rs`).

mod dead_letter;
mod death;
pub(crate) mod hop;
pub(crate) mod session_page;
pub(crate) mod transfer;
pub(crate) mod transfer_queue;

use store::{EntityId, SequenceNumber, StoreError};

use crate::api::forward_error::ForwardError;
use crate::api::id::{ReadId, Subqueue, SubqueueId};
use crate::api::lineage::{DropReason, MessageEvent};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::forward::hop::{Destination, HAS_PUMP, THERE};
use crate::forward::transfer::{Admission, Transfer, TransferFailure};
use crate::message::id::IdHash;
use crate::queue::kind::Kind;
use crate::receive::run::run;
use crate::send::duplicates::known::Known;
use crate::subqueue::pump::{Looked, Pump};
use crate::topic::fan_out;

/// Moves what can be moved, as far as the turn's budget goes.
pub(crate) fn pump(directory: &mut Directory, cx: &mut Context<'_>) {
    while let Some(place) = cx.shared.next_pump() {
        if !cx.take_pump_work() {
            let queue = directory.get_mut(place.entity).expect(HAS_PUMP);
            cx.enter(queue.namespace);
            hop::pump_later(queue, place.subqueue, cx);
        } else if pump_one(directory, place, cx) {
            cx.shared.pumps.insert(place);
        }
    }
}

/// Moves the next message. Returns whether it is worth going on.
fn pump_one(directory: &mut Directory, place: SubqueueId, cx: &mut Context<'_>) -> bool {
    let source = directory.get_mut(place.entity).expect(HAS_PUMP);
    cx.enter(source.namespace);
    if matches!(source.kind, Kind::Topic(_)) {
        return fan_out::publish_one(directory, place.entity, cx);
    }
    // The settings may have changed since the pump was told.
    let Some(destination) = hop::destination(source, place.subqueue) else {
        return false;
    };
    if source.sub(place.subqueue).by_session {
        session_page::ask_first(source, cx);
        run(source, cx);
        return false;
    }
    let Some(transfer) = hop::next_transfer(source, place.subqueue, cx) else {
        run(source, cx);
        return false;
    };
    match destination {
        Destination::Path(path) => forward_one(directory, place, path, transfer, cx),
        Destination::Router => dead_letter::route_one(directory, place, transfer, cx),
    }
}

/// Moves a message that has come to its turn to the entity of a path. Returns whether it is worth
/// going on.
fn forward_one(
    directory: &mut Directory,
    place: SubqueueId,
    path: String,
    transfer: Transfer,
    cx: &mut Context<'_>,
) -> bool {
    let source = directory.get_mut(place.entity).expect(HAS_PUMP);
    let namespace = source.namespace;
    let looked = hop::take_looked(source, place.subqueue, transfer.number);
    let unfit = TransferFailure::of_row(place.subqueue, &transfer.entry.row);
    let destination = directory.find(namespace, &path);
    let admission = match destination {
        _ if let Some(failure) = unfit => Admission::Failed(failure),
        Some(id) => {
            let destination = directory.get_mut(id).expect(THERE);
            hop::check_arrival(destination, &transfer, looked, cx)
        }
        None => Admission::Failed(TransferFailure::Refused(ForwardError::NotFound {
            destination: path,
        })),
    };
    match (admission, destination) {
        (Admission::Failed(failure), to) => directory.fail(place, to, &transfer, &failure, cx),
        (Admission::Ask(id), Some(destination)) => {
            directory.look_up(place, destination, id, transfer.number, cx)
        }
        (admission, Some(destination)) => {
            directory.hand_on(place, destination, transfer, &admission, cx)
        }
        (_, None) => unreachable!("a missing destination is a failure"),
    }
}

impl Directory {
    /// Takes the message out of its source and puts it where it belongs.
    fn hand_on(
        &mut self,
        place: SubqueueId,
        destination: EntityId,
        transfer: Transfer,
        admission: &Admission,
        cx: &mut Context<'_>,
    ) -> bool {
        let source = self.get_mut(place.entity).expect(HAS_PUMP);
        let from = source.path.clone();
        hop::leave(source, place.subqueue, &transfer, cx);
        let event = || match admission {
            Admission::Duplicate => MessageEvent::Dropped {
                why: DropReason::Duplicate,
            },
            _ => MessageEvent::Forwarded { to: destination },
        };
        source.record(transfer.number, event, cx);
        source.sub_mut(place.subqueue).full_since = None;
        run(source, cx);
        let destination = self.get_mut(destination).expect(THERE);
        match admission {
            Admission::Take => hop::arrive(destination, place.subqueue, &from, transfer, cx),
            Admission::NoSession => {
                hop::arrive_dead(destination, place.subqueue, &from, transfer, cx);
            }
            // The destination has it already.
            Admission::Duplicate => {}
            Admission::Ask(_) | Admission::Failed(_) => unreachable!("its message stays"),
        }
        run(destination, cx);
        true
    }

    fn look_up(
        &mut self,
        place: SubqueueId,
        destination: EntityId,
        id: IdHash,
        number: SequenceNumber,
        cx: &mut Context<'_>,
    ) -> bool {
        let destination = self.get_mut(destination).expect(THERE);
        let read = hop::look_up_transfer(destination, id, place, cx);
        let source = self.get_mut(place.entity).expect(HAS_PUMP);
        source.sub_mut(place.subqueue).pump = Pump::Lookup(read, number);
        false
    }

    /// What becomes of a message that cannot go on.
    fn fail(
        &mut self,
        place: SubqueueId,
        destination: Option<EntityId>,
        transfer: &Transfer,
        failure: &TransferFailure,
        cx: &mut Context<'_>,
    ) -> bool {
        let source = self.get_mut(place.entity).expect(HAS_PUMP);
        let main = place.subqueue == Subqueue::Main;
        let goes_on = match failure {
            TransferFailure::Refused(error) | TransferFailure::Unfit(error) if main => {
                self.give_up(place.entity, transfer, error, cx);
                true
            }
            TransferFailure::Full(error) if main => {
                let destination = destination.expect("it said that it is full");
                let waits = hop::waits_for_room(source, destination, transfer, cx);
                if !waits {
                    self.give_up(place.entity, transfer, error, cx);
                }
                !waits
            }
            TransferFailure::Unfit(error) if hop::is_at_its_end(place, transfer, error, cx) => {
                hop::dead_letter(source, place.subqueue, transfer, error, cx);
                true
            }
            TransferFailure::Unfit(..) => {
                hop::pass_over(source, place.subqueue, transfer.number, cx);
                true
            }
            TransferFailure::Full(..) | TransferFailure::Refused(..) | TransferFailure::Wait => {
                hop::pump_again_at(source, place.subqueue, cx);
                false
            }
        };
        run(self.get_mut(place.entity).expect(HAS_PUMP), cx);
        goes_on
    }

    /// A message that cannot go on becomes a dead letter.
    fn give_up(
        &mut self,
        source: EntityId,
        transfer: &Transfer,
        error: &ForwardError,
        cx: &mut Context<'_>,
    ) {
        let queue = self.get_mut(source).expect(HAS_PUMP);
        if let Kind::Transfer { via } = queue.kind {
            transfer_queue::dead_letter(self, source, via, transfer, error, cx);
        } else {
            hop::dead_letter(queue, Subqueue::Main, transfer, error, cx);
        }
    }
}

/// The ids' history of a destination was asked.
pub(crate) fn looked_up(
    directory: &mut Directory,
    read: ReadId,
    place: SubqueueId,
    destination: EntityId,
    known: Result<Known, StoreError>,
    cx: &mut Context<'_>,
) {
    // Destination and source may have been deleted since.
    let queue = directory.get_mut(destination);
    let seen = queue.map(|queue| queue.duplicates.release_lookup(read));
    let Some(source) = directory.get_mut(place.entity) else {
        return;
    };
    let Pump::Lookup(asked, number) = source.sub(place.subqueue).pump else {
        unreachable!("a pump waits until its lookup is answered");
    };
    assert_eq!(asked, read, "a pump waits for one lookup at a time");
    source.sub_mut(place.subqueue).pump = match (known, seen) {
        (Ok(known), Some(seen)) => Pump::Looked(Looked {
            number,
            destination,
            seen,
            known,
        }),
        (Ok(_), None) => Pump::Free,
        (Err(error), _) if error.is_damage() => {
            hop::pass_unknown(source, place.subqueue, number, cx);
            Pump::Free
        }
        (Err(_), _) => Pump::Until(cx.retry_at()),
    };
    source.sub_mut(place.subqueue).needs_dispatch = true;
    run(source, cx);
}
