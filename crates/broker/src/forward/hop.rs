//! Hop: what a queue does with messages that pass through: it says which goes on next, judges
//! what would arrive, lets go and takes in.

use crate::send::duplicates::known::Known;
use crate::subqueue::is_expired;
use store::SequenceNumber;

use super::{Transfer, Trouble, Verdict, path_of};
use crate::api::forward_error::ForwardError;
use crate::api::id::{ReadId, Subqueue, SubqueueId};
use crate::api::settings::ForwardFailures;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::bodies::Body;
use crate::message::id::IdHash;
use crate::message::patch::Patch;
use crate::message::properties::Properties;
use crate::message::row;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::subqueue::pump::{Looked, Pump};

impl Queue {
    /// Where messages of a subqueue go by themselves. They stay if no receiver could reach them
    /// there.
    pub(crate) fn destination(&self, subqueue: Subqueue) -> Option<String> {
        let settings = &self.settings;
        if !settings.status.allows_receive() {
            return None;
        }
        let target = match subqueue {
            Subqueue::Main => settings.forward_to.as_ref(),
            Subqueue::DeadLetter => settings.forward_dead_lettered_messages_to.as_ref(),
            Subqueue::TransferDeadLetter => None,
        };
        target.map(|target| path_of(target).to_owned())
    }

    /// After a restart or a change of settings: what can go on goes on with the next tick.
    pub(crate) fn wake_pumps(&mut self) {
        for subqueue in Subqueue::ALL {
            let waits = self.forwards(subqueue) && self.rows.count(subqueue.part()) > 0;
            self.sub_mut(subqueue).needs_pump |= waits;
        }
    }

    /// Whether messages of a subqueue go on by themselves.
    pub(crate) fn forwards(&self, subqueue: Subqueue) -> bool {
        match subqueue {
            Subqueue::Main => {
                matches!(self.kind, Kind::Topic(_)) || self.settings.forward_to.is_some()
            }
            Subqueue::DeadLetter => self.settings.forward_dead_lettered_messages_to.is_some(),
            Subqueue::TransferDeadLetter => false,
        }
    }

    pub(super) fn pump_later(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        self.sub_mut(subqueue).needs_pump = true;
        self.set_alarm(cx);
    }

    pub(super) fn pump_again_at(&mut self, subqueue: Subqueue, cx: &Context<'_>) {
        let at = cx.retry_at();
        self.sub_mut(subqueue).pump = Pump::Until(at);
    }

    pub(super) fn take_looked(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
    ) -> Option<Looked> {
        match std::mem::take(&mut self.sub_mut(subqueue).pump) {
            Pump::Looked(looked) if looked.number == number => Some(looked),
            _ => None,
        }
    }

    /// A message that cannot go on is set aside for a lock's time, so that others can.
    pub(super) fn pass_over(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let entry = self.sub(subqueue).window.get(number);
        let entry = entry.expect("the message that could not go on is still here");
        drop(cx.shared.bodies.take(entry.body));
        let duration = self.settings.lock_duration;
        self.sub_mut(subqueue)
            .lock_unreadable(&[number], duration, cx);
    }

    /// The next message, with its body, if one can go now.
    pub(crate) fn next_transfer(
        &mut self,
        subqueue: Subqueue,
        cx: &mut Context<'_>,
    ) -> Option<Transfer> {
        if self.sub(subqueue).pump.is_waiting(cx.now.mono) {
            return None;
        }
        if self.sub(subqueue).is_full_of_locks(&cx.shared.settings) {
            return None;
        }
        let first = self.sub(subqueue).window.first();
        let Some((number, entry)) = first.map(|(number, entry)| (number, *entry)) else {
            self.subs[subqueue as usize].refill(&self.rows, cx);
            return None;
        };
        let expired = is_expired(subqueue, &entry.row, cx.now.wall);
        if expired && self.can_expire_at_once(&entry, cx) {
            self.expire_available(number, &entry, cx);
            self.sub_mut(subqueue).needs_pump = true;
            return None;
        }
        let Some(body) = cx.shared.bodies.get(entry.body).cloned() else {
            self.sub_mut(subqueue).fetch_for_pump(cx);
            return None;
        };
        let properties = Properties::of(&body.payload);
        Some(Transfer {
            number,
            entry,
            body,
            properties,
        })
    }

    /// What this queue says to a message that would arrive.
    pub(super) fn judge(
        &mut self,
        transfer: &Transfer,
        looked: Option<Looked>,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if cx.shared.nearly_full {
            return Verdict::Trouble(Trouble::Wait);
        }
        if matches!(self.kind, Kind::Subscription(_)) {
            let destination = self.path.clone();
            let error = ForwardError::Subscription { destination };
            return Verdict::Trouble(Trouble::Refused(error));
        }
        if !self.settings.status.allows_send() {
            // It is never a failed forward. (docs/spec/entities.md#14.4)
            return Verdict::Trouble(Trouble::Wait);
        }
        if self.settings.requires_session && transfer.properties.session_id.is_none() {
            return Verdict::NoSession;
        }
        let detects = self.settings.requires_duplicate_detection;
        let Some(id) = transfer.properties.id_hash().filter(|_| detects) else {
            return self.judge_size(transfer, cx).unwrap_or(Verdict::Take);
        };
        let looked = looked.filter(|looked| {
            let here = looked.destination == self.id;
            here && self.duplicates.is_remembered_since(looked.seen)
        });
        let known = looked.map(|looked| looked.known);
        match known.or_else(|| self.duplicates.known_at_once(id, &self.rows, cx)) {
            None => Verdict::Ask(id),
            Some(known) if self.is_duplicate(id, &known, cx) => Verdict::Duplicate,
            Some(_) => self.judge_size(transfer, cx).unwrap_or(Verdict::Take),
        }
    }

