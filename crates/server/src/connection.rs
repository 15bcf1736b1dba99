//! Connection: one AMQP stream and its side of the dialect that it speaks.
//!
//! Each round waits for an event, then handles the outputs of the broker, reads the socket, sends
//! all commands to the shard as one batch and writes the output; it writes earlier if there is much
//! of it. Large messages, and the commands behind them, wait for the store first (see
//! [`staging`](crate::shard::staging)). Writing never waits, so a peer that does not read still has
//! its settlements and time-outs handled. The broker's output buffer and the limits that pause
//! reading bound the output that piles up for it. The end of the input counts once the bytes before
//! it are read and have taken effect.
//!
//! When the server stops or the input has ended, the connection *drains* first: it reads no more,
//! and writes the answers to all that it gave to the shard. So no message is stored whose
//! acceptance is not written to the socket, unless the peer or the disk takes longer than the
//! connection may.

pub mod budget;
mod delay;
mod directory;
pub mod input;
mod introduction;
pub mod large_message_throttle;
pub mod open_connections;
pub mod output_buffer;
mod phase;
mod report;
mod write;

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use broker::{ClientNames, Command, ConnectionId, Output};
use bytes::BytesMut;
use dialect::{Dialect, ForcedClose, RefusedCredentials};
use store::NamespaceId;
use tokio::io::Interest;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use crate::connection::budget::BudgetShare;
use crate::connection::input::{Input, Read};
use crate::connection::large_message_throttle::LargeMessageThrottle;
use crate::connection::open_connections::Registration;
use crate::log::audit::PendingChanges;
use crate::namespaces::namespace_registry::NamespacePlace;
use crate::options::Limits;
use crate::server::server_state::ServerState;
use crate::shard::staging::Staging;
use crate::shard::{DirectoryReceiver, Message};
use crate::telemetry::{ConnectionTracer, Endpoints};
use crate::transport::stream::Stream;
use delay::Delay;
use phase::{DrainReason, Phase};
use report::GivenErrors;

/// Reads in one round; then other connections of the thread have their turn.
const READS_PER_ROUND: usize = 4;
/// Bytes of one read, and the only one of its round, while rules take long to look at what it
/// brings.
const SLOW_READ: usize = 4 * 1024;
/// Batches of outputs handled in one round.
const BATCHES_PER_ROUND: usize = 32;
/// Output is written as soon as it has this many bytes: while it is in the processor's cache, and
/// so that the peer can work meanwhile.
const WRITTEN_AT: usize = 256 * 1024;
/// A round with this many commands reserves memory for as many in the next, up to a bound.
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
    Operator,
    Stop,
}

