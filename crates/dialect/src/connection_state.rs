//! Connection state: one connection as an operator sees it at one moment.

use endpoint::LinkState;

/// One connection at one moment.
#[derive(Clone, Debug, Default)]
pub struct ConnectionState {
    /// The name that the client has given its container.
    pub container_id: String,
    /// The names of the clients whose credentials the peer has shown.
    pub client_names: Vec<String>,
    /// The first links, each with the address of its node if that is known.
    pub links: Vec<(LinkState, Option<String>)>,
    /// The number of all links.
    pub link_count: usize,
}

/// Why the server closes a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForcedClose {
    /// The server stops.
    ShutDown,
    /// An operator closes the connection.
    Operator,
    /// Its namespace has this number of connections, which is the maximum.
    NamespaceIsFull(u32),
}
