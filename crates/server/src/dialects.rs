//! Dialects: the dialect that an AMQP connection speaks.
//!
//! Only this file names the connection type of a dialect; listeners and connections know the trait
//! [`Dialect`]. Azure's is the only one today. A second one is chosen here: by a setting of the
//! listener, or by an enum of dialects that implements the trait and decides at the client's
//! `open`.

use std::sync::Arc;

use access::{Directory, Locality};
use broker::ConnectionId;
use dialect::{ClockReading, Dialect};
use servicebus::{Client, MessageIds};

use crate::random::random;
use crate::server_state::ServerState;

/// The dialect's side of a connection from there that was accepted at `since`.
pub fn accept(
    server: &ServerState,
    id: ConnectionId,
    directory: Arc<Directory>,
    locality: Locality,
    since: ClockReading,
) -> impl Dialect + use<> {
    let ids = MessageIds::new(random());
    Client::new(id, server.settings(), directory, ids, since).located(locality)
}
