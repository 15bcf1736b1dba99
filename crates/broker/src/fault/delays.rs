//! Delays: what waits because of a rule, in the order of its time: commands, answers, and credit.
//!
//! An answer waits from the moment at which the broker has it. Until then its request is known
//! here. What a receiver is told keeps its order: the rest waits behind a delivery that does.

use std::collections::BTreeMap;

use store::NamespaceId;

use crate::api::command::Command;
use crate::api::fault::Requester;
use crate::api::id::{ConnectionId, ReceiverId, RequestId};
use crate::api::output::Output;
use crate::api::time::Mono;

/// The most effects of a namespace that wait at a time. Rules that would add one more leave
/// operations alone.
const MAX_DELAYED: usize = 10_000;

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// By when they are carried out, then in the order in which they came.
    waiting: BTreeMap<(Mono, u64), DelayedEffect>,
    /// Requests whose answers are to wait.
    answers: BTreeMap<RequestId, LateAnswer>,
    /// What has waited and is said in this step.
    due: Vec<Output>,
    /// How many wait of each namespace that has some, requests too.
    counts: BTreeMap<NamespaceId, usize>,
    /// How many have waited.
    last: u64,
}

/// What is done later.
#[derive(Debug)]
pub(super) enum Delayed {
    /// It is carried out.
    Command(Box<Command>),
    /// It is said.
    Output(Box<Output>),
    /// The connection has its credit back.
    Credit(ConnectionId),
}

#[derive(Debug)]
struct DelayedEffect {
    namespace: NamespaceId,
    /// As [`Concern::requester`](super::concern::Concern::requester).
    requester: Option<Requester>,
    delayed: Delayed,
}

/// How long an answer is to wait, in milliseconds, and by a rule of which namespace.
#[derive(Clone, Copy, Debug)]
struct LateAnswer {
    namespace: NamespaceId,
    delay: u64,
}

impl Delays {
    /// Whether one more of a namespace may wait.
    pub(super) fn has_room(&self, namespace: NamespaceId) -> bool {
        let waiting = self.counts.get(&namespace).copied();
        waiting.unwrap_or_default() < MAX_DELAYED
    }

    /// Keeps what a rule of a namespace delays until then.
    pub(super) fn delay(
        &mut self,
        until: Mono,
        namespace: NamespaceId,
        requester: Option<Requester>,
        delayed: Delayed,
    ) {
        *self.counts.entry(namespace).or_default() += 1;
        let delayed = DelayedEffect {
            namespace,
            requester,
            delayed,
        };
        self.last += 1;
        self.waiting.insert((until, self.last), delayed);
    }

    /// The answer to a request is to wait so long.
    pub(super) fn delay_answer(&mut self, of: RequestId, namespace: NamespaceId, delay: u64) {
        let late = LateAnswer { namespace, delay };
        if let Some(before) = self.answers.insert(of, late) {
            note_end(&mut self.counts, before.namespace);
        }
        *self.counts.entry(namespace).or_default() += 1;
    }

    /// Keeps an output if it is an answer that is to wait.
    pub(super) fn keep_answer(&mut self, output: Output, now: Mono) -> Option<Output> {
        let request = output.request();
        let late = request.and_then(|request| Some((request, self.answers.remove(&request)?)));
        let Some((request, LateAnswer { namespace, delay })) = late else {
            return Some(output);
        };
        note_end(&mut self.counts, namespace);
        let requester = Some(Requester::Request(request));
        let output = Delayed::Output(Box::new(output));
        self.delay(now.after(delay), namespace, requester, output);
        None
    }

    /// Keeps what a receiver is told until then, or until all is said that waits for it.
    pub(super) fn delay_told(
        &mut self,
        until: Mono,
        namespace: NamespaceId,
        receiver: ReceiverId,
        output: Output,
    ) {
        let last = self.last_told(receiver).map(|(last, _)| last);
        let until = last.map_or(until, |last| until.max(last));
        let requester = Some(Requester::Receiver(receiver));
        let output = Delayed::Output(Box::new(output));
        self.delay(until, namespace, requester, output);
    }

    /// Keeps an output if its receiver is to be told something else before.
    pub(super) fn keep_in_order(&mut self, output: Output) -> Option<Output> {
        let told = output.receiver().filter(|_| !self.waiting.is_empty());
        let last = told.and_then(|receiver| Some((receiver, self.last_told(receiver)?)));
        let Some((receiver, (until, namespace))) = last else {
            return Some(output);
        };
        self.delay_told(until, namespace, receiver, output);
        None
    }

