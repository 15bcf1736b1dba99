//! Duplicates: a message whose id was accepted within the window is accepted again and dropped.
//!
//! Every accepted id is on disk, found by its hash within the era in which it was accepted; in
//! memory are the latest ones, exactly, and a filter about all of them. What the filter has never
//! seen is new. For the rest the store is asked, and that send and those behind it wait, so that
//! order is kept; an id in two of them is decided by what was accepted first. Memory: 2 bytes an
//! id, however many there are up to 16 million in a window and what is kept behind it; beyond that
//! there is no filter, and then and until it is filled after a restart every id that is not among
//! the latest is looked up, in each era. (docs/spec/entities.md#19)

mod eras;
mod filter;
mod inquiry;
mod load;
mod recent;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use store::{Entry, EntryKey, Head, Index, Query, SequenceNumber, StoreError, Write};

use crate::api::command::Incoming;
use crate::api::id::{ReadId, RequestId, TransactionId};
use crate::api::output::{Output, SendError};
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::id::{Acceptance, IdHash};
use crate::queue::Queue;
use filter::Filter;
pub(crate) use inquiry::Inquiry;
use load::Load;
use recent::Recent;

/// Recent ids that are known exactly when no send waits.
const RECENT: usize = 4_096;

/// What the store knows of the ids that were looked up.
type Answers = BTreeMap<IdHash, Acceptance>;

/// The ids of a send's messages, and what the store knows of those that were looked up.
#[derive(Debug, Default)]
pub(crate) struct Known {
    ids: Vec<Option<IdHash>>,
    answers: Answers,
}

impl Known {
    /// The ids of messages.
    pub(crate) fn ids_of(messages: &[Incoming]) -> impl Iterator<Item = Option<IdHash>> {
        messages.iter().map(IdHash::of)
    }

    /// What a lookup found.
    pub(crate) fn of(entries: &[Entry]) -> Result<Self, StoreError> {
        let answers = answers_of(entries)?;
        let ids = Vec::new();
        Ok(Self { ids, answers })
    }

    /// The id of one of the messages.
    pub(crate) fn id(&self, message: usize) -> Option<IdHash> {
        self.ids.get(message).copied().flatten()
    }
}

/// A send that waits for its turn.
#[derive(Debug)]
struct Waiting {
    request: RequestId,
    messages: Vec<Incoming>,
    ids: Vec<Option<IdHash>>,
    /// What memory knew of them when they were looked up; it may forget that meanwhile.
    known: Answers,
    lookup: Lookup,
    /// How many ids had been accepted when it was looked up.
    seen: u64,
}

#[derive(Debug)]
enum Lookup {
    Asked(ReadId),
    Answered(Result<Answers, StoreError>),
}

/// An entity's history of message ids.
#[derive(Debug, Default)]
pub(crate) struct Duplicates {
    recent: Recent,
    filter: Filter,
    load: Load,
    /// Nothing was accepted after this moment.
    newest: Wall,
    waiting: VecDeque<Waiting>,
    /// Lookups for messages that are to be forwarded here, and how many ids had been accepted then.
    lookups: BTreeMap<ReadId, u64>,
    /// Transactions that wait for their decision, and how many ids had been accepted before.
    inquiries: BTreeMap<TransactionId, u64>,
}

impl Duplicates {
    /// What is known of the history of an entity with this head before it is looked at.
    pub(crate) fn new(head: &Head) -> Self {
        Self {
            newest: Wall(head.last_enqueued_ms),
            ..Self::default()
        }
    }

    /// Whether memory alone tells if the id is known.
    fn is_decided(&self, id: IdHash) -> bool {
        self.recent.get(id).is_some() || self.load.is_complete() && !self.filter.may_contain(id)
    }

    /// Whether every id that was accepted after the first `seen` ones is known in memory.
    pub(crate) fn is_remembered_since(&self, seen: u64) -> bool {
        self.recent.gone() <= seen
    }