    fn is_duplicate(&self, id: IdHash, known: &Known, cx: &Context<'_>) -> bool {
        let before = self.duplicates.duplicate_of(id, known, &self.settings, cx);
        before.is_some()
    }

    /// Why there is no room for a message, if so.
    fn judge_size(&self, transfer: &Transfer, cx: &Context<'_>) -> Option<Verdict> {
        let size = u64::from(transfer.entry.row.size);
        let error = self.check_sizes([size].into_iter(), self.below(cx)).err()?;
        let error = ForwardError::of_size(self.path.clone(), &error);
        Some(Verdict::Trouble(match error {
            ForwardError::TooLarge { .. } => Trouble::Unfit(error),
            _ => Trouble::Refused(error),
        }))
    }

    /// A message goes on: it leaves this queue for good.
    pub(super) fn leave(&mut self, subqueue: Subqueue, transfer: &Transfer, cx: &mut Context<'_>) {
        self.sub_mut(subqueue).take_available(transfer.number);
        drop(cx.shared.bodies.take(transfer.entry.body));
        let patch = transfer.body.patch.clone();
        let message = Message::available(subqueue.part(), transfer.number, &transfer.entry, patch);
        let patched = message.patch.is_some();
        self.erase(&message, patched, cx);
    }

    /// A message comes from another queue.
    pub(super) fn arrive(
        &mut self,
        from: Subqueue,
        source: &str,
        transfer: Transfer,
        cx: &mut Context<'_>,
    ) {
        let id = transfer.properties.id_hash();
        let number = self.arrive_as(Subqueue::Main, from, source, transfer, None, cx);
        if let Some(id) = id.filter(|_| self.settings.requires_duplicate_detection) {
            let at = Wall(self.rows.head.last_enqueued_ms);
            let (rows, settings) = (&mut self.rows, &self.settings);
            self.duplicates.remember(id, at, number, rows, settings, cx);
            self.duplicates.trim_recent(cx);
        }
    }

    /// A message without a session comes to a queue of sessions. (docs/spec/entities.md#14.4)
    pub(super) fn arrive_dead(
        &mut self,
        from: Subqueue,
        source: &str,
        transfer: Transfer,
        cx: &mut Context<'_>,
    ) {
        let error = Some(ForwardError::SessionRequired);
        self.arrive_as(Subqueue::DeadLetter, from, source, transfer, error, cx);
    }

    fn arrive_as(
        &mut self,
        subqueue: Subqueue,
        from: Subqueue,
        source: &str,
        mut transfer: Transfer,
        error: Option<ForwardError>,
        cx: &mut Context<'_>,
    ) -> SequenceNumber {
        assert!(
            !matches!(self.kind, Kind::Subscription(_)),
            "only its topic writes to a subscription"
        );
        self.note_access(cx);
        let number = self.rows.take_number();
        let enqueued = self.rows.take_enqueued_time(cx);
        let mut patch = transfer.body.patch.take().map(|patch| *patch);
        if from != Subqueue::Main {
            patch.get_or_insert_default().set_source(source);
        }
        if let Some(error) = error {
            let why = (cx.shared.describe_forward_error)(&error);
            let old = patch.as_ref();
            patch = Some(Patch::with_reason(old, &why.reason, &why.description));
        }
        let mut row = self.arriving_row(&transfer.entry.row, transfer.number, number, enqueued);
        row.flags = row::moved_on(&transfer.entry.row, patch.is_some());
        if let Some(patch) = &patch {
            self.rows.put_patch(number, patch, cx);
        }
        let session = transfer.properties.session_id.as_ref();
        row.session_hash = self.rows.session_hash(session);
        let body = Body {
            patch: patch.map(Box::new),
            distribution: None,
            ..transfer.body
        };
        self.insert_with_body(subqueue, session, number, row, body, cx);
        number
    }

    /// A message that cannot go on is dead-lettered here.
    pub(super) fn dead_letter_transfer(
        &mut self,
        transfer: &Transfer,
        error: &ForwardError,
        cx: &mut Context<'_>,
    ) {
        let to = match cx.shared.settings.forward_failures {
            ForwardFailures::Transfer => Subqueue::TransferDeadLetter,
            ForwardFailures::DeadLetter => Subqueue::DeadLetter,
        };
        self.sub_mut(Subqueue::Main).take_available(transfer.number);
        drop(cx.shared.bodies.take(transfer.entry.body));
        let why = (cx.shared.describe_forward_error)(error);
        let old = transfer.body.patch.as_deref();
        let patch = Patch::with_reason(old, &why.reason, &why.description);
        let mut message = Message::available(
            Subqueue::Main.part(),
            transfer.number,
            &transfer.entry,
            None,
        );
        message.row.flags |= row::STUCK;
        self.dead_letter_to(to, &message, &patch, cx);
    }

    pub(super) fn look_up_transfer(
        &mut self,
        id: IdHash,
        place: SubqueueId,
        cx: &mut Context<'_>,
    ) -> ReadId {
        let purpose = Purpose::TransferLookup(place, self.id);
        self.duplicates.look_up_one(id, purpose, &self.rows, cx)
    }
}
