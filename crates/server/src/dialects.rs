//! Dialects: the dialects that an AMQP connection speaks.
//!
//! Only this file names the types of dialects; listeners and connections know the trait
//! [`Dialect`]. A connection belongs to Service Bus's dialect. RabbitMQ's owns those of its links
//! that have RabbitMQ's addresses, and adds to the server's open what its clients look for.

use std::sync::Arc;

use access::{Directory, Locality};
use broker::ConnectionId;
use dialect::{ClockReading, Dialect, MessageIds};
use servicebus::{Client, Settings};

use crate::random::random;
use crate::server::server_state::ServerState;

/// What a client has said of itself and the server in the handshake of TLS, if there was one.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// The names in its verified certificate, if it has shown one.
    pub certificate: Option<Vec<String>>,
    /// The host that it wants to reach.
    pub server_name: Option<String>,
}

/// The settings of connections with what each dialect adds to the endpoint's.
#[must_use]
pub fn prepared(mut settings: Settings) -> Arc<Settings> {
    let endpoint = &mut settings.endpoint;
    let version = env!("CARGO_PKG_VERSION");
    endpoint.properties = Some(rabbitmq::open_properties(&endpoint.container_id, version));
    endpoint.offered_capabilities = rabbitmq::CAPABILITIES.to_vec();
    endpoint.shares_name = rabbitmq::may_share_name;
    Arc::new(settings)
}

/// The dialect's side of a connection from there that was accepted at `since`.
pub fn accept(
    server: &ServerState,
    id: ConnectionId,
    directory: Arc<Directory>,
    locality: Locality,
    handshake: TlsFacts,
    since: ClockReading,
) -> impl Dialect + use<> {
    let settings = server.settings();
    let rabbitmq = rabbitmq::Settings {
        node: settings.endpoint.container_id.clone(),
        max_message_size: settings.max_message_size,
        dynamic_nodes: settings.dynamic_nodes.required(),
    };
    let links = rabbitmq::Links::new(rabbitmq, MessageIds::new(random()));
    let ids = MessageIds::new(random());
    let client = Client::new(id, settings, directory, ids, since);
    let client = client.located(locality).sharing(Box::new(links));
    let namespaces = Arc::clone(&server.namespaces);
    let client = client.in_namespaces(namespaces, handshake.server_name.as_deref());
    match handshake.certificate {
        Some(names) => client.with_certificate(names),
        None => client,
    }
}