    /// Where the store may know of an id that memory does not decide.
    fn keys(&self, id: IdHash, eras: &[u64]) -> Vec<EntryKey> {
        if self.load.is_complete() {
            let spans = self.filter.spans(id);
            let keys = spans.flat_map(|span| eras::keys_within(eras, span, id));
            keys.collect::<BTreeSet<_>>().into_iter().collect()
        } else {
            let always = Wall(0)..=Wall(u64::MAX);
            eras::keys_within(eras, always, id).collect()
        }
    }

    /// Where the store may know of those that memory does not decide.
    fn undecided(&self, ids: &[Option<IdHash>], eras: &[u64]) -> Vec<EntryKey> {
        let ids = ids.iter().flatten();
        let undecided = ids.filter(|id| !self.is_decided(**id));
        undecided.flat_map(|id| self.keys(*id, eras)).collect()
    }

    /// What memory knows of these ids.
    fn known(&self, ids: &[Option<IdHash>]) -> Answers {
        let ids = ids.iter().flatten();
        ids.filter_map(|id| Some((*id, self.recent.get(*id)?)))
            .collect()
    }
}

impl Queue {
    /// A send to an entity that detects duplicates.
    pub(crate) fn send_once(
        &mut self,
        request: RequestId,
        messages: Vec<Incoming>,
        cx: &mut Context<'_>,
    ) {
        self.start_load(cx);
        let ids: Vec<_> = messages.iter().map(IdHash::of).collect();
        let keys = self.duplicates.undecided(&ids, &self.rows.head.eras);
        if keys.is_empty() && self.duplicates.waiting.is_empty() {
            return self.admit(request, messages, ids, Answers::new(), cx);
        }
        let lookup = if keys.is_empty() {
            Lookup::Answered(Ok(Answers::new()))
        } else {
            Lookup::Asked(self.look_up(keys, cx))
        };
        let seen = self.duplicates.recent.accepted();
        let known = self.duplicates.known(&ids);
        self.duplicates.waiting.push_back(Waiting {
            request,
            messages,
            ids,
            known,
            lookup,
            seen,
        });
    }

    fn look_up(&self, keys: Vec<EntryKey>, cx: &mut Context<'_>) -> ReadId {
        let query = Query::EntryPoints {
            entity: self.id,
            index: Index::DuplicateId,
            keys,
        };
        cx.ask(query, Purpose::DuplicateLookup(self.id))
    }

    /// Ids were looked up: sends go on in the order in which they came.
    pub(crate) fn looked_up(
        &mut self,
        read: ReadId,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let answered = Lookup::Answered(found.and_then(|entries| answers_of(&entries)));
        let waiting = &mut self.duplicates.waiting;
        let asked =
            |waiting: &&mut Waiting| matches!(waiting.lookup, Lookup::Asked(id) if id == read);
        let waiting = waiting.iter_mut().find(asked);
        waiting.expect("a send waits for its lookup").lookup = answered;
        let ready = |waiting: &mut Waiting| matches!(waiting.lookup, Lookup::Answered(_));
        while let Some(next) = self.duplicates.waiting.pop_front_if(ready) {
            match next.lookup {
                Lookup::Answered(Ok(mut answers)) => {
                    answers.extend(next.known);
                    self.admit(next.request, next.messages, next.ids, answers, cx);
                }
                Lookup::Answered(Err(_)) => cx.emit(Output::Sent {
                    request: next.request,
                    result: Err(SendError::Unreadable),
                    duplicates: Vec::new(),
                }),
                Lookup::Asked(_) => unreachable!("only answered lookups are taken out"),
            }
        }
    }

    fn admit(
        &mut self,
        request: RequestId,
        messages: Vec<Incoming>,
        ids: Vec<Option<IdHash>>,
        answers: Answers,
        cx: &mut Context<'_>,
    ) {
        let known = Known { ids, answers };
        let sent = self.send(request, messages, &known, cx);
        crate::send::answer_refusal(request, sent, cx);
        self.trim_recent(cx);
    }

    /// The queue is gone: sends that wait for their turn never get it.
    pub(crate) fn refuse_waiting_sends(&mut self, cx: &mut Context<'_>) {
        for waiting in std::mem::take(&mut self.duplicates.waiting) {
            crate::send::answer_refusal(waiting.request, Err(SendError::NotFound), cx);
        }
    }