/// One AMQP stream.
pub struct Connection<S, D> {
    stream: S,
    client: D,
    pending_changes: PendingChanges,
    tracer: Option<Box<ConnectionTracer>>,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
    output_batches: Vec<Vec<Output>>,
    directory_receiver: DirectoryReceiver,
    /// The namespace whose directory that is.
    namespace: NamespaceId,
    /// Its place among the connections of a namespace besides the default one.
    namespace_place: Option<NamespacePlace>,
    /// Whether it has been counted in its namespace, or been refused there.
    is_counted: bool,
    input: Input,
    staging: Staging,
    share: BudgetShare,
    /// The names that the broker was told.
    introduced: Option<Box<ClientNames>>,
    large_message_throttle: LargeMessageThrottle,
    registration: Registration,
    errors: GivenErrors,
    /// The peer's address, and the connection's id.
    from: (SocketAddr, ConnectionId),
    server: Arc<ServerState>,
    /// The limits at the time when it was accepted.
    limits: Arc<Limits>,
    stopping: watch::Receiver<bool>,
    phase: Phase,
    /// Bytes that the socket did not take when it was last written to.
    unwritten: usize,
    /// The number of commands that the next read is likely to give.
    expected: usize,
    /// Credentials of the peer that were refused and are counted.
    refused_credentials: RefusedCredentials,
    /// For the answers to them.
    delay: Delay,
    /// There was something to read for all of the last round.
    has_more: bool,
    /// The socket cannot be used any more.
    is_gone: bool,
}

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// A connection that was just accepted, and the bytes of it that were read to find out what
    /// it speaks.
    pub fn new(
        mut stream: S,
        early: BytesMut,
        client: D,
        outputs: mpsc::UnboundedReceiver<Vec<Output>>,
        directory_receiver: DirectoryReceiver,
        from: (SocketAddr, ConnectionId),
        server: Arc<ServerState>,
    ) -> Self {
        let tracer = server.tracer.clone().map(|tracer| {
            let endpoints = Endpoints::new(from.0, stream.socket().local_addr().ok());
            let directory = directory_receiver.clone();
            Box::new(ConnectionTracer::new(tracer, from.1, endpoints, directory))
        });
        Self {
            registration: Registration::of(&server, from, stream.is_tls()),
            errors: GivenErrors::default(),
            stream,
            client,
            pending_changes: PendingChanges::default(),
            tracer,
            outputs,
            output_batches: Vec::new(),
            directory_receiver,
            namespace: NamespaceId::default(),
            namespace_place: None,
            is_counted: false,
            input: Input::new(early),
            staging: Staging::new(server.command_stager.clone()),
            share: BudgetShare::new(Arc::clone(&server.budget)),
            introduced: None,
            large_message_throttle: LargeMessageThrottle::default(),
            from,
            stopping: server.stopping.clone(),
            limits: server.limits(),
            server,
            phase: Phase::Open,
            unwritten: 0,
            expected: 0,
            refused_credentials: RefusedCredentials::default(),
            delay: Delay::default(),
            has_more: false,
            is_gone: false,
        }
    }

    /// Runs until either side ends the connection.
    pub async fn run(mut self) {
        let mut alarm = pin!(tokio::time::sleep_until(Instant::now()));
        self.follow_namespace();
        while !self.is_over() {
            self.wait(alarm.as_mut()).await;
            self.update_directory();
            self.handle_outputs();
            if self.is_gone {
                break;
            }
            self.read();
            self.take_place();
            self.submit().await;
            self.count_sent_errors();
            self.log_refusals();
            self.write();
            self.end_if_drained();
            self.submit().await;
            self.yield_or_pause().await;
        }
        self.count_sent_errors();
        self.log_refusals();
        self.finish_staging().await;
        let client = || self.client.client_names().join(", ");
        self.pending_changes.end(self.from, client);
        if !self.is_gone {
            // Allocated when it comes to that: an idle connection keeps no room for its end.
            Box::pin(self.linger()).await;
        }
    }

    /// Pauses, or yields to other tasks, if this connection has much to do.
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
            () = self.registration.asked() => WakeReason::Operator,
            _ = self.stopping.wait_for(|stopping| *stopping), if matches!(self.phase, Phase::Open) => WakeReason::Stop,
            _ = self.stream.ready(interest.unwrap_or(Interest::READABLE)), if interest.is_some() => WakeReason::Socket,
        };
        match cause {
            // The shard has ended, and with it everything.
            WakeReason::Outputs(0) => self.is_gone = true,
            WakeReason::Outputs(_) | WakeReason::Socket => {}
            WakeReason::Staged(commands) => self.send_to_shard(commands).await,
            WakeReason::Entities => self.directory_receiver.mark_changed(),
            WakeReason::Alarm => self.handle_alarm(),
            WakeReason::Operator => self.handle_operator(),
            WakeReason::Stop => self.drain(DrainReason::Forced(ForcedClose::ShutDown)),
        }
    }

    /// Sets the alarm if it would ring too late. One that rings too early is cheaper than setting
    /// it anew each time the deadline moves on.
    fn arm(&self, alarm: Pin<&mut Sleep>) {
        let deadline = self.client.deadline();
        let deadline = deadline.map(|deadline| self.server.clock.instant(deadline));
        let deadlines = [deadline, self.phase.drained_by(), self.delay.until()];
        if let Some(instant) = deadlines.into_iter().flatten().min() {
            if alarm.is_elapsed() || instant < alarm.deadline() {
                alarm.reset(instant);
            }
        } else if alarm.is_elapsed() {
            alarm.reset(Instant::now() + self.limits.handshake);
        }
    }

    /// Handles time-outs that are due, and frees memory that an idle connection does not need.
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

    /// Reads no more, and ends once all is answered.
    fn drain(&mut self, reason: DrainReason) {
        self.drain_until(Instant::now() + self.limits.shutdown_grace / 2, reason);
    }

    fn drain_until(&mut self, until: Instant, reason: DrainReason) {
        self.delay = Delay::default();
        self.phase = Phase::Draining(until, reason);
    }

    fn end_if_drained(&mut self) {
        let Phase::Draining(until, reason) = self.phase else {
            return;
        };
        let has_untaken = self.client.has_untaken_input();
        if has_untaken && matches!(reason, DrainReason::InputEnded) {
            // However long that takes, as before a close; then the answers have their time.
            return self.drain(reason);
        }
        let is_given = !has_untaken && self.staging.is_idle();
        let is_answered = is_given && self.client.unanswered_bytes() == 0;
        if (is_answered && self.unwritten == 0) || Instant::now() >= until {
            let now = self.server.clock.moment();
            match reason {
                DrainReason::Forced(why) => {
                    self.phase = Phase::Closing;
                    self.client.force_close(now, why);
                }
                DrainReason::InputEnded => {
                    self.phase = Phase::Ended;
                    self.client.handle_eof(now);
                }
            }
            self.write();
        }
    }

    /// What the socket should be ready for.
    fn interest(&self) -> Option<Interest> {
        let has_unwritten = self.unwritten > 0 || self.stream.has_unsent();
        let may_write = has_unwritten && !self.delay.lasts();
        match (self.may_read(), may_write) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        }
    }

    /// Whether the socket may be read, or has to wait until the peer was answered or has read.
    fn may_read(&self) -> bool {
        let limits = &self.limits;
        self.phase.reads()
            && !self.client.holds_input()
            && !self.delay.lasts()
            && self.share.unanswered() < limits.unanswered_bytes_per_connection
            && !self.share.is_exhausted()
            && self.unwritten < limits.unwritten_bytes_per_connection
            && !self.staging.is_full()
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
        let mut takes_more = self.unwritten == 0 && !self.delay.lasts();
        'round: for batch in output_batches.drain(..) {
            for output in batch {
                let client = || self.client.client_names().join(", ");
                self.pending_changes.log(&output, self.from, client);
                if let Some(tracer) = &mut self.tracer {
                    tracer.end(&output);
                }
                if let Output::Dropped { .. } = output {
                    self.is_gone = true;
                    break 'round;
                }
                self.client.handle_output(now, output);
                if takes_more && self.client.unwritten() >= WRITTEN_AT {
                    // A peer that is gone is noticed once what it had sent is read.
                    takes_more = matches!(self.write_out(), Ok(true));
                }
            }
        }
        self.output_batches = output_batches;
    }

    /// Updates the connection's share of the budget.
    fn account(&mut self) {
        let unanswered = self.client.unanswered_bytes();
        self.share.set(unanswered, self.client.partial_bytes());
    }

    /// Drops unfinished messages if all connections together have too many. Leaving the peer unread
    /// would not help: only its own bytes can finish its messages.
    fn drop_partials(&mut self, partial_before: usize) {
        let excess = self.share.excess(self.client.is_unauthenticated());
        if self.share.partial() > partial_before && excess > 0 {
            self.server.counts.shed.increment();
            self.client
                .shed_partials(self.server.clock.moment(), excess);
            self.account();
        }
    }

    fn read(&mut self) {
        self.account();
        if !self.phase.reads() {
            return;
        }
        let mut reads = 0;
        for round in 0..READS_PER_ROUND {
            let is_slow = self.client.is_slow();
            if self.delay.lasts() || self.client.holds_input() || (is_slow && round > 0) {
                break;
            }
            if !self.may_read() {
                self.server.counts.pauses.increment();
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
                    let asks = self.server.namespaces.matches_senders();
                    self.client.ask_for_senders(asks);
                    self.client.handle_input(now, self.input.buffer());
                    self.follow_namespace();
                    self.count_refused_credentials();
                    self.demand_keys();
                }
                Read::Nothing => break,
                Read::End => {
                    self.drain(DrainReason::InputEnded);
                    break;
                }
            }
            let partial_before = self.share.partial();
            self.account();
            self.drop_partials(partial_before);
        }
        self.has_more = reads == READS_PER_ROUND;
        self.input.release_buffer();
    }

    /// Sends the client's commands to the shard. Waits only while the shard's inbox is full.
    async fn submit(&mut self) {
        let mut commands = std::mem::take(self.client.commands());
        if commands.is_empty() {
            return;
        }
        self.introduce(&mut commands);
        if commands.len() >= MANY_COMMANDS {
            self.expected = commands.len().min(MOST_EXPECTED);
        }
        self.pending_changes
            .note(&commands, &self.directory_receiver);
        if let Some(tracer) = &mut self.tracer {
            tracer.begin(&mut commands);
        }
        let commands = self.staging.enqueue(commands);
        self.send_to_shard(commands).await;
    }

    async fn send_to_shard(&mut self, commands: Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let batch = Message::Commands(commands);
        let shard = self.server.placement.of(self.namespace);
        if shard.send(batch).await.is_err() {
            self.is_gone = true;
        }
    }

    /// Passes on commands that have arrived: the peer may have closed without waiting for answers.
    async fn finish_staging(&mut self) {
        while !self.staging.is_idle() {
            let commands = self.staging.next().await;
            self.send_to_shard(commands).await;
        }
    }

    fn abort(&mut self) {
        self.client.handle_eof(self.server.clock.moment());
        self.is_gone = true;
    }

    fn is_over(&self) -> bool {
        let has_ended = matches!(self.phase, Phase::Ended);
        self.is_gone || ((has_ended || self.client.is_finished()) && !self.delay.lasts())
    }

    /// Closes the stream gracefully, without waiting long for a peer that is slow or gone.
    async fn linger(mut self) {
        let now = self.server.clock.moment();
        let last = std::mem::take(self.client.output(now));
        drop(tokio::time::timeout(LINGER, self.stream.close_gracefully(last)).await);
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
