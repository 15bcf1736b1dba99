//! Rows: the writes of a queue for a message that is sent, and for one that is settled.

use std::ops::Range;

use bytes::Bytes;
use store::{BodyPointer, EntityId, Head, MessageRow, Part, SequenceNumber, Write, WriteSet};

/// Whose messages they are.
pub const QUEUE: EntityId = EntityId(1);
/// Random bytes before bodies repeat themselves.
const CYCLE: usize = 4 << 20;

/// Messages of one size.
pub struct Rows {
    size: usize,
    source: Bytes,
}

impl Rows {
    /// With bodies of `size` bytes.
    pub fn new(size: usize) -> Self {
        let source = random_bytes(CYCLE + size).into();
        Self { size, source }
    }

    /// Messages come.
    pub fn send(&self, set: &mut WriteSet, numbers: Range<u64>) {
        let mut head = Head::empty();
        head.next_number = SequenceNumber(numbers.end);
        for number in numbers.map(SequenceNumber) {
            let pointer = pointer(number);
            let row = MessageRow {
                enqueued_ms: 1_700_000_000_000,
                ttl_ms: u64::MAX,
                expires_ms: u64::MAX,
                size: u32::try_from(self.size).expect("small"),
                flags: 0,
                session_hash: 0,
                enqueued_number: 0,
                body: pointer,
            };
            set.push(Write::PutBody {
                pointer,
                body: self.body(number),
            });
            set.push(Write::PutMessage {
                entity: QUEUE,
                part: Part::Active,
                number,
                row,
            });
        }
        set.push(Write::PutHead {
            entity: QUEUE,
            head,
        });
    }

    /// Messages go.
    pub fn settle(&self, set: &mut WriteSet, numbers: Range<u64>) {
        for number in numbers.map(SequenceNumber) {
            set.push(Write::RemoveMessage {
                entity: QUEUE,
                part: Part::Active,
                number,
            });
            set.push(Write::RemoveBody {
                pointer: pointer(number),
            });
        }
    }

    /// A piece that differs from those of the neighbours, so that nothing compresses.
    fn body(&self, number: SequenceNumber) -> Bytes {
        let number = usize::try_from(number.0).expect("small");
        let start = number * self.size % CYCLE;
        self.source.slice(start..start + self.size)
    }
}

fn pointer(number: SequenceNumber) -> BodyPointer {
    BodyPointer {
        home: QUEUE,
        number,
    }
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut word = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

/// CPU time of this process in microseconds.
pub fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields = stat.rsplit(')').next().expect("a name in brackets");
    let ticks = |index: usize| -> u64 {
        let field = fields.split_whitespace().nth(index).expect("many fields");
        field.parse().expect("a number")
    };
    (ticks(11) + ticks(12)) * 10_000
}