    /// After a send is dealt with as a whole: drops ids that no send waits for.
    pub(crate) fn trim_recent(&mut self, cx: &Context<'_>) {
        let duplicates = &mut self.duplicates;
        let waiting = duplicates.waiting.front().map(|waiting| waiting.seen);
        let lookups = duplicates.lookups.values().copied();
        let inquiries = duplicates.inquiries.values().copied();
        let needed = lookups
            .chain(inquiries)
            .chain(waiting)
            .min()
            .unwrap_or(u64::MAX);
        let kept = cx.shared.settings.window.min(RECENT);
        duplicates.recent.trim(kept, needed);
    }

    /// What is known of one id, if memory alone tells.
    pub(crate) fn known_at_once(&mut self, id: IdHash, cx: &mut Context<'_>) -> Option<Known> {
        self.start_load(cx);
        let decided = self.duplicates.is_decided(id) && self.duplicates.waiting.is_empty();
        decided.then(Known::default)
    }

    /// Asks the store about one id. What is accepted until [`release_lookup`](Self::release_lookup)
    /// is remembered.
    pub(crate) fn look_up_one(
        &mut self,
        id: IdHash,
        purpose: Purpose,
        cx: &mut Context<'_>,
    ) -> ReadId {
        let query = Query::EntryPoints {
            entity: self.id,
            index: Index::DuplicateId,
            keys: self.duplicates.keys(id, &self.rows.head.eras),
        };
        let read = cx.ask(query, purpose);
        let seen = self.duplicates.recent.accepted();
        self.duplicates.lookups.insert(read, seen);
        read
    }

    /// A lookup was answered. Returns how many ids had been accepted when it was asked for: its
    /// answer holds while all since are [remembered](Duplicates::is_remembered_since).
    pub(crate) fn release_lookup(&mut self, read: ReadId) -> u64 {
        let seen = self.duplicates.lookups.remove(&read);
        seen.expect("it was asked for here, and is answered once")
    }

    /// The number under which a message with this id was accepted, if that still counts.
    pub(crate) fn duplicate_of(
        &self,
        id: IdHash,
        known: &Known,
        cx: &Context<'_>,
    ) -> Option<SequenceNumber> {
        let before = self.accepted_before(id, known)?;
        let window = self.settings.duplicate_detection_history_time_window;
        (cx.now.wall.0 < before.at.0.saturating_add(window)).then_some(before.number)
    }

    fn accepted_before(&self, id: IdHash, known: &Known) -> Option<Acceptance> {
        let recent = self.duplicates.recent.get(id);
        recent.or_else(|| known.answers.get(&id).copied())
    }

    /// A message with this id is accepted.
    pub(crate) fn remember(
        &mut self,
        id: IdHash,
        at: Wall,
        number: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let acceptance = Acceptance { at, number };
        let era = self.era_at(at, cx);
        cx.write(Write::PutEntry {
            entity: self.id,
            index: Index::DuplicateId,
            key: eras::key(era, id),
            value: acceptance.encode(),
        });
        let duplicates = &mut self.duplicates;
        duplicates.recent.insert(id, acceptance);
        duplicates.load.add(&mut duplicates.filter, id, at);
        duplicates.newest = duplicates.newest.max(at);
    }
}

/// Of each id what was accepted last: an earlier era may know it too.
fn answers_of(entries: &[Entry]) -> Result<Answers, StoreError> {
    let mut answers = Answers::new();
    for entry in entries {
        let id = eras::id_of(&entry.key).ok_or_else(damaged)?;
        let found = Acceptance::decode(&entry.value).ok_or_else(damaged)?;
        let answer = answers.entry(id).or_insert(found);
        if answer.at < found.at {
            *answer = found;
        }
    }
    Ok(answers)
}

fn damaged() -> StoreError {
    StoreError::Corrupt {
        what: "the history of message ids".to_owned(),
        detail: "an entry that was not written here".to_owned(),
    }
}