    /// When the last is due of what waits for a receiver, and by a rule of which namespace.
    fn last_told(&self, receiver: ReceiverId) -> Option<(Mono, NamespaceId)> {
        let is_for_it = |effect: &DelayedEffect| {
            effect.requester == Some(Requester::Receiver(receiver))
                && matches!(effect.delayed, Delayed::Output(_))
        };
        let last = self.waiting.iter().rfind(|(_, effect)| is_for_it(effect));
        last.map(|((until, _), effect)| (*until, effect.namespace))
    }

    /// What has waited is said in this step.
    pub(super) fn say(&mut self, output: Output) {
        self.due.push(output);
    }

    /// Whether something is to be said in this step that has waited.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// What is to be said.
    pub(super) fn take_said(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.due)
    }

    /// Whether what a step says may have to wait.
    pub(super) fn may_keep(&self) -> bool {
        !self.answers.is_empty() || !self.waiting.is_empty()
    }

    /// Keeps a connection without credit until then, or for longer if it is already.
    pub(super) fn withhold(&mut self, until: Mono, namespace: NamespaceId, of: Requester) {
        let connection = of.connection();
        let is_of = |delayed: &Delayed| matches!(delayed, Delayed::Credit(it) if *it == connection);
        let mut known = self.waiting.iter().filter(|(_, it)| is_of(&it.delayed));
        if let Some(key) = known.next().map(|(key, _)| *key) {
            if key.0 >= until {
                return;
            }
            if let Some(before) = self.waiting.remove(&key) {
                note_end(&mut self.counts, before.namespace);
            }
        }
        self.delay(until, namespace, Some(of), Delayed::Credit(connection));
    }

    /// Whether a connection is still to have its credit back.
    pub(super) fn withholds_credit(&self, of: ConnectionId) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|it| matches!(it.delayed, Delayed::Credit(connection) if connection == of))
    }

    /// What waits in a namespace is due, in the order in which it came, and answers do not wait.
    pub(super) fn end(&mut self, namespace: NamespaceId) {
        let of_it = |delayed: &DelayedEffect| delayed.namespace == namespace;
        let due = self.waiting.extract_if(.., |_, delayed| of_it(delayed));
        let mut due: Vec<_> = due.map(|((_, order), delayed)| (order, delayed)).collect();
        due.sort_unstable_by_key(|(order, _)| *order);
        let due = due.into_iter();
        self.waiting
            .extend(due.map(|(order, delayed)| ((Mono(0), order), delayed)));
        for _ in (self.answers).extract_if(.., |_, late| late.namespace == namespace) {
            note_end(&mut self.counts, namespace);
        }
    }

    /// Forgets what a connection has asked for that is gone.
    pub(super) fn forget_client(&mut self, gone: ConnectionId) {
        let of_it =
            |delayed: &DelayedEffect| delayed.requester.map(Requester::connection) == Some(gone);
        for (_, delayed) in self.waiting.extract_if(.., |_, delayed| of_it(delayed)) {
            note_end(&mut self.counts, delayed.namespace);
        }
        let of_it = |request: &RequestId| request.connection == gone;
        for (_, late) in self.answers.extract_if(.., |request, _| of_it(request)) {
            note_end(&mut self.counts, late.namespace);
        }
    }

    /// What waits in a namespace is due earlier.
    pub(super) fn shorten(&mut self, namespace: NamespaceId, ms: u64) {
        let of_it = |delayed: &DelayedEffect| delayed.namespace == namespace;
        let waiting = self.waiting.extract_if(.., |_, delayed| of_it(delayed));
        let earlier = waiting.map(|((until, order), delayed)| {
            let until = Mono(until.0.saturating_sub(ms));
            ((until, order), delayed)
        });
        let earlier: Vec<_> = earlier.collect();
        self.waiting.extend(earlier);
    }

    /// When the first in a namespace is due.
    pub(crate) fn deadline_of(&self, namespace: NamespaceId) -> Option<Mono> {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|(_, delayed)| delayed.namespace == namespace);
        first.map(|((until, _), _)| *until)
    }

    /// When the first is due.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.waiting.keys().next().map(|(until, _)| *until)
    }

    /// What has waited and whose time has come.
    pub(super) fn take_due(&mut self, now: Mono) -> Option<Delayed> {
        let first = self.waiting.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let due = first.remove();
        note_end(&mut self.counts, due.namespace);
        Some(due.delayed)
    }
}

/// One effect of a namespace waits no longer.
fn note_end(counts: &mut BTreeMap<NamespaceId, usize>, namespace: NamespaceId) {
    let waiting = counts.get_mut(&namespace);
    let waiting = waiting.expect("what waits was counted when it began to");
    *waiting -= 1;
    if *waiting == 0 {
        counts.remove(&namespace);
    }
}
