//! Connection limiter: counts connections, in total and by address, and enforces the limits.
//!
//! Each admitted connection holds a [`ConnectionPermit`] and counts until the permit is dropped.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::log::throttle::network;
use crate::options::Limits;

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LimitExceeded {
    #[error("the broker has the maximum of {0} connections")]
    TooMany(usize),
    #[error("the address has the maximum of {0} connections")]
    TooManyFromAddress(usize),
}

/// Counts open connections.
#[derive(Debug)]
pub struct ConnectionLimiter {
    counts: Mutex<ConnectionCounts>,
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    connections: usize,
    connections_per_address: usize,
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl ConnectionLimiter {
    /// A limiter without open connections.
    pub fn new(limits: &Limits) -> Self {
        let connection_limiter = Self {
            counts: Mutex::default(),
        };
        connection_limiter.set_limits(limits);
        connection_limiter
    }

    /// Sets new limits. Existing connections are kept; the limits apply to new ones.
    pub fn set_limits(&self, limits: &Limits) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.connections = limits.connections;
        counts.connections_per_address = limits.connections_per_address;
    }

    /// Admits a connection from `address`, or returns the limit that it would exceed. For IPv6 the
    /// network of 64 bits counts as one address.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, LimitExceeded> {
        let address = network(address.to_canonical());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (total, most_from_address) = (counts.total, counts.connections_per_address);
        if total >= counts.connections {
            return Err(LimitExceeded::TooMany(total));
        }
        let from_address = counts.by_address.entry(address).or_default();
        if *from_address >= most_from_address {
            return Err(LimitExceeded::TooManyFromAddress(*from_address));
        }
        *from_address += 1;
        counts.total += 1;
        Ok(ConnectionPermit {
            connection_limiter: Arc::clone(self),
            address,
        })
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total
    }

    fn release(&self, address: IpAddr) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
        if let Some(count) = counts.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.by_address.remove(&address);
            }
        }
    }
}

/// An admitted connection, which counts until this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    connection_limiter: Arc<ConnectionLimiter>,
    address: IpAddr,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connection_limiter.release(self.address);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn connection_limiter(
        connections: usize,
        connections_per_address: usize,
    ) -> Arc<ConnectionLimiter> {
        Arc::new(ConnectionLimiter::new(&Limits {
            connections,
            connections_per_address,
            ..Limits::default()
        }))
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    #[test]
    fn one_address_can_not_take_every_place() {
        let connection_limiter = connection_limiter(10, 2);
        let _first = connection_limiter.admit(address(1)).unwrap();
        let _second = connection_limiter.admit(address(1)).unwrap();
        assert_eq!(
            connection_limiter.admit(address(1)).unwrap_err(),
            LimitExceeded::TooManyFromAddress(2)
        );
        assert!(connection_limiter.admit(address(2)).is_ok());
    }

    #[test]
    fn new_limits_apply_to_later_connections() {
        let connection_limiter = connection_limiter(1, 1);
        let _first = connection_limiter.admit(address(1)).unwrap();
        let limits = |connections, connections_per_address| Limits {
            connections,
            connections_per_address,
            ..Limits::default()
        };
        connection_limiter.set_limits(&limits(3, 2));
        let _second = connection_limiter.admit(address(1)).unwrap();
        connection_limiter.set_limits(&limits(1, 1));
        assert_eq!(
            connection_limiter.admit(address(2)).unwrap_err(),
            LimitExceeded::TooMany(2)
        );
    }

    #[test]
    fn a_full_limiter_admits_no_connection_until_one_is_closed() {
        let connection_limiter = connection_limiter(2, 2);
        let first = connection_limiter.admit(address(1)).unwrap();
        let _second = connection_limiter.admit(address(2)).unwrap();
        assert_eq!(
            connection_limiter.admit(address(3)).unwrap_err(),
            LimitExceeded::TooMany(2)
        );
        drop(first);
        assert!(connection_limiter.admit(address(3)).is_ok());
    }
}
