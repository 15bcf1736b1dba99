//! Entrance: counts connections, in total and by address, and lets no more in than the limits say.
//!
//! A [`Ticket`] is held by each connection that was let in and counts until it is dropped.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::options::Limits;

/// Why a connection is not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("there are {0} connections already")]
    TooMany(usize),
    #[error("there are {0} connections from its address already")]
    TooManyFromAddress(usize),
}

/// Who is in.
#[derive(Debug)]
pub struct Entrance {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    connections: usize,
    connections_per_address: usize,
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Entrance {
    /// An entrance with nobody inside.
    pub fn new(limits: &Limits) -> Self {
        let entrance = Self {
            inside: Mutex::default(),
        };
        entrance.set_limits(limits);
        entrance
    }

    /// Lets as many in from now on. Who is inside stays.
    pub fn set_limits(&self, limits: &Limits) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.connections = limits.connections;
        inside.connections_per_address = limits.connections_per_address;
    }

    /// Lets a connection from `address` in, or says why not.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Ticket, Refusal> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let (total, most_from_address) = (inside.total, inside.connections_per_address);
        if total >= inside.connections {
            return Err(Refusal::TooMany(total));
        }
        let from_address = inside.by_address.entry(address).or_default();
        if *from_address >= most_from_address {
            return Err(Refusal::TooManyFromAddress(*from_address));
        }
        *from_address += 1;
        inside.total += 1;
        Ok(Ticket {
            entrance: Arc::clone(self),
            address,
        })
    }

    /// How many are in.
    pub fn inside(&self) -> usize {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.total
    }

    fn leave(&self, address: IpAddr) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.total -= 1;
        if let Some(count) = inside.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                inside.by_address.remove(&address);
            }
        }
    }
}

/// The right to be inside; given back on drop.
#[derive(Debug)]
pub struct Ticket {
    entrance: Arc<Entrance>,
    address: IpAddr,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.entrance.leave(self.address);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn entrance(connections: usize, connections_per_address: usize) -> Arc<Entrance> {
        Arc::new(Entrance::new(&Limits {
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
        let entrance = entrance(10, 2);
        let _first = entrance.admit(address(1)).unwrap();
        let _second = entrance.admit(address(1)).unwrap();
        assert_eq!(
            entrance.admit(address(1)).unwrap_err(),
            Refusal::TooManyFromAddress(2)
        );
        assert!(entrance.admit(address(2)).is_ok());
    }

    #[test]
    fn other_limits_hold_for_those_who_come_after_them() {
        let entrance = entrance(1, 1);
        let _first = entrance.admit(address(1)).unwrap();
        let limits = |connections, connections_per_address| Limits {
            connections,
            connections_per_address,
            ..Limits::default()
        };
        entrance.set_limits(&limits(3, 2));
        let _second = entrance.admit(address(1)).unwrap();
        entrance.set_limits(&limits(1, 1));
        assert_eq!(entrance.admit(address(2)).unwrap_err(), Refusal::TooMany(2));
    }

    #[test]
    fn a_full_house_lets_nobody_in_until_somebody_leaves() {
        let entrance = entrance(2, 2);
        let first = entrance.admit(address(1)).unwrap();
        let _second = entrance.admit(address(2)).unwrap();
        assert_eq!(entrance.admit(address(3)).unwrap_err(), Refusal::TooMany(2));
        drop(first);
        assert!(entrance.admit(address(3)).is_ok());
    }
}
