//! Tokens: makes lock tokens and reads the number out of them.
//!
//! The lower half is the sequence number under a secret mask, so that a look-up by token needs no
//! index; the upper half is random and fresh for every delivery. A look-up compares the whole
//! token.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use store::SequenceNumber;

use crate::api::id::{LockToken, TransactionId};

/// The stream of the seed's random numbers that versions begin in; that of the tokens is stream 0.
const VERSIONS: u64 = 1;

/// Where a broker begins to count the versions of its namespace, so that none of them was one of
/// the broker before it.
pub(crate) fn first_version(seed: [u8; 32]) -> u64 {
    let mut random = ChaCha8Rng::from_seed(seed);
    random.set_stream(VERSIONS);
    random.next_u64()
}

#[derive(Debug)]
pub(crate) struct Tokens {
    random: ChaCha8Rng,
    mask: u64,
}

impl Tokens {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        let mut random = ChaCha8Rng::from_seed(seed);
        let mask = random.next_u64();
        Self { random, mask }
    }

    /// A fresh token for one delivery of a message.
    pub(crate) fn next(&mut self, number: SequenceNumber) -> LockToken {
        let upper = u128::from(self.random.next_u64()) << 64;
        LockToken(upper | u128::from(number.0 ^ self.mask))
    }

    /// A fresh id for a transaction, which no client can guess.
    pub(crate) fn next_transaction(&mut self) -> TransactionId {
        let upper = u128::from(self.random.next_u64()) << 64;
        TransactionId(upper | u128::from(self.random.next_u64()))
    }

    /// A number for a dynamic node, which no client can guess.
    pub(crate) fn next_node(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// What a rule makes its new ids of, for one message.
    pub(crate) fn next_seed(&mut self) -> u128 {
        let upper = u128::from(self.random.next_u64()) << 64;
        upper | u128::from(self.random.next_u64())
    }

    /// The number that a token of ours is about.
    pub(crate) fn number(&self, token: LockToken) -> SequenceNumber {
        let lower = u64::try_from(token.0 & u128::from(u64::MAX)).expect("64 bits are left");
        SequenceNumber(lower ^ self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_number_and_is_never_repeated() {
        let mut tokens = Tokens::new([7; 32]);
        for number in [1, 2, u64::MAX].map(SequenceNumber) {
            let (first, second) = (tokens.next(number), tokens.next(number));
            assert_ne!(first, second);
            assert_eq!(tokens.number(first), number);
            assert_eq!(tokens.number(second), number);
        }
    }
}
