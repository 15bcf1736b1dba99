//! Row: the flags of a message's row, which say what it has been through.

use store::MessageRow;

/// How often it was forwarded.
const HOPS: u32 = 0b0111;
/// It could not be forwarded, and is not forwarded any more.
pub(crate) const STUCK: u32 = 0b1000;
/// It came with changed properties, so it has a patch though it was never delivered.
const PATCHED: u32 = 0b1_0000;
/// Its body belongs to several messages.
pub(crate) const SHARED: u32 = 0b10_0000;
/// It waited for a time set by its sender before it became available, here or where it came from.
const SCHEDULED: u32 = 0b100_0000;

/// It was abandoned and waits among the scheduled messages, under the number that it keeps.
pub(crate) const WAITING: u32 = 0b1000_0000;

/// Its sender gave it a priority, which the third byte tells.
const HAS_PRIORITY: u32 = 1 << 8;
const PRIORITY: u32 = HAS_PRIORITY | 0xff_0000;

/// What a message keeps wherever it goes.
const KEPT: u32 = SCHEDULED | PRIORITY;

/// The flags of a message that its sender gave this priority, or none.
pub(crate) fn sent_with(priority: Option<u8>) -> u32 {
    priority.map_or(0, |priority| {
        HAS_PRIORITY | u32::from_le_bytes([0, 0, priority, 0])
    })
}

/// The priority that a message's sender gave it.
pub(crate) fn priority(row: &MessageRow) -> Option<u8> {
    let [_, _, priority, _] = row.flags.to_le_bytes();
    (row.flags & HAS_PRIORITY != 0).then_some(priority)
}

/// How often a message was forwarded.
pub(crate) fn hops(row: &MessageRow) -> u32 {
    row.flags & HOPS
}

/// From here on a message has not been forwarded yet.
pub(crate) fn forget_hops(row: &mut MessageRow) {
    row.flags &= !HOPS;
}

/// Whether a message could not be forwarded.
pub(crate) fn is_stuck(row: &MessageRow) -> bool {
    row.flags & STUCK != 0
}

/// Whether a message came with a patch.
pub(crate) fn came_patched(row: &MessageRow) -> bool {
    row.flags & PATCHED != 0
}

/// The flags of a message that has just arrived and been nowhere else.
pub(crate) fn arrived(patched: bool) -> u32 {
    if patched { PATCHED } else { 0 }
}

/// The flags of a dead letter that goes back to where it was.
pub(crate) fn redriven(row: &MessageRow, patched: bool) -> u32 {
    arrived(patched) | row.flags & PRIORITY
}

/// The flags of a message that is forwarded once more.
pub(crate) fn moved_on(row: &MessageRow, patched: bool) -> u32 {
    let hops = (hops(row) + 1).min(HOPS);
    arrived(patched) | hops | row.flags & KEPT
}

/// The flags of a message that comes out of a transfer queue, where it has only waited.
pub(crate) fn sent_via(row: &MessageRow, patched: bool) -> u32 {
    arrived(patched) | row.flags & KEPT
}

/// The flags of a scheduled message that becomes available.
pub(crate) fn activated(row: &MessageRow) -> u32 {
    row.flags | SCHEDULED
}

/// Whether a message was scheduled before it became available.
pub(crate) fn was_scheduled(row: &MessageRow) -> bool {
    row.flags & SCHEDULED != 0
}

/// Whether a message's body belongs to others too, or did.
pub(crate) fn is_shared(row: &MessageRow) -> bool {
    row.flags & SHARED != 0
}

/// The flags of a subscription's copy, which has gone no further than its topic.
pub(crate) fn copied(row: &MessageRow, patched: bool, shared: bool) -> u32 {
    let shared = if shared { SHARED } else { 0 };
    arrived(patched) | hops(row) | row.flags & KEPT | shared
}

/// Whether a scheduled message waits for its next delivery.
pub(crate) fn is_waiting(row: &MessageRow) -> bool {
    row.flags & WAITING != 0
}

#[cfg(test)]
mod tests {
    use store::{BodyPointer, EntityId, SequenceNumber};

    use super::*;

    #[test]
    fn a_priority_goes_along_wherever_a_message_goes() {
        for priority in [None, Some(0), Some(4), Some(u8::MAX)] {
            let row = |flags| MessageRow {
                enqueued_ms: 0,
                ttl_ms: 0,
                expires_ms: 0,
                size: 0,
                flags,
                session_hash: 0,
                enqueued_number: 0,
                body: BodyPointer {
                    home: EntityId(1),
                    number: SequenceNumber(1),
                },
            };
            let sent = row(sent_with(priority));
            let moved = [
                sent.flags,
                moved_on(&sent, true),
                sent_via(&sent, false),
                activated(&sent),
                copied(&sent, true, true),
                redriven(&sent, true),
            ];
            for flags in moved {
                assert_eq!(super::priority(&row(flags)), priority);
            }
            assert_eq!(hops(&row(moved_on(&sent, true))), 1);
        }
    }
}
