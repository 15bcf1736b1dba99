//! Event loop: the load generator's loop, one thread for all connections.
//!
//! It waits for sockets and for the next message that is due, so a fixed rate is kept to the
//! microsecond and an idle generator takes no processor from the broker.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::{Client, Error, Workload};

/// A wait without anything due.
const IDLE: Duration = Duration::from_millis(100);

/// Lets every connection act, waits for one that is ready, and reads those that are. Returns at the
/// latest after 100 ms, or on a signal.
pub fn run_once<W: Workload>(clients: &mut [Client<W>], now: Instant) -> Result<(), W::Error> {
    let mut flags = Vec::with_capacity(clients.len());
    for client in clients.iter_mut() {
        let blocked = client.act(now)?;
        flags.push(if blocked {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        });
    }
    let ready = wait(clients, &flags)?;
    let now = Instant::now();
    for (client, ready) in clients.iter_mut().zip(ready) {
        if ready {
            client.read(now)?;
        }
    }
    Ok(())
}

/// Which connections have something to read.
fn wait<W: Workload>(clients: &[Client<W>], flags: &[PollFlags]) -> Result<Vec<bool>, Error> {
    let sockets = clients.iter().zip(flags);
    let mut polled: Vec<PollFd<'_>> = sockets
        .map(|(client, flags)| PollFd::new(client.stream(), *flags))
        .collect();
    match poll(&mut polled, Some(&time_out(clients))) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(Error::Lost(error.into())),
    }
    let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
    Ok(polled
        .iter()
        .map(|socket| socket.revents().intersects(readable))
        .collect())
}

fn time_out<W: Workload>(clients: &[Client<W>]) -> Timespec {
    let due = clients.iter().filter_map(Client::due).min();
    let wait = due.map_or(IDLE, |due| {
        due.saturating_duration_since(Instant::now()).min(IDLE)
    });
    Timespec {
        tv_sec: 0,
        tv_nsec: wait.subsec_nanos().into(),
    }
}
