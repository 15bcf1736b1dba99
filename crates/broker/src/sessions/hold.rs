//! Hold: one accepted session, as its holder has it.
//!
//! It has a window of its own: only the holder of a session takes from it, so only held sessions
//! have messages in memory. Messages are lent for as long as the session is. Memory per hold: about
//! 300 bytes, 120 for each message of its window, and its locks. The window is small to begin with,
//! since there may be many holds; it grows as its holder takes messages.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::error::Eviction;
use crate::api::id::ReceiverId;
use crate::api::receive_mode::ReceiveMode;
use crate::api::settings::BrokerSettings;
use crate::api::time::Mono;
use crate::context::clients::ReceiverSlot;
use crate::message::entry::Entry;
use crate::queue::session_key::SessionKey;
use crate::sessions::state_request::StateRequest;
use crate::subqueue::fetch::Fetch;
use crate::subqueue::unreadable;
use crate::subqueue::window::Window;

/// Most messages of one session that are known in memory, however many its holder takes.
pub(super) const WIDEST: usize = 8_192;
/// No more is read while the messages of a window have this part of the bytes that bodies may take
/// in memory, and not less than a mebibyte.
const KNOWN_SHARE: usize = 4;
const KNOWN_BYTES: usize = 1 << 20;
/// A holder with this many unsettled messages is given no more, since they all end at once.
pub(crate) const MAX_UNSETTLED: usize = 16_384;

/// A receiver without unsettled messages keeps its link, and the session its holder, for this many
/// milliseconds longer: one that waits for a message exactly as long as the lock lasts ends its
/// wait first. (docs/spec/amqp.md#3.4)
pub(crate) const IDLE_GRACE_MS: u64 = 500;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Hold {
    pub key: SessionKey,
    pub slot: ReceiverSlot,
    pub receiver: ReceiverId,
    pub mode: ReceiveMode,
    pub until: Mono,
    /// When its time has to be looked at: `until`, or later if it was idle then.
    pub due: Mono,
    pub window: Window,
    /// No message of the session has a greater number.
    pub last: SequenceNumber,
    /// No available or locked message of the session has a smaller number.
    pub floor: SequenceNumber,
    pub locked: BTreeSet<SequenceNumber>,
    /// Whether its window was half full since it was widened: if it is less now, its holder has
    /// taken some.
    pub was_full: bool,
    /// How much wider its window is than to begin with.
    pub extra: usize,
    /// How many messages were enough when their sizes were added up, or 0 if they were not.
    pub enough_at: usize,
    /// The bodies that are being read.
    pub fetch: Fetch,
    /// After a read that met a damaged body: one at a time, to find it.
    pub cautious: bool,
    /// What of it cannot be read, if anything is damaged.
    pub damage: Option<Eviction>,
    /// Whether its holder is evicted for that once it has been given the rest.
    pub is_news: bool,
    /// After a read that failed: not again before the others that failed.
    pub resting: bool,
    /// What is to be done with its state, once that is read.
    pub states: VecDeque<StateRequest>,
    /// What its state takes of the entity's size, once that is known. Only its holder changes it.
    pub state_cost: Option<u64>,
    /// The state that was set by a transaction while it was being read for others.
    pub state_meanwhile: Option<Option<Bytes>>,
}

impl Hold {
    /// Whether it holds at `now`, noticed or not.
    pub(crate) fn is_live(&self, now: Mono) -> bool {
        now < self.until
    }

    /// When its receiver is told that its time is up, and others may hold the session.
    pub(crate) fn ends(&self) -> Mono {
        let grace = match self.locked.is_empty() {
            true => IDLE_GRACE_MS,
            false => 0,
        };
        self.until.after(grace)
    }

    /// Milliseconds until its time is up.
    pub(crate) fn left_ms(&self, now: Mono) -> u64 {
        self.until.0.saturating_sub(now.0)
    }

    /// What the window takes for the number of messages on disk only: whether there may be any.
    pub(crate) fn beyond(&self) -> u64 {
        u64::from(self.window.end() <= self.last)
    }

    /// A message of the session has arrived. Returns what does not stay in memory.
    pub(crate) fn arrived(&mut self, number: SequenceNumber, entry: Entry) -> Option<Entry> {
        let beyond = self.beyond();
        self.last = self.last.max(number);
        self.window.insert(number, entry, beyond)
    }

    /// A message that was lent is available again. Returns what does not stay in memory.
    pub(crate) fn returned(&mut self, number: SequenceNumber, entry: Entry) -> Option<Entry> {
        self.fetch.note(number);
        let beyond = self.beyond();
        self.window.insert(number, entry, beyond)
    }

    /// Whether nothing is available, nor will be when the reads under way have come back.
    pub(crate) fn is_exhausted(&self) -> bool {
        let read_all = !self.window.is_refilling() && self.beyond() == 0;
        self.window.len() == 0 && read_all || self.resting
    }

    /// Whether the messages of its window are so large that no more should be read for now. Adding
    /// up their sizes is worth it again only when some of those have gone that were enough the last
    /// time.
    pub(crate) fn knows_enough(&mut self, settings: &BrokerSettings) -> bool {
        let count = self.window.len();
        if count > self.enough_at - self.enough_at / 8 && self.enough_at > 0 {
            return true;
        }
        let is_enough = self.is_large(settings);
        self.enough_at = if is_enough { count } else { 0 };
        is_enough
    }

    fn is_large(&self, settings: &BrokerSettings) -> bool {
        let enough = (settings.body_bytes / KNOWN_SHARE).max(KNOWN_BYTES);
        let all = SequenceNumber(0)..SequenceNumber::MAX;
        let mut left = enough;
        let mut sizes = self
            .window
            .range(all)
            .map(|(_, entry)| entry.row.size as usize);
        sizes.any(|size| {
            left = left.saturating_sub(size);
            left == 0
        })
    }

    /// Messages of it cannot be read.
    pub(crate) fn note_damage(&mut self, numbers: Range<SequenceNumber>, is_news: bool) {
        self.damage = self.damage.or(unreadable::eviction(&numbers));
        self.is_news |= is_news;
    }

    /// Whether it may be lent more.
    pub(crate) fn has_room(&self) -> bool {
        self.locked.len() < MAX_UNSETTLED
    }

    /// The least number that may be there, as far as is known now.
    pub(crate) fn least(&self) -> SequenceNumber {
        let locked = self.locked.first().copied();
        let first = self.window.first().map(|(number, _)| number);
        let known = first.unwrap_or(self.window.end());
        locked.map_or(known, |locked| locked.min(known))
    }

    /// Whether it has messages, available or lent, as far as is known now.
    pub(crate) fn has_messages(&self) -> bool {
        self.window.len() > 0 || !self.locked.is_empty() || self.beyond() > 0
    }
}
