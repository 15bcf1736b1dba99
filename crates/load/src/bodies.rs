//! Bodies: the content of messages, cut from one block of pseudo-random bytes.
//!
//! The block does not compress, and neighbours share nothing, so a broker that compresses its
//! writes has no advantage. A message is durable, for brokers that look at that.

use std::sync::OnceLock;

use bytes::Bytes;

/// The header section of every message: durable, the rest by default. [AMQP 3.2.1]
pub const HEADER: &[u8] = &[0x00, 0x53, 0x70, 0xc0, 0x02, 0x01, 0x41];
/// The same with a time to live of an hour.
pub const HEADER_WITH_TTL: &[u8] = &[
    0x00, 0x53, 0x70, 0xc0, 0x08, 0x03, 0x41, 0x40, 0x70, 0x00, 0x36, 0xee, 0x80,
];
/// Bytes before messages repeat themselves, many times what LZ4 looks back.
const CYCLE: usize = 4 << 20;
/// The largest body, in bytes.
pub const LARGEST: usize = 1 << 20;

/// Bodies of one size.
pub struct Bodies {
    /// The start of a data section. [AMQP 3.2.6]
    head: [u8; 8],
    block: &'static Bytes,
    size: usize,
}

impl Bodies {
    /// Of `size` bytes each.
    ///
    /// # Panics
    /// Above [`LARGEST`].
    pub fn new(size: usize) -> Self {
        assert!(size <= LARGEST, "bodies are small");
        let [a, b, c, d] = u32::try_from(size).expect("bodies are small").to_be_bytes();
        Self {
            head: [0x00, 0x53, 0x75, 0xb0, a, b, c, d],
            block: block(),
            size,
        }
    }

    /// The data section of the `number`th message, in two pieces.
    pub fn section(&self, number: u64) -> [&[u8]; 2] {
        let number = usize::try_from(number % CYCLE as u64).expect("it is small");
        let start = number * self.size % CYCLE;
        [&self.head, &self.block[start..start + self.size]]
    }
}

/// The same bytes in every run.
pub fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        // xorshift64
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()
        };
        let words = (CYCLE + LARGEST) / size_of::<u64>();
        let bytes: Vec<u8> = std::iter::repeat_with(next).take(words).flatten().collect();
        bytes.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_data_section_of_its_size() {
        let bodies = Bodies::new(1_024);
        let [head, body] = bodies.section(3);
        assert_eq!(head, [0x00, 0x53, 0x75, 0xb0, 0, 0, 4, 0]);
        assert_eq!(body.len(), 1_024);
    }

    #[test]
    fn messages_differ_until_the_block_is_used_up() {
        for size in [64, 1_024, 16 << 10] {
            let bodies = Bodies::new(size);
            let cycle = (CYCLE / size) as u64;
            let [_, first] = bodies.section(0);
            assert!((1..cycle).all(|number| bodies.section(number)[1] != first));
            assert_eq!(bodies.section(cycle)[1], first);
        }
    }

    #[test]
    fn every_number_has_a_body() {
        let bodies = Bodies::new(LARGEST);
        let [_, body] = bodies.section(u64::MAX);
        assert_eq!(body.len(), LARGEST);
    }

    #[test]
    fn the_header_says_durable() {
        let header = amqp::message::Header::decode(HEADER).expect("a header");
        assert_eq!((header.durable, header.ttl), (Some(true), None));
        let header = amqp::message::Header::decode(HEADER_WITH_TTL).expect("a header");
        assert_eq!((header.durable, header.ttl), (Some(true), Some(3_600_000)));
    }
}
