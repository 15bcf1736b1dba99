//! Session: the sessions that simulated messages belong to, a few busy ones and many small ones.
//!
//! A message's session stands in the upper bits of its id, so a check that sees a payload knows the
//! session too, and no hash of the broker's is needed to tell one from another.

use crate::message::{MessageId, root_of};
use crate::rng::Rng;

/// Bits of a message id below its session.
const SHIFT: u32 = 48;
/// Busy sessions, which most messages and receivers are for.
const BUSY: u64 = 6;
/// Sessions in all.
const ALL: u64 = 60;

/// Names one session of every queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Session(u16);

impl Session {
    /// Any session, a busy one as a rule.
    pub fn any(rng: &mut Rng) -> Self {
        let most = if rng.chance(850) { BUSY } else { ALL };
        Self(rng.between(1, most) as u16)
    }

    /// The session of that number, from 1 on.
    #[must_use]
    pub fn numbered(number: u16) -> Self {
        Self(number.max(1))
    }

    /// What a message of a queue has: a session where it needs one, but for a few that forget it.
    pub fn for_message(rng: &mut Rng, needed: bool) -> Option<Self> {
        let per_mille = if needed { 980 } else { 100 };
        rng.chance(per_mille).then(|| Self::any(rng))
    }

    /// The session of the message named `id`.
    #[must_use]
    pub fn of(id: MessageId) -> Option<Self> {
        let number = (id >> SHIFT) as u16;
        (number > 0).then_some(Self(number))
    }

    /// The name of a message of `session` that is the `count`th of all.
    #[must_use]
    pub fn name_message(session: Option<Self>, count: u64) -> MessageId {
        let upper = session.map_or(0, |session| u64::from(session.0));
        upper << SHIFT | count
    }

    /// What the broker knows it by.
    #[must_use]
    pub fn name(self) -> String {
        format!("session-{}", self.0)
    }

    /// The session of a message as its sender writes it: the letter case is not always the same.
    #[must_use]
    pub fn as_sent(id: MessageId) -> Option<String> {
        let name = Self::of(id)?.name();
        Some(match root_of(id) % 3 {
            0 => name.to_uppercase(),
            1 => name.replacen('s', "S", 1),
            _ => name,
        })
    }

    /// Whose name that is, in any letter case.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let number = name.strip_prefix("session-")?;
        number.parse().ok().filter(|number| *number > 0).map(Self)
    }

    /// The first and the last of all, as bounds of a range.
    pub const BOUNDS: (Self, Self) = (Self(0), Self(u16::MAX));
}
