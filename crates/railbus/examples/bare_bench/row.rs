//! Row: the stored form of a message and of a queue, with keys and values as long as those of
//! `rocks`.

/// A message's place: its queue and its number in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place {
    pub queue: u32,
    pub number: u64,
}

/// The part of a queue that all messages are in.
const ACTIVE: u8 = 0;
/// What the key of a head begins with.
const HEAD: u8 = b'h';

impl Place {
    /// The key of its row.
    pub fn message(self) -> [u8; 17] {
        let mut key = [ACTIVE; 17];
        key[..8].copy_from_slice(&u64::from(self.queue).to_be_bytes());
        key[9..].copy_from_slice(&self.number.to_be_bytes());
        key
    }

    /// The key of its body, of which there is one piece.
    pub fn body(self) -> [u8; 20] {
        let mut key = [0; 20];
        key[..8].copy_from_slice(&u64::from(self.queue).to_be_bytes());
        key[8..16].copy_from_slice(&self.number.to_be_bytes());
        key
    }

    /// The message behind it.
    pub fn next(self) -> Self {
        let number = self.number + 1;
        Self { number, ..self }
    }
}

/// The row of a message: no flags, no time, and its size.
pub fn message(size: usize) -> [u8; 13] {
    let mut value = [0; 13];
    value[5..].copy_from_slice(&(size as u64).to_be_bytes());
    value
}

/// What a queue knows of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// The number of the message that comes next.
    pub next: u64,
    /// Messages that are there.
    pub count: u64,
}

impl Head {
    /// The key of a queue's head.
    pub fn key(queue: u32) -> [u8; 9] {
        let mut key = [HEAD; 9];
        key[1..].copy_from_slice(&u64::from(queue).to_be_bytes());
        key
    }

    /// Its row, with room for the times and counts that it has in `rocks`.
    pub fn encode(self) -> [u8; 43] {
        let mut value = [0; 43];
        value[..8].copy_from_slice(&self.next.to_be_bytes());
        value[17..25].copy_from_slice(&self.count.to_be_bytes());
        value
    }
}
