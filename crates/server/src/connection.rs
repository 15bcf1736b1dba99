//! Connection: one AMQP stream and its client of the dialect.
//!
//! Each round waits for something to happen, then hears what the broker says, reads what is there,
//! sends the shard all commands as one batch (large messages and what is said after them wait for
//! the store, see [`staging`](crate::staging)) and writes what can be written; where there is much of
//! that already while it hears. Writing never waits, so a peer that does not read still has its settlements
//! taken in and its time-outs kept; what may pile up for it is bounded by the broker's outlet and by the
//! limits that pause reading. That a peer is gone counts once what it had sent is read.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use broker::{Command, ConnectionId, Output};
use bytes::BytesMut;
use servicebus::Client;
use tokio::io::Interest;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use crate::breath::Breath;
use crate::budget::Share;
use crate::door::House;
use crate::input::{Input, Read, is_temporary};
use crate::options::Limits;
use crate::paper;
use crate::shard::{Directories, Message};
use crate::staging::Staging;
use crate::stream::Stream;

/// Reads in one round; then it is somebody else's turn.
const READS_PER_ROUND: usize = 4;
/// Bytes of one read, and the only one of its round, while rules take long to look at what it brings.
const SLOW_READ: usize = 4 * 1024;
/// Batches heard in one round.
const BATCHES_PER_ROUND: usize = 32;
/// Output is written as soon as there is so much: while it is in the processor's cache, and so that the
/// peer has something to do meanwhile.
const WRITTEN_AT: usize = 256 * 1024;
/// Where a round brought so many commands, room is made for as many in the next, up to a bound.
const MANY_COMMANDS: usize = 64;
const MOST_EXPECTED: usize = 4_096;
/// How long the peer of a finished connection may take to close its side.
const LINGER: Duration = Duration::from_secs(1);

/// What ended a wait.
enum Cause {
    Heard(usize),
    Staged(Vec<Command>),
    Entities,
    Socket,
    Alarm,
    Stop,
}

/// One AMQP stream.
pub struct Connection<S> {
    stream: S,
    client: Client,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
    heard: Vec<Vec<Output>>,
    directories: Directories,
    input: Input,
    staging: Staging,
    share: Share,
    breath: Breath,
    /// From where, and which one.
    from: (SocketAddr, ConnectionId),
    house: Arc<House>,
    /// Those that held when it came.
    limits: Arc<Limits>,
    stopping: watch::Receiver<bool>,
    said_goodbye: bool,
    /// Bytes that the socket did not take when it was last written to.
    unwritten: usize,
    /// So many commands are likely to come of what is read next.
    expected: usize,
    /// Credentials of the peer that were refused and are counted.
    refused_credentials: u64,
    /// There was something to read for all of the last round.
    has_more: bool,
    /// The peer has sent its last byte.
    input_ended: bool,
    /// The socket is of no use any more.
    is_gone: bool,
}

impl<S: Stream> Connection<S> {
    /// A connection that was just accepted, and the bytes of it that were read to find out what
    /// it speaks.
    pub fn new(
        stream: S,
        early: BytesMut,
        client: Client,
        outputs: mpsc::UnboundedReceiver<Vec<Output>>,
        directories: Directories,
        from: (SocketAddr, ConnectionId),
        house: Arc<House>,
    ) -> Self {
        Self {
            stream,
            client,
            outputs,
            heard: Vec::new(),
            directories,
            input: Input::new(early),
            staging: Staging::new(house.gate.clone()),
            share: Share::new(Arc::clone(&house.budget)),
            breath: Breath::default(),
            from,
            stopping: house.stopping.clone(),
            limits: house.limits(),
            house,
            said_goodbye: false,
            unwritten: 0,
            expected: 0,
            refused_credentials: 0,
            has_more: false,
            input_ended: false,
            is_gone: false,
        }
    }

    /// Runs until either side has enough.
    pub async fn run(mut self) {
        let mut alarm = pin!(tokio::time::sleep_until(Instant::now()));
        while !self.is_over() {
            self.wait(alarm.as_mut()).await;
            self.look_around();
            self.hear();
            self.read();
            self.submit().await;
            self.count_told();
            self.log_refusals();
            self.write();
            self.submit().await;
            self.let_others_go().await;
        }
        self.count_told();
        self.log_refusals();
        self.finish_staging().await;
        if !self.is_gone {
            // Allocated when it comes to that: an idle connection keeps no room for its end.
            Box::pin(self.linger()).await;
        }
    }

