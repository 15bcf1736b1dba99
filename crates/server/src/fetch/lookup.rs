//! Lookup: finds the addresses of a host name, on threads of its own.
//!
//! A name server that does not answer holds a thread for long, also after the caller has given up.
//! The threads that read the store are few, so none of them is used, and the number of look-ups at
//! a time is bounded.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use tokio::sync::{Semaphore, oneshot};

/// Look-ups at a time.
const THREADS: usize = 4;

static IDLE: Semaphore = Semaphore::const_new(THREADS);

/// The addresses of a host, which may be written as an address.
///
/// # Errors
/// When it has none, or cannot be looked up.
pub async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let permit = IDLE.acquire().await.map_err(io::Error::other)?;
    let (sender, found) = oneshot::channel();
    let host = host.to_owned();
    thread::Builder::new()
        .name("lookup".to_owned())
        .spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            drop(permit);
            // The one that asked may have given up.
            drop(sender.send(found.map(Vec::from_iter)));
        })?;
    found.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_found_on_no_thread_of_the_runtime() {
        let found = addresses("127.0.0.1", 80).await.unwrap();
        assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert!(addresses("::1", 80).await.unwrap()[0].is_ipv6());
        assert!(addresses("no name", 80).await.is_err());
    }

    #[tokio::test]
    async fn more_lookups_than_threads_wait_for_each_other() {
        let many = (0..10 * THREADS).map(|_| tokio::spawn(addresses("127.0.0.1", 80)));
        for found in many.collect::<Vec<_>>() {
            assert_eq!(found.await.unwrap().unwrap().len(), 1);
        }
        assert_eq!(IDLE.available_permits(), THREADS);
    }
}
