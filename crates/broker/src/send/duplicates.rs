//! Duplicates: a message whose id was accepted within the window is accepted again and dropped.
//!
//! Every accepted id is on disk, found by its hash within the period in which it was accepted; in
//! memory are the latest ones, exactly, and a filter about all of them. What the filter has never
//! seen is new. For the rest the store is asked, and that send and those behind it wait, so that
//! order is kept; an id in two of them is decided by what was accepted first. Memory: 2 bytes an
//! id, however many there are up to 16 million in a window and what is kept behind it; beyond that
//! there is no filter, and then and until it is filled after a restart every id that is not among
//! the latest is looked up, in each period. (docs/spec/entities.md#19)

mod filter;
pub(crate) mod inquiry;
pub(crate) mod known;
mod load;
mod periods;
mod recent;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use filter::Filter;
use store::{Entry, EntryKey, Head, Index, Query, SequenceNumber, StoreError, Write};

use crate::api::id::{ReadId, RequestId, TransactionId};
use crate::api::incoming::Incoming;
use crate::api::settings::QueueSettings;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::id::{Acceptance, IdHash};
use crate::queue::rows::Rows;
use crate::send::duplicates::inquiry::Inquiry;
use crate::send::duplicates::known::{Answers, Known, answers_of};

use load::Load;
use recent::Recent;

/// Recent ids that are known exactly when no send waits.
const RECENT: usize = 4_096;

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

/// A send whose turn has come, and what is known of its ids, if that could be read.
#[derive(Debug)]
pub(crate) struct ReadySend {
    pub request: RequestId,
    pub messages: Vec<Incoming>,
    pub known: Result<Known, StoreError>,
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
    fn keys(&self, id: IdHash, periods: &[u64]) -> Vec<EntryKey> {
        if self.load.is_complete() {
            let spans = self.filter.spans(id);
            let keys = spans.flat_map(|span| periods::keys_within(periods, span, id));
            keys.collect::<BTreeSet<_>>().into_iter().collect()
        } else {
            let always = Wall(0)..=Wall(u64::MAX);
            periods::keys_within(periods, always, id).collect()
        }
    }

    /// Where the store may know of those that memory does not decide.
    fn undecided(&self, ids: &[Option<IdHash>], periods: &[u64]) -> Vec<EntryKey> {
        let ids = ids.iter().flatten();
        let undecided = ids.filter(|id| !self.is_decided(**id));
        undecided.flat_map(|id| self.keys(*id, periods)).collect()
    }

    /// What memory knows of these ids.
    fn known(&self, ids: &[Option<IdHash>]) -> Answers {
        let ids = ids.iter().flatten();
        ids.filter_map(|id| Some((*id, self.recent.get(*id)?)))
            .collect()
    }

