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

use crate::budget::BudgetShare;
use crate::input::{Input, Read, is_temporary};
use crate::large_message_throttle::LargeMessageThrottle;
use crate::options::Limits;
use crate::output_buffer;
use crate::server_state::ServerState;
use crate::shard::{DirectoryReceiver, Message};
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
enum WakeReason {
    Outputs(usize),
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
    output_batches: Vec<Vec<Output>>,
    directory_receiver: DirectoryReceiver,
    input: Input,
    staging: Staging,
    share: BudgetShare,
    large_message_throttle: LargeMessageThrottle,
    /// From where, and which one.
    from: (SocketAddr, ConnectionId),
    server: Arc<ServerState>,
    /// Those that held when it came.
    limits: Arc<Limits>,
    stopping: watch::Receiver<bool>,
    shutdown_begun: bool,
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
        directory_receiver: DirectoryReceiver,
        from: (SocketAddr, ConnectionId),
        server: Arc<ServerState>,
    ) -> Self {
        Self {
            stream,
            client,
            outputs,
            output_batches: Vec::new(),
            directory_receiver,
            input: Input::new(early),
            staging: Staging::new(server.command_stager.clone()),
            share: BudgetShare::new(Arc::clone(&server.budget)),
            large_message_throttle: LargeMessageThrottle::default(),
            from,
            stopping: server.stopping.clone(),
            limits: server.limits(),
            server,
            shutdown_begun: false,
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
            self.update_directory();
            self.handle_outputs();
            self.read();
            self.submit().await;
            self.count_sent_errors();
            self.log_refusals();
            self.write();
            self.submit().await;
            self.yield_or_pause().await;
        }
        self.count_sent_errors();
        self.log_refusals();
        self.finish_staging().await;
        if !self.is_gone {
            // Allocated when it comes to that: an idle connection keeps no room for its end.
            Box::pin(self.linger()).await;
        }
    }

    /// Steps back for a moment if this connection has much to do.
    async fn yield_or_pause(&mut self) {
        let received = self.server.counts.received_bytes.get();
        match self
            .large_message_throttle
            .pause_after_round(self.share.partial(), received)
        {
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
            commands = self.staging.next() => WakeReason::Staged(commands),
            count = self.outputs.recv_many(&mut self.output_batches, BATCHES_PER_ROUND) => WakeReason::Outputs(count),
            Ok(()) = self.directory_receiver.changed() => WakeReason::Entities,
            // Before a socket that always has more.
            () = alarm.as_mut() => WakeReason::Alarm,
            _ = self.stopping.wait_for(|stopping| *stopping), if !self.shutdown_begun => WakeReason::Stop,
            _ = self.stream.ready(interest.unwrap_or(Interest::READABLE)), if interest.is_some() => WakeReason::Socket,
        };
        match cause {
            // The shard has ended, and with it everything.
            WakeReason::Outputs(0) => self.is_gone = true,
            WakeReason::Outputs(_) | WakeReason::Socket => {}
            WakeReason::Staged(commands) => self.send_to_shard(commands).await,
            WakeReason::Entities => self.directory_receiver.mark_changed(),
            WakeReason::Alarm => self.handle_alarm(),
            WakeReason::Stop => self.begin_shutdown(),
        }
    }

    /// Sets the alarm if it would ring too late. One that rings too early is cheaper than setting
    /// it anew each time the deadline moves on.
    fn arm(&self, alarm: Pin<&mut Sleep>) {
        if let Some(deadline) = self.client.deadline() {
            let instant = self.server.clock.instant(deadline);
            if alarm.is_elapsed() || instant < alarm.deadline() {
                alarm.reset(instant);
            }
        } else if alarm.is_elapsed() {
            alarm.reset(Instant::now() + self.limits.handshake);
        }
    }

    /// Does what is due, if anything, and gives back what an idle connection does not need.
    fn handle_alarm(&mut self) {
        let now = self.server.clock.moment();
        if self
            .client
            .deadline()
            .is_some_and(|deadline| deadline <= now.mono)
        {
            self.client.handle_timeout(now);
        }
        self.client.output(now).shrink(0);
    }

    fn begin_shutdown(&mut self) {
        self.shutdown_begun = true;
        self.client.shut_down(self.server.clock.moment());
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
    fn update_directory(&mut self) {
        if self.directory_receiver.has_changed().unwrap_or(false) {
            let directory = Arc::clone(&self.directory_receiver.borrow_and_update());
            let now = self.server.clock.moment();
            self.client.set_directory(now, directory);
        }
    }

    fn handle_outputs(&mut self) {
        while self.output_batches.len() < BATCHES_PER_ROUND
            && let Ok(batch) = self.outputs.try_recv()
        {
            self.output_batches.push(batch);
        }
        if self.output_batches.is_empty() {
            return;
        }
        output_buffer::lend(&mut self.client);
        let now = self.server.clock.moment();
        let mut output_batches = std::mem::take(&mut self.output_batches);
        let mut takes_more = self.unwritten == 0;
        for output in output_batches.drain(..).flatten() {
            self.client.handle_output(now, output);
            if takes_more && self.client.unwritten() >= WRITTEN_AT {
                // A peer that is gone is noticed once what it had sent is read.
                takes_more = matches!(self.write_out(), Ok(true));
            }
        }
        self.output_batches = output_batches;
    }

    /// Keeps the share true to what the client has.
    fn account(&mut self) {
        let unanswered = self.client.unanswered_bytes();
        self.share.set(unanswered, self.client.partial_bytes());
    }

    /// Gives up unfinished messages if more of them came than all connections have room for. The
    /// peer is not kept waiting instead: what it has left unfinished only its own bytes can finish.
    fn drop_partials(&mut self, partial_before: usize) {
        let excess = self.share.excess(self.client.is_stranger());
        if self.share.partial() > partial_before && excess > 0 {
            self.server.counts.shed.increment();
            self.client
                .shed_partials(self.server.clock.moment(), excess);
            self.account();
        }
    }

    fn read(&mut self) {
        self.account();
        let mut reads = 0;
        for round in 0..READS_PER_ROUND {
            let is_slow = self.client.is_slow();
            if !self.may_read() {
                self.server.counts.pauses.increment();
                break;
            }
            if is_slow && round > 0 {
                break;
            }
            let most = if is_slow { SLOW_READ } else { usize::MAX };
            match self.input.read(&mut self.stream, most) {
                Read::Some(count) => {
                    reads += 1;
                    self.server.counts.received_bytes.add(count as u64);
                    self.large_message_throttle.count_received(count as u64);
                    let now = self.server.clock.moment();
                    let expected = std::mem::take(&mut self.expected);
                    self.client.commands().reserve(expected);
                    self.client.handle_input(now, self.input.buffer());
                    self.count_refused_credentials();
                }
                Read::Nothing => break,
                Read::End => {
                    self.client.handle_eof(self.server.clock.moment());
                    self.input_ended = true;
                    break;
                }
            }
            let partial_before = self.share.partial();
            self.account();
            self.drop_partials(partial_before);
        }
        self.has_more = reads == READS_PER_ROUND;
        self.input.rest();
    }

    /// Counts the credentials that were refused meanwhile.
    fn count_refused_credentials(&mut self) {
        let refused = self.client.refused_credentials();
        let more = refused.saturating_sub(self.refused_credentials);
        if more > 0 {
            self.refused_credentials = refused;
            self.server.counts.refused_credentials.add(more);
        }
    }

    /// Counts the errors that the peer is being told.
    fn count_sent_errors(&mut self) {
        for ((scope, condition), count) in self.client.take_told() {
            self.server
                .counts
                .error_counters
                .of(scope, &condition)
                .add(count);
        }
    }

    /// Logs what the peer was refused.
    fn log_refusals(&mut self) {
        if let Some(refusals) = self.client.take_refusals() {
            let (peer, id) = self.from;
            self.server.refusals.amqp(peer, id, &refusals);
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
        self.send_to_shard(commands).await;
    }

    async fn send_to_shard(&mut self, commands: Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let batch = Message::Commands(commands);
        if self.server.inbox.send(batch).await.is_err() {
            self.is_gone = true;
        }
    }

    /// Hands on what has arrived, for the peer may have said goodbye without waiting for answers.
    async fn finish_staging(&mut self) {
        while !self.staging.is_idle() {
            let commands = self.staging.next().await;
            self.send_to_shard(commands).await;
        }
    }

    /// Writes what the stream takes, and gives back the memory for it if that was all.
    fn write(&mut self) {
        match self.write_out() {
            Ok(true) => {
                let output = self.client.output(self.server.clock.moment());
                output_buffer::reclaim(output);
                output.shrink(0);
            }
            Ok(false) => {}
            Err(_) => self.abort(),
        }
    }

    /// Writes what the stream takes. Returns whether it has taken all, though it may keep some of it.
    ///
    /// # Errors
    /// When the stream will not take any more.
    fn write_out(&mut self) -> io::Result<bool> {
        let now = self.server.clock.moment();
        loop {
            let output = self.client.output(now);
            self.unwritten = output.len();
            if output.is_empty() {
                break;
            }
            match self.stream.try_write_output(output) {
                Ok(count) => {
                    self.server.counts.sent_bytes.add(count as u64);
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

    fn abort(&mut self) {
        self.client.handle_eof(self.server.clock.moment());
        self.is_gone = true;
    }

    fn is_over(&self) -> bool {
        self.is_gone || self.input_ended || self.client.is_finished()
    }

    /// Says goodbye. A peer that is slow or gone is left alone.
    async fn linger(mut self) {
        let now = self.server.clock.moment();
        let last = std::mem::take(self.client.output(now));
        drop(tokio::time::timeout(LINGER, self.stream.close_gracefully(last)).await);
    }
}
