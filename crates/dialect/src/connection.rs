//! Dialect: one connection as the server drives it, from its first byte to its last.
//!
//! Bytes of the socket and outputs of the broker go in; bytes for the socket and commands for the
//! broker come out. Nothing here waits, and time is an argument. The server reads, writes and
//! sleeps for the connection, and limits it by the figures that it reports.
//!
//! Invariant: the last command of a connection is [`Command::Disconnect`], and it is issued once.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Directory;
use amqp::Symbol;
use broker::{Command, Output};
use bytes::BytesMut;
use endpoint::{Mono, Scope};

use crate::clock_reading::ClockReading;
use crate::connection_state::{ConnectionState, ForcedClose};
use crate::refusals::Refusals;
use crate::refused_credentials::RefusedCredentials;

/// One connection that speaks a dialect of AMQP.
pub trait Dialect: Send + 'static {
    /// Takes all complete frames off `input` and handles them.
    fn handle_input(&mut self, now: ClockReading, input: &mut BytesMut);

    /// Handles an output of the broker.
    fn handle_output(&mut self, now: ClockReading, output: Output);

    /// Does the work of every deadline that has passed.
    fn handle_timeout(&mut self, now: ClockReading);

    /// Handles the end of the socket.
    fn handle_eof(&mut self, now: ClockReading);

    /// Applies changed entities and access rules: detaches links whose entity is deleted or refuses
    /// them now, and links without their right.
    fn set_directory(&mut self, now: ClockReading, directory: Arc<Directory>);

    /// Whether the broker is asked before a sender is attached, since a fault rule may object.
    fn ask_for_senders(&mut self, asks: bool);

    /// The entities and access rules that it goes by. While the connection opens they may become
    /// those of another namespace, from which on the owner passes on that namespace's.
    fn directory(&self) -> &Directory;

    /// Drops messages that have arrived in part, the largest first, until `bytes` are free: their
    /// links are detached with `amqp:resource-limit-exceeded`.
    fn shed_partials(&mut self, now: ClockReading, bytes: usize);

    /// Detaches all links and closes the connection with `amqp:connection:forced`.
    fn force_close(&mut self, now: ClockReading, why: ForcedClose);

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    fn deadline(&self) -> Option<Mono>;

    /// Commands for the broker since the last call; the caller takes them all out.
    fn commands(&mut self) -> &mut Vec<Command>;

    /// Bytes for the socket; the caller takes out what it writes, then calls
    /// [`written`](Self::written).
    fn output(&mut self, now: ClockReading) -> &mut endpoint::Output;

    /// Memory for what will be written, see [`endpoint::Output::lend_buffer`].
    fn lend(&mut self, memory: &mut BytesMut);

    /// Reports that all bytes taken out of [`output`](Self::output) are written, and with them the
    /// deliveries to the broker.
    fn written(&mut self);

    /// Bytes that wait in [`output`](Self::output), pending dispositions aside.
    fn unwritten(&self) -> usize;

    /// Bytes of messages given to the broker that it has not answered yet. The owner stops
    /// reading the socket at its limit of them.
    fn unanswered_bytes(&self) -> usize;

    /// Whether a client has ended something whose deliveries are to be answered first, or has sent
    /// what would overtake those behind an attach. The owner does not read the socket meanwhile.
    fn holds_input(&self) -> bool;

    /// Whether something that was read has not taken effect, as it waits for the broker. The owner
    /// does not tell the end of the stream before.
    fn has_untaken_input(&self) -> bool;

    /// Bytes of messages that have arrived in part.
    fn partial_bytes(&self) -> usize;

    /// Whether the rules of a topic take so long for the client's messages that its connection
    /// should read little before it yields to others.
    fn is_slow(&self) -> bool;

    /// Whether the peer's open has come.
    fn is_opened(&self) -> bool;

    /// The host that the client's open has named, if it has named one.
    fn host(&self) -> Option<&str>;

    /// Whether the client has not presented a valid credential yet.
    fn is_unauthenticated(&self) -> bool;

    /// The names of the clients whose credentials the peer has shown; none if it is anonymous.
    fn client_names(&self) -> Vec<String>;

    /// The connection as an operator sees it, with this number of links at most.
    fn state(&self, most_links: usize) -> ConnectionState;

    /// Whether the socket may be closed once the output is written.
    fn is_finished(&self) -> bool;

    /// The credentials that were refused: names with their keys, and tokens.
    fn refused_credentials(&self) -> RefusedCredentials;

    /// The number of errors that the client was sent since the last call, by what they ended and by
    /// condition.
    fn take_error_counts(&mut self) -> BTreeMap<(Scope, Symbol), u64>;

    /// The refusals since the last call, if any.
    fn take_refusals(&mut self) -> Option<Refusals>;

    /// Whether a token came since the last call that the keys of its issuer cannot verify before
    /// they are loaded again.
    fn take_key_demand(&mut self) -> bool;
}