    /// A send whose ids memory alone decides, if none waits before it; or it waits for its turn.
    pub(crate) fn take_up(
        &mut self,
        request: RequestId,
        messages: Vec<Incoming>,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> Option<ReadySend> {
        self.start_load(rows, cx);
        let ids: Vec<_> = messages.iter().map(IdHash::of).collect();
        let keys = self.undecided(&ids, &rows.head.periods);
        if keys.is_empty() && self.waiting.is_empty() {
            let answers = Answers::new();
            let known = Ok(Known { ids, answers });
            return Some(ReadySend {
                request,
                messages,
                known,
            });
        }
        let lookup = if keys.is_empty() {
            Lookup::Answered(Ok(Answers::new()))
        } else {
            Lookup::Asked(Self::look_up(keys, rows, cx))
        };
        let seen = self.recent.accepted();
        let known = self.known(&ids);
        self.waiting.push_back(Waiting {
            request,
            messages,
            ids,
            known,
            lookup,
            seen,
        });
        None
    }

    fn look_up(keys: Vec<EntryKey>, rows: &Rows, cx: &mut Context<'_>) -> ReadId {
        let query = Query::EntryPoints {
            entity: rows.id,
            index: Index::DuplicateId,
            keys,
        };
        cx.ask(query, Purpose::DuplicateLookup(rows.id))
    }

    /// Ids were looked up: sends go on in the order in which they came.
    pub(crate) fn looked_up(&mut self, read: ReadId, found: Result<Vec<Entry>, StoreError>) {
        let answered = Lookup::Answered(found.and_then(|entries| answers_of(&entries)));
        let asked =
            |waiting: &&mut Waiting| matches!(waiting.lookup, Lookup::Asked(id) if id == read);
        let waiting = self.waiting.iter_mut().find(asked);
        waiting.expect("a send waits for its lookup").lookup = answered;
    }

    /// The next send that waits for no lookup, nor for one before it.
    pub(crate) fn next_ready(&mut self) -> Option<ReadySend> {
        let ready = |waiting: &mut Waiting| matches!(waiting.lookup, Lookup::Answered(_));
        let next = self.waiting.pop_front_if(ready)?;
        let Lookup::Answered(answers) = next.lookup else {
            unreachable!("only answered lookups are taken out");
        };
        let (ids, before) = (next.ids, next.known);
        Some(ReadySend {
            request: next.request,
            messages: next.messages,
            known: answers.map(|mut answers| {
                answers.extend(before);
                Known { ids, answers }
            }),
        })
    }

    /// The queue is gone: sends that wait for their turn never get it.
    pub(crate) fn take_waiting(&mut self) -> impl Iterator<Item = RequestId> + use<> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|waiting| waiting.request)
    }

    /// Asks for what is to be known of ids. Until [`end_inquiry`](Self::end_inquiry) nothing that
    /// is accepted is forgotten.
    pub(crate) fn inquire(
        &mut self,
        transaction: TransactionId,
        ids: &[Option<IdHash>],
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> Inquiry {
        self.start_load(rows, cx);
        let answers = self.known(ids);
        let keys: BTreeSet<EntryKey> = self
            .undecided(ids, &rows.head.periods)
            .into_iter()
            .collect();
        let waiting = (!keys.is_empty()).then(|| {
            let query = Query::EntryPoints {
                entity: rows.id,
                index: Index::DuplicateId,
                keys: keys.into_iter().collect(),
            };
            cx.ask(query, Purpose::Transaction(rows.id, transaction))
        });
        let seen = self.recent.accepted();
        self.inquiries.insert(transaction, seen);
        Inquiry {
            answers,
            waiting,
            failed: false,
        }
    }

    /// The transaction is over.
    pub(crate) fn end_inquiry(&mut self, transaction: TransactionId, cx: &Context<'_>) {
        self.inquiries.remove(&transaction);
        self.trim_recent(cx);
    }

    /// After a send is dealt with as a whole: drops ids that no send waits for.
    pub(crate) fn trim_recent(&mut self, cx: &Context<'_>) {
        let waiting = self.waiting.front().map(|waiting| waiting.seen);
        let lookups = self.lookups.values().copied();
        let inquiries = self.inquiries.values().copied();
        let needed = lookups
            .chain(inquiries)
            .chain(waiting)
            .min()
            .unwrap_or(u64::MAX);
        let kept = cx.shared.settings.window.min(RECENT);
        self.recent.trim(kept, needed);
    }

    /// What is known of one id, if memory alone tells.
    pub(crate) fn known_at_once(
        &mut self,
        id: IdHash,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> Option<Known> {
        self.start_load(rows, cx);
        let decided = self.is_decided(id) && self.waiting.is_empty();
        decided.then(Known::default)
    }

    /// Asks the store about one id. What is accepted until [`release_lookup`](Self::release_lookup)
    /// is remembered.
    pub(crate) fn look_up_one(
        &mut self,
        id: IdHash,
        purpose: Purpose,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> ReadId {
        let query = Query::EntryPoints {
            entity: rows.id,
            index: Index::DuplicateId,
            keys: self.keys(id, &rows.head.periods),
        };
        let read = cx.ask(query, purpose);
        let seen = self.recent.accepted();
        self.lookups.insert(read, seen);
        read
    }

    /// A lookup was answered. Returns how many ids had been accepted when it was asked for: its
    /// answer holds while all since are [remembered](Duplicates::is_remembered_since).
    pub(crate) fn release_lookup(&mut self, read: ReadId) -> u64 {
        let seen = self.lookups.remove(&read);
        seen.expect("it was asked for here, and is answered once")
    }

    /// The number under which a message with this id was accepted, if that still counts.
    pub(crate) fn duplicate_of(
        &self,
        id: IdHash,
        known: &Known,
        settings: &QueueSettings,
        cx: &Context<'_>,
    ) -> Option<SequenceNumber> {
        let before = self.accepted_before(id, known)?;
        let window = settings.duplicate_detection_history_time_window;
        (cx.now.wall.0 < before.at.0.saturating_add(window)).then_some(before.number)
    }

    fn accepted_before(&self, id: IdHash, known: &Known) -> Option<Acceptance> {
        let recent = self.recent.get(id);
        recent.or_else(|| known.answers.get(&id).copied())
    }

    /// A message with this id is accepted.
    pub(crate) fn remember(
        &mut self,
        id: IdHash,
        at: Wall,
        number: SequenceNumber,
        rows: &mut Rows,
        settings: &QueueSettings,
        cx: &mut Context<'_>,
    ) {
        let acceptance = Acceptance { at, number };
        let period = self.period_at(at, rows, settings, cx);
        cx.write(Write::PutEntry {
            entity: rows.id,
            index: Index::DuplicateId,
            key: periods::key(period, id),
            value: acceptance.encode(),
        });
        self.recent.insert(id, acceptance);
        self.load.add(&mut self.filter, id, at);
        self.newest = self.newest.max(at);
    }
}