    /// Steps back for a moment if this connection has much to do.
    async fn let_others_go(&mut self) {
        let received = self.house.counts.received_bytes.get();
        match self.breath.after(self.share.partial(), received) {
            Some(pause) if self.has_more => tokio::time::sleep(pause).await,
            _ if self.client.is_slow() || self.has_more => tokio::task::yield_now().await,
            _ => {}
        }
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, mut alarm: Pin<&mut Sleep>) {
        self.arm(alarm.as_mut());
        let interest = self.interest();
        let cause = tokio::select! {
            biased;
            commands = self.staging.next() => Cause::Staged(commands),
            count = self.outputs.recv_many(&mut self.heard, BATCHES_PER_ROUND) => Cause::Heard(count),
            Ok(()) = self.directories.changed() => Cause::Entities,
            // Before a socket that always has more.
            () = alarm.as_mut() => Cause::Alarm,
            _ = self.stopping.wait_for(|stopping| *stopping), if !self.said_goodbye => Cause::Stop,
            _ = self.stream.ready(interest.unwrap_or(Interest::READABLE)), if interest.is_some() => Cause::Socket,
        };
        match cause {
            // The shard has ended, and with it everything.
            Cause::Heard(0) => self.is_gone = true,
            Cause::Heard(_) | Cause::Socket => {}
            Cause::Staged(commands) => self.tell(commands).await,
            Cause::Entities => self.directories.mark_changed(),
            Cause::Alarm => self.handle_alarm(),
            Cause::Stop => self.say_goodbye(),
        }
    }

    /// Sets the alarm if it would ring too late. One that rings too early is cheaper than setting
    /// it anew each time the deadline moves on.
    fn arm(&self, alarm: Pin<&mut Sleep>) {
        if let Some(deadline) = self.client.deadline() {
            let instant = self.house.clock.instant(deadline);
            if alarm.is_elapsed() || instant < alarm.deadline() {
                alarm.reset(instant);
            }
        } else if alarm.is_elapsed() {
            alarm.reset(Instant::now() + self.limits.handshake);
        }
    }

    /// Does what is due, if anything, and gives back what an idle connection does not need.
    fn handle_alarm(&mut self) {
        let now = self.house.clock.moment();
        if self
            .client
            .deadline()
            .is_some_and(|deadline| deadline <= now.mono)
        {
            self.client.handle_timeout(now);
        }
        self.client.output(now).shrink(0);
    }

    fn say_goodbye(&mut self) {
        self.said_goodbye = true;
        self.client.shut_down(self.house.clock.moment());
    }

