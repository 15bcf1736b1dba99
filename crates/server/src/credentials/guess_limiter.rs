//! Guess limiter: slows down an address that shows one wrong key or token after the other.
//!
//! An address (for IPv6 a network of 64 bits) may show a number of wrong credentials at once and
//! ten a second from then on. The answer to each further one is delayed until it is its turn, for
//! five seconds at most. Wrong credentials that come together are answered together, for five
//! seconds each at most. The answer to a right credential is never delayed, so a client with a
//! right key is not held up by guesses from its own address. Times are passed in.
//!
//! Invariant: the number of addresses that are kept is bounded; all further ones share one entry.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::log::throttle::{Peer, network};

/// The time that one wrong credential counts.
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest delay of an answer, for each wrong credential that came with it.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Addresses that have an entry of their own.
const ADDRESSES: usize = 1_024;

/// The wrong credentials of each address.
#[derive(Debug)]
pub struct GuessLimiter {
    guesses: Mutex<Guesses>,
}

#[derive(Debug)]
struct Guesses {
    /// Wrong credentials at once that are answered without a delay.
    allowed: u32,
    /// By address, the moment from which none of its wrong credentials counts any more.
    forgotten_at: HashMap<Peer, Instant>,
}

impl GuessLimiter {
    /// A limiter that has seen nothing. `allowed` wrong credentials at once are not delayed.
    pub fn new(allowed: u32) -> Self {
        Self {
            guesses: Mutex::new(Guesses {
                allowed,
                forgotten_at: HashMap::new(),
            }),
        }
    }

    /// Replaces the number that is allowed at once. What was shown before counts on.
    pub fn set_allowed(&self, allowed: u32) {
        self.lock().allowed = allowed;
    }

    /// Counts wrong credentials that `address` has shown. Returns the moment when they may be
    /// answered, if that is not at once.
    pub fn count(&self, now: Instant, address: IpAddr, wrong: u64) -> Option<Instant> {
        self.lock().count(now, address, wrong)
    }

