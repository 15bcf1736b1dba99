//! Throttle: a limit on the lines of the log that each peer may cause.
//!
//! A peer is an address, whatever its ports, or an IPv6 network of 64 bits. Its first line opens a
//! window. Once the window has its lines, further ones are only counted, and their number is
//! logged when the window ends. A peer is remembered for as long as its window, and the number of
//! peers is bounded: all others share one window. So lines are bounded for each peer, and for all
//! together. Times are passed in.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Lines of one window.
pub const LINES: u32 = 20;
/// How long a window is in a server.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Peers that have a window of their own.
const PEERS: usize = 1_024;

/// A peer, or all those that have no window of their own.
pub type Peer = Option<IpAddr>;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    Written,
    /// Left out, the first of its window.
    FirstLeftOut,
    LeftOut,
}

/// The windows that are open.
#[derive(Debug)]
pub struct Throttle {
    length: Duration,
    windows: HashMap<Peer, Window>,
    /// In the order in which they end.
    order: VecDeque<Peer>,
}

#[derive(Debug)]
struct Window {
    ends: Instant,
    lines: u32,
    left_out: u64,
}

impl Throttle {
    /// Has windows of this length.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            windows: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// How long a window is.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Decides on a line that `peer` causes. Times never go back.
    pub fn decide(&mut self, now: Instant, peer: IpAddr) -> Decision {
        let window = self.window(now, peer);
        if window.lines < LINES {
            window.lines += 1;
            return Decision::Written;
        }
        window.leave_out(1)
    }

    /// Counts lines that are left out whatever the window has room for.
    pub fn leave_out(&mut self, now: Instant, peer: IpAddr, lines: u64) -> Decision {
        self.window(now, peer).leave_out(lines)
    }

    /// Forgets the windows that have ended. Returns the peers of which something was left out, and
    /// how many lines.
    pub fn end(&mut self, now: Instant) -> Vec<(Peer, u64)> {
        let mut left_out = Vec::new();
        while let Some(peer) = self.order.front()
            && let Some(window) = self.windows.get(peer)
            && window.ends <= now
        {
            if window.left_out > 0 {
                left_out.push((*peer, window.left_out));
            }
            self.windows.remove(peer);
            self.order.pop_front();
        }
        left_out
    }

    fn window(&mut self, now: Instant, peer: IpAddr) -> &mut Window {
        let peer = Some(network(peer.to_canonical()));
        let is_known = self.windows.contains_key(&peer);
        let peer = peer.filter(|_| is_known || self.windows.len() < PEERS);
        self.windows.entry(peer).or_insert_with(|| {
            self.order.push_back(peer);
            Window {
                ends: now + self.length,
                lines: 0,
                left_out: 0,
            }
        })
    }
}

/// The address, or the network of 64 bits of which an IPv6 host has every address.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 64 << 64;
            IpAddr::V6(bits.into())
        }
    }
}

impl Window {
    fn leave_out(&mut self, lines: u64) -> Decision {
        let is_first = self.left_out == 0;
        self.left_out += lines;
        match is_first {
            true => Decision::FirstLeftOut,
            false => Decision::LeftOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    /// How many of `lines` lines are written.
    fn written(throttle: &mut Throttle, now: Instant, peer: IpAddr, lines: u32) -> usize {
        let decisions = (0..lines).map(|_| throttle.decide(now, peer));
        let written = decisions.filter(|decision| *decision == Decision::Written);
        written.count()
    }

    #[test]
    fn a_peer_has_so_many_lines_and_the_first_that_is_left_out_is_known() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        assert_eq!(written(&mut throttle, now, address(1), LINES), 20);
        assert_eq!(throttle.decide(now, address(1)), Decision::FirstLeftOut);
        assert_eq!(throttle.decide(now, address(1)), Decision::LeftOut);
    }

    #[test]
    fn peers_do_not_take_lines_from_each_other() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        assert_eq!(written(&mut throttle, now, address(1), 100), 20);
        assert_eq!(written(&mut throttle, now, address(2), 100), 20);
    }

    #[test]
    fn an_address_is_one_peer_in_both_of_its_forms() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        let mapped = IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
        assert_eq!(written(&mut throttle, now, address(1), LINES), 20);
        assert_eq!(written(&mut throttle, now, mapped, 1), 0);
        let other = IpAddr::V6(Ipv6Addr::LOCALHOST);
        assert_eq!(written(&mut throttle, now, other, 1), 1);
    }

    #[test]
    fn suppressed_lines_are_reported_once_when_the_window_has_ended() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        written(&mut throttle, now, address(1), LINES + 5);
        let decision = throttle.leave_out(now, address(1), 2);
        assert_eq!(decision, Decision::LeftOut);
        assert_eq!(throttle.end(now + WINDOW - Duration::from_millis(1)), []);
        assert_eq!(throttle.end(now + WINDOW), [(Some(address(1)), 7)]);
        assert_eq!(throttle.end(now + WINDOW), []);
    }

    #[test]
    fn a_peer_has_lines_again_after_its_window() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        written(&mut throttle, now, address(1), LINES + 5);
        let later = now + WINDOW;
        throttle.end(later);
        assert_eq!(written(&mut throttle, later, address(1), 100), 20);
    }

    #[test]
    fn a_peer_without_excess_is_forgotten_without_a_word() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        written(&mut throttle, now, address(1), LINES);
        assert_eq!(throttle.end(now + WINDOW), []);
        assert!(throttle.windows.is_empty());
    }

    #[test]
    fn peers_beyond_a_bound_share_one_window() {
        let (mut throttle, now) = (Throttle::new(WINDOW), Instant::now());
        for number in 0..100_000 {
            throttle.decide(now, address(number));
        }
        assert_eq!(throttle.windows.len(), PEERS + 1);
        assert_eq!(throttle.order.len(), PEERS + 1);
        let expected = 100_000 - PEERS as u64 - u64::from(LINES);
        assert_eq!(throttle.end(now + WINDOW), [(None, expected)]);
        assert!(throttle.windows.is_empty() && throttle.order.is_empty());
    }
}