    /// What the socket should be ready for.
    fn interest(&self) -> Option<Interest> {
        let may_write = self.unwritten > 0 || self.stream.has_unsent();
        match (self.may_read(), may_write) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        }
    }

    /// Whether the peer may be heard, or has to wait until it was answered or has read.
    fn may_read(&self) -> bool {
        let limits = &self.limits;
        self.share.unanswered() < limits.unanswered_bytes_per_connection
            && !self.share.is_exhausted()
            && self.unwritten < limits.unwritten_bytes_per_connection
            && !self.staging.is_full()
    }

    /// Tells the client of entities that have changed, before it hears or reads anything that was
    /// said after that.
    fn look_around(&mut self) {
        if self.directories.has_changed().unwrap_or(false) {
            let directory = Arc::clone(&self.directories.borrow_and_update());
            let now = self.house.clock.moment();
            self.client.set_directory(now, directory);
        }
    }

    fn hear(&mut self) {
        while self.heard.len() < BATCHES_PER_ROUND
            && let Ok(batch) = self.outputs.try_recv()
        {
            self.heard.push(batch);
        }
        if self.heard.is_empty() {
            return;
        }
        paper::lend(&mut self.client);
        let now = self.house.clock.moment();
        let mut heard = std::mem::take(&mut self.heard);
        let mut takes_more = self.unwritten == 0;
        for output in heard.drain(..).flatten() {
            self.client.handle_output(now, output);
            if takes_more && self.client.unwritten() >= WRITTEN_AT {
                // A peer that is gone is noticed once what it had sent is read.
                takes_more = matches!(self.write_out(), Ok(true));
            }
        }
        self.heard = heard;
    }

    /// Keeps the share true to what the client has.
    fn account(&mut self) {
        let unanswered = self.client.unanswered_bytes();
        self.share.set(unanswered, self.client.partial_bytes());
    }

    /// Gives up unfinished messages if more of them came than all connections have room for. The
    /// peer is not kept waiting instead: what it has left unfinished only its own bytes can finish.
    fn shed(&mut self, partial_before: usize) {
        let excess = self.share.excess(self.client.is_unauthenticated());
        if self.share.partial() > partial_before && excess > 0 {
            self.house.counts.shed.raise();
            self.client.shed_partials(self.house.clock.moment(), excess);
            self.account();
        }
    }

    fn read(&mut self) {
        self.account();
        let mut reads = 0;
        for round in 0..READS_PER_ROUND {
            let is_slow = self.client.is_slow();
            if !self.may_read() {
                self.house.counts.pauses.raise();
                break;
            }
            if is_slow && round > 0 {
                break;
            }
            let most = if is_slow { SLOW_READ } else { usize::MAX };
            match self.input.read(&mut self.stream, most) {
                Read::Some(count) => {
                    reads += 1;
                    self.house.counts.received_bytes.add(count as u64);
                    self.breath.took(count as u64);
                    let now = self.house.clock.moment();
                    let expected = std::mem::take(&mut self.expected);
                    self.client.commands().reserve(expected);
                    self.client.handle_input(now, self.input.buffer());
                    self.count_refusals();
                }
                Read::Nothing => break,
                Read::End => {
                    self.client.handle_eof(self.house.clock.moment());
                    self.input_ended = true;
                    break;
                }
            }
            let partial_before = self.share.partial();
            self.account();
            self.shed(partial_before);
        }
        self.has_more = reads == READS_PER_ROUND;
        self.input.rest();
    }

    /// Counts the credentials that were refused meanwhile.
    fn count_refusals(&mut self) {
        let refused = self.client.refused_credentials();
        let more = refused.saturating_sub(self.refused_credentials);
        if more > 0 {
            self.refused_credentials = refused;
            self.house.counts.refused_credentials.add(more);
        }
    }

    /// Counts the errors that the peer is being told.
    fn count_told(&mut self) {
        for ((scope, condition), count) in self.client.take_error_counts() {
            self.house.counts.told.of(scope, &condition).add(count);
        }
    }

    /// Logs what the peer was refused.
    fn log_refusals(&mut self) {
        if let Some(refusals) = self.client.take_refusals() {
            let (peer, id) = self.from;
            self.house.refusals.amqp(peer, id, &refusals);
        }
    }

    /// Sends the shard what there is to decide. Waits only while the shard has more to do than it can.
    async fn submit(&mut self) {
        let commands = std::mem::take(self.client.commands());
        if commands.is_empty() {
            return;
        }
        if commands.len() >= MANY_COMMANDS {
            self.expected = commands.len().min(MOST_EXPECTED);
        }
        let commands = self.staging.pass(commands);
        self.tell(commands).await;
    }

    async fn tell(&mut self, commands: Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let batch = Message::Commands(commands);
        if self.house.inbox.send(batch).await.is_err() {
            self.is_gone = true;
        }
    }

    /// Hands on what has arrived, for the peer may have said goodbye without waiting for answers.
    async fn finish_staging(&mut self) {
        while !self.staging.is_idle() {
            let commands = self.staging.next().await;
            self.tell(commands).await;
        }
    }

    /// Writes what the stream takes, and gives back the memory for it if that was all.
    fn write(&mut self) {
        match self.write_out() {
            Ok(true) => {
                let output = self.client.output(self.house.clock.moment());
                paper::take_back(output);
                output.shrink(0);
            }
            Ok(false) => {}
            Err(_) => self.lose(),
        }
    }

    /// Writes what the stream takes. Returns whether it has taken all, though it may keep some of it.
    ///
    /// # Errors
    /// When the stream will not take any more.
    fn write_out(&mut self) -> io::Result<bool> {
        let now = self.house.clock.moment();
        loop {
            let output = self.client.output(now);
            self.unwritten = output.len();
            if output.is_empty() {
                break;
            }
            match self.stream.try_write_output(output) {
                Ok(count) => {
                    self.house.counts.sent_bytes.add(count as u64);
                    self.client.written();
                }
                Err(error) if is_temporary(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        match self.stream.try_flush() {
            Err(error) if !is_temporary(&error) => Err(error),
            _ => Ok(true),
        }
    }

    fn lose(&mut self) {
        self.client.handle_eof(self.house.clock.moment());
        self.is_gone = true;
    }

    fn is_over(&self) -> bool {
        self.is_gone || self.input_ended || self.client.is_finished()
    }

    /// Says goodbye. A peer that is slow or gone is left alone.
    async fn linger(mut self) {
        let now = self.house.clock.moment();
        let last = std::mem::take(self.client.output(now));
        drop(tokio::time::timeout(LINGER, self.stream.farewell(last)).await);
    }
}
