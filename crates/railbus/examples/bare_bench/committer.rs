//! Committer: the one thread that makes messages and settlements durable, in groups.
//!
//! It takes whatever was submitted while it was syncing as one group, as the broker's does, and
//! gives the writes back when they are durable. A failed one ends the program.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use bytes::Bytes;
use endpoint::SessionId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::row::{Head, Place};

/// The delivery to settle when a write is durable.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub peer: u64,
    pub session: SessionId,
    pub id: u32,
}

/// A change of a queue.
#[derive(Debug)]
pub enum Write {
    /// A message comes.
    Put(Place, Bytes, Delivery),
    /// A message was settled and goes.
    Remove(Place, Delivery),
}

/// What was submitted at once.
pub type Set = Vec<Write>;

/// Where groups go.
pub trait Store: Send {
    /// Makes a group durable, with the `heads` of its queues.
    fn commit(&mut self, group: &[Set], heads: &[(u32, Head)]) -> io::Result<()>;
}

/// The other end of the thread.
pub struct Committer {
    submit: Sender<Set>,
    durable: UnboundedReceiver<Vec<Set>>,
}

impl Committer {
    /// Starts the thread.
    pub fn start(store: Box<dyn Store>) -> Self {
        let (submit, submitted) = mpsc::channel();
        let (done, durable) = unbounded_channel();
        thread::spawn(move || {
            if let Err(error) = work(store, &submitted, &done) {
                eprintln!("bare_bench: {error}");
                std::process::exit(1);
            }
        });
        Self { submit, durable }
    }

    /// Has `set` made durable, unless it is empty.
    pub fn submit(&self, set: &mut Set) {
        if !set.is_empty() {
            let next = Vec::with_capacity(set.len());
            let set = std::mem::replace(set, next);
            self.submit.send(set).expect("the thread waits for it");
        }
    }

    /// Groups that have become durable.
    pub fn durable(&mut self) -> &mut UnboundedReceiver<Vec<Set>> {
        &mut self.durable
    }
}

fn work(
    mut store: Box<dyn Store>,
    submitted: &Receiver<Set>,
    done: &UnboundedSender<Vec<Set>>,
) -> io::Result<()> {
    let mut heads = BTreeMap::new();
    while let Ok(first) = submitted.recv() {
        // Senders' credit and what receivers were given bound it.
        let group: Vec<_> = std::iter::once(first).chain(submitted.try_iter()).collect();
        let touched = advance(&mut heads, &group);
        store.commit(&group, &touched)?;
        if done.send(group).is_err() {
            break;
        }
    }
    Ok(())
}

/// Brings `heads` up to date and returns those that have changed.
fn advance(heads: &mut BTreeMap<u32, Head>, group: &[Set]) -> Vec<(u32, Head)> {
    let mut touched: Vec<u32> = Vec::new();
    for write in group.iter().flatten() {
        let (Write::Put(place, ..) | Write::Remove(place, _)) = write;
        let head = heads.entry(place.queue).or_default();
        match write {
            Write::Put(..) => {
                head.next = place.number + 1;
                head.count += 1;
            }
            Write::Remove(..) => head.count = head.count.saturating_sub(1),
        }
        if touched.last() != Some(&place.queue) {
            touched.push(place.queue);
        }
    }
    touched.sort_unstable();
    touched.dedup();
    touched.iter().map(|queue| (*queue, heads[queue])).collect()
}
