//! Bare: connections, queues and the committer, in one thread that waits for all of them at once.
//!
//! Each round reads every connection once, submits the resulting writes, sends the outcomes of
//! durable writes, and delivers messages.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Interval, interval};

use crate::committer::{Committer, Set, Store, Write};
use crate::database::Table;
use crate::peer::Peer;
use crate::queue::Queues;

/// How often connections that rest are looked at, for their heartbeats.
const LOOK: Duration = Duration::from_secs(5);

/// See the module.
pub struct Bare {
    listener: TcpListener,
    committer: Committer,
    queues: Queues,
    peers: BTreeMap<u64, Peer>,
    next_peer: u64,
    set: Set,
    look: Interval,
    committed: Committed,
}

/// What was made durable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Committed {
    pub groups: u64,
    /// That came, not those that went.
    pub messages: u64,
}

impl Bare {
    /// Serves the connections of `listener`.
    pub fn new(listener: TcpListener, store: Box<dyn Store>, table: Option<Table>) -> Self {
        Self {
            listener,
            committer: Committer::start(store),
            queues: Queues::new(table),
            peers: BTreeMap::new(),
            next_peer: 0,
            set: Set::new(),
            look: interval(LOOK),
            committed: Committed::default(),
        }
    }

    /// What was made durable so far.
    pub fn committed(&self) -> Committed {
        self.committed
    }

    /// Runs until an error that no connection caused, and returns it.
    pub async fn run(&mut self) -> io::Error {
        poll_fn(|context| match self.round(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        })
        .await
    }

    fn round(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.look.poll_tick(context).is_ready() {}
        while let Poll::Ready(accepted) = self.listener.poll_accept(context) {
            let (stream, _) = accepted?;
            self.peers
                .insert(self.next_peer, Peer::new(self.next_peer, stream)?);
            self.next_peer += 1;
        }
        let mut again = false;
        for peer in self.peers.values_mut() {
            let read = peer.poll_read(context, &mut self.queues, &mut self.set);
            again |= read.is_ready();
            self.committer.submit(&mut self.set);
        }
        while let Poll::Ready(Some(group)) = self.committer.durable().poll_recv(context) {
            self.committed.groups += 1;
            group
                .into_iter()
                .flatten()
                .for_each(|write| self.tell(write));
        }
        self.deliver()?;
        for peer in self.peers.values_mut() {
            peer.poll_write(context, &self.queues);
            again |= peer.may_go_on();
        }
        self.forget();
        if again {
            // There may be more to read.
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    fn tell(&mut self, durable: Write) {
        match durable {
            Write::Put(place, body, delivery) => {
                self.committed.messages += 1;
                self.queues.push(place, body);
                if let Some(peer) = self.peers.get_mut(&delivery.peer) {
                    peer.accept(delivery);
                }
            }
            Write::Remove(_, delivery) => {
                if let Some(peer) = self.peers.get_mut(&delivery.peer) {
                    peer.settled(delivery);
                }
            }
        }
    }

    fn deliver(&mut self) -> io::Result<()> {
        for queue in self.queues.all() {
            let peers = &mut self.peers;
            self.queues.deliver(queue, |taker, place, body| {
                let peer = peers.get_mut(&taker.peer);
                peer.is_some_and(|peer| peer.give(taker.link, place, body))
            })?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        let queues = &mut self.queues;
        self.peers.retain(|number, peer| {
            if peer.is_gone() {
                queues.detach(|taker| taker.peer == *number);
            }
            !peer.is_gone()
        });
    }
}
