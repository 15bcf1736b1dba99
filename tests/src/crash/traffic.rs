//! Traffic: a sender and a receiver that work until the broker ends or enough was sent, each on a
//! connection of its own, and note in the book what they are told.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use amqp::DeliveryState;

use super::book::{self, Book};
use super::dice::Dice;
use crate::Peer;

/// The queue that is used.
pub(super) const QUEUE: &str = "orders";
/// Sends on their way at a time.
const WINDOW: u64 = 8;
/// Messages that the receiver has at a time.
const CREDIT: u32 = 16;
/// With more messages than this all that come are completed.
const MANY: usize = 300;

/// How much is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Messages to send.
    pub messages: u64,
    /// The acceptance after which `kill` is called.
    pub kill_after: Option<u64>,
}

/// The clients of one broker.
pub(super) struct Traffic<'a> {
    pub address: SocketAddr,
    pub book: &'a Mutex<&'a mut Book>,
    pub is_over: AtomicBool,
    /// The receiver's socket.
    pub receiver: Mutex<Option<TcpStream>>,
}

impl<'a> Traffic<'a> {
    fn book(&self) -> MutexGuard<'_, &'a mut Book> {
        // A client that panics ends the test with its own message.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs both clients; `kill` ends the broker.
    pub fn run(
        &self,
        work: Work,
        mut dice: Dice,
        kill: impl FnOnce() + Send,
    ) -> Result<(), String> {
        let for_receiver = Dice::new(dice.roll_any());
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| self.receive(for_receiver));
            // What it was told is in the book.
            let _ = self.send(work, kill);
            self.end_receiver();
            let received = receiver.join();
            received.unwrap_or_else(|_| Err("the receiver has panicked".to_owned()))
        })
    }

    /// So that the receiver does not wait for more.
    fn end_receiver(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let receiver = self.receiver.lock();
        let receiver = receiver.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(receiver) = receiver {
            // It may have ended by itself.
            drop(receiver.shutdown(Shutdown::Both));
        }
    }

    /// Sends all; `None` when the broker ends before.
    fn send(&self, work: Work, kill: impl FnOnce()) -> Option<()> {
        let mut kill = Some(kill);
        let mut peer = Peer::connect_or_end(self.address)?;
        let link = peer.sender_or_end(QUEUE)?;
        let (mut sent, mut accepted) = (0, 0);
        while sent < work.messages {
            let numbers: Vec<_> = (0..WINDOW).map(|_| self.book().send()).collect();
            sent += WINDOW;
            let cookies: Vec<_> = numbers
                .iter()
                .map(|number| (*number, peer.send_only(link, &book::body(*number))))
                .collect();
            for (number, cookie) in cookies {
                match peer.outcome_or_end(cookie)? {
                    DeliveryState::Accepted => self.book().accept(number),
                    _ => self.book().refuse(number),
                }
                accepted += 1;
                if work.kill_after == Some(accepted)
                    && let Some(kill) = kill.take()
                {
                    kill();
                }
            }
        }
        Some(())
    }

    /// Completes two of three messages, or all when there are many.
    fn receive(&self, mut dice: Dice) -> Result<(), String> {
        let Some(mut peer) = Peer::connect_or_end(self.address) else {
            return Ok(());
        };
        let Some(link) = peer.receiver_or_end(QUEUE, CREDIT) else {
            return Ok(());
        };
        let ender = peer.ender();
        *self.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(ender);
        while !self.is_over.load(Ordering::Relaxed) {
            let Some(received) = peer.receive_or_end(link) else {
                return Ok(());
            };
            let number = book::number_of(&received.body())?;
            let has_many = self.book().len() > MANY;
            if has_many || dice.roll(3) > 0 {
                self.book().begin_completion(number)?;
                if !peer.complete_or_end(&received) {
                    return Ok(());
                }
                self.book().end_completion(number);
            }
            peer.credit(link, CREDIT);
        }
        Ok(())
    }
}
