//! Namespaces: how a connection that opens finds the namespace that it belongs to.
//!
//! A connection begins in the default namespace and may leave it once, before its first link to an
//! entity. What it finds is a directory, which has the namespace's entities and keys and no others;
//! so nothing that the connection does later can reach another namespace. Nothing is looked up for
//! a message.

use std::sync::Arc;

use access::Directory;

/// What comes before the name of a virtual host in `open.hostname`.
const VIRTUAL_HOST: &str = "vhost:";

/// The virtual host that a client of RabbitMQ names as its host, literally.
/// (docs/spec/rabbitmq.md#1)
#[must_use]
pub fn virtual_host(host: &str) -> Option<&str> {
    host.strip_prefix(VIRTUAL_HOST)
}

/// The namespaces of a server.
pub trait Namespaces: Send + Sync {
    /// The namespace whose host name that is, in lower case and without a port. None for names that
    /// choose no namespace.
    fn of_host(&self, host: &str) -> Option<Arc<Directory>>;

    /// The namespace of exactly that name, for clients that name it as their virtual host.
    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>>;

    /// Which namespace besides the default one has a key of that name.
    fn of_key(&self, key_name: &str) -> KeyOwner;

    /// The namespace besides the default one whose name a path of an audience begins with, in lower
    /// case. None for a path that the default namespace has an entity at, or at its beginning.
    fn of_audience(&self, path: &str) -> Option<Arc<Directory>>;

    /// The same of a token, which is made with the key of a name if it is a signature. A key that
    /// the namespace does not have would be refused there, and for good.
    fn of_token(&self, key_name: Option<&str>, path: &str) -> Option<Arc<Directory>> {
        let found = self.of_audience(path)?;
        let knows = |name| found.access().has_key(name);
        key_name.is_none_or(knows).then_some(found)
    }
}

/// Which namespace has a key.
#[derive(Clone, Debug)]
pub enum KeyOwner {
    /// None that the name chooses: the default one has such a key, or no namespace has.
    Default,
    /// This one alone.
    One(Arc<Directory>),
    /// More than one.
    Several,
}