    fn lock(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guesses {
    fn count(&mut self, now: Instant, address: IpAddr, wrong: u64) -> Option<Instant> {
        let allowance = INTERVAL.saturating_mul(self.allowed);
        let wrong = u32::try_from(wrong).unwrap_or(u32::MAX);
        let peer = self.peer(now, address);
        let forgotten_at = self.forgotten_at.entry(peer).or_insert(now);
        let counted = (*forgotten_at).saturating_duration_since(now);
        let counted = counted.saturating_add(INTERVAL.saturating_mul(wrong));
        let most = allowance.saturating_add(MAX_DELAY.saturating_mul(wrong));
        let counted = counted.min(most);
        // Many at once may count for longer than this one can wait.
        *forgotten_at = (*forgotten_at).max(now + counted);
        let delay = counted.saturating_sub(allowance);
        (delay > Duration::ZERO).then(|| now + delay)
    }

    /// The entry that an address has or gets.
    fn peer(&mut self, now: Instant, address: IpAddr) -> Peer {
        let peer = Some(network(address.to_canonical()));
        if self.forgotten_at.contains_key(&peer) {
            return peer;
        }
        if self.forgotten_at.len() >= ADDRESSES {
            self.forgotten_at
                .retain(|_, forgotten_at| *forgotten_at > now);
        }
        peer.filter(|_| self.forgotten_at.len() < ADDRESSES)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const ALLOWED: u32 = 8;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    fn limiter() -> (GuessLimiter, Instant) {
        (GuessLimiter::new(ALLOWED), Instant::now())
    }

    /// Milliseconds by which the answer to `wrong` wrong credentials is delayed.
    fn delay(limiter: &GuessLimiter, now: Instant, address: IpAddr, wrong: u64) -> u128 {
        let until = limiter.count(now, address, wrong);
        until.map_or(0, |until| (until - now).as_millis())
    }

    #[test]
    fn an_address_may_be_wrong_a_few_times_and_then_waits_longer_with_each() {
        let (limiter, now) = limiter();
        for _ in 0..ALLOWED {
            assert_eq!(delay(&limiter, now, address(1), 1), 0);
        }
        for expected in [100, 200, 300] {
            assert_eq!(delay(&limiter, now, address(1), 1), expected);
        }
    }

    #[test]
    fn several_wrong_credentials_at_once_count_one_by_one() {
        let (limiter, now) = limiter();
        assert_eq!(delay(&limiter, now, address(1), 10), 200);
        assert_eq!(delay(&limiter, now, address(1), 5), 700);
    }

    #[test]
    fn an_answer_is_delayed_for_five_seconds_at_most() {
        let (limiter, now) = limiter();
        for _ in 0..1_000 {
            assert!(delay(&limiter, now, address(1), 1) <= 5_000);
        }
        assert_eq!(delay(&limiter, now, address(1), 1), 5_000);
        let later = now + Duration::from_secs(5);
        assert_eq!(delay(&limiter, later, address(1), 1), 100);
    }

    #[test]
    fn many_wrong_credentials_in_one_read_wait_as_long_as_one_after_the_other() {
        const CONNECTIONS: u64 = 100;
        const IN_ONE_READ: u64 = 32;
        let (limiter, now) = limiter();
        for _ in 0..CONNECTIONS {
            // A single one does not shorten what the others wait for.
            delay(&limiter, now, address(1), 1);
            let waits = delay(&limiter, now, address(1), IN_ONE_READ);
            assert!(waits <= u128::from(IN_ONE_READ) * 5_000, "{waits}");
        }
        let waits = delay(&limiter, now, address(1), IN_ONE_READ);
        assert_eq!(waits, u128::from(IN_ONE_READ) * 5_000);
        assert_eq!(delay(&limiter, now, address(1), 1), 5_000);
    }

    #[test]
    fn a_guesser_is_answered_ten_times_a_second_in_the_long_run() {
        let (limiter, start) = limiter();
        let (mut now, mut answered) = (start, 0);
        // One connection after the other, each with one guess, answered when the limiter says so.
        while now < start + Duration::from_secs(60) {
            now = limiter.count(now, address(1), 1).unwrap_or(now);
            answered += 1;
        }
        assert_eq!(answered, 60 * 10 + ALLOWED);
    }

    #[test]
    fn guesses_are_forgotten_with_time() {
        let (limiter, now) = limiter();
        assert_eq!(delay(&limiter, now, address(1), 8), 0);
        let later = now + Duration::from_millis(800);
        assert_eq!(delay(&limiter, later, address(1), 8), 0);
        assert_eq!(delay(&limiter, later, address(1), 1), 100);
    }

    #[test]
    fn addresses_do_not_delay_each_other() {
        let (limiter, now) = limiter();
        assert_eq!(delay(&limiter, now, address(1), 100), 9_200);
        assert_eq!(delay(&limiter, now, address(2), 1), 0);
    }

    #[test]
    fn a_host_is_one_address_in_all_of_its_forms() {
        let (limiter, now) = limiter();
        let mapped = IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
        assert_eq!(delay(&limiter, now, address(1), 8), 0);
        assert_eq!(delay(&limiter, now, mapped, 1), 100);
        let of_network = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, last));
        assert_eq!(delay(&limiter, now, of_network(1), 8), 0);
        assert_eq!(delay(&limiter, now, of_network(2), 1), 100);
    }

    #[test]
    fn a_new_allowance_applies_to_the_next_wrong_credential() {
        let (limiter, now) = limiter();
        assert_eq!(delay(&limiter, now, address(1), 8), 0);
        limiter.set_allowed(2);
        assert_eq!(delay(&limiter, now, address(1), 1), 700);
        limiter.set_allowed(100);
        assert_eq!(delay(&limiter, now, address(1), 1), 0);
    }

    #[test]
    fn addresses_beyond_a_bound_share_an_entry_until_others_are_forgotten() {
        let (limiter, now) = limiter();
        for number in 0..100_000 {
            limiter.count(now, address(number), 1);
        }
        let kept = |limiter: &GuessLimiter| limiter.lock().forgotten_at.len();
        assert!(kept(&limiter) <= ADDRESSES + 1);
        assert!(delay(&limiter, now, address(100_000), 1) > 0);
        let later = now + Duration::from_secs(60);
        assert_eq!(delay(&limiter, later, address(100_001), 1), 0);
        assert_eq!(kept(&limiter), 1);
    }
}
