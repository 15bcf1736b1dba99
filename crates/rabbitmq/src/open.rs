//! Open: what a connection tells RabbitMQ's clients, and what they tell by its host name and user.
//! (docs/spec/rabbitmq.md#0.1, #1, #2)
//!
//! Clients refuse a server of another product or an older version, and choose their features by
//! the version.

use access::{Access, Credential, Locality, Secret};
use amqp::{Map, Open, Symbol, Value};
use dialect::virtual_host;

/// The version of RabbitMQ whose features there are.
pub const VERSION: &str = "4.3.0";
/// The user and password that need no configuration, and count on this machine only.
const GUEST: &str = "guest";

/// The capabilities of a connection.
pub const CAPABILITIES: [Symbol; 2] = [Symbol::new("LINK_PAIR_V1_0"), ANONYMOUS_RELAY];

const ANONYMOUS_RELAY: Symbol = Symbol::new("ANONYMOUS-RELAY");

/// The properties of the server's open; values are strings.
#[must_use]
pub fn open_properties(node: &str, railbus_version: &str) -> Map {
    let entries = [
        ("product", "RabbitMQ"),
        ("version", VERSION),
        ("node", node),
        ("cluster_name", node),
        ("platform", "Railbus"),
        ("railbus-version", railbus_version),
    ];
    let entries = entries.into_iter();
    let entries = entries.map(|(key, value)| (Value::Symbol(key.into()), Value::from(value)));
    entries.collect()
}

/// The virtual host that the client has named, if it has. The connection's host refuses unknown
/// ones.
pub(crate) fn named_virtual_host(open: &Open) -> Option<&str> {
    virtual_host(open.hostname.as_deref().unwrap_or_default())
}

/// Whether senders without a target address are the other dialect's: the client desires them and
/// names no virtual host, as JMS clients do and RabbitMQ's do not. (docs/spec/rabbitmq.md#1)
pub(crate) fn leaves_anonymous_senders(open: &Open) -> bool {
    named_virtual_host(open).is_none() && open.desired_capabilities.contains(&ANONYMOUS_RELAY)
}

/// The credential of the user `guest`: on this machine, with the development key only.
pub(crate) fn guest(access: &Access, locality: Locality) -> Option<Credential> {
    let is_local = locality == Locality::Loopback;
    access.development_credential().filter(|_| is_local)
}

/// The same, for a user and a password.
pub(crate) fn log_in(
    access: &Access,
    user: &str,
    password: &[u8],
    locality: Locality,
) -> Option<Credential> {
    let is_right = Secret::new(GUEST.to_owned()).is(password);
    let is_guest = user == GUEST && is_right;
    is_guest.then(|| guest(access, locality)).flatten()
}
