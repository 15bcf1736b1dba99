//! Virtual host: the one that the client has named, which texts and descriptions repeat.
//! (docs/spec/rabbitmq.md#1)

use broker::Resource;

/// The virtual host of clients that name none.
const DEFAULT: &str = "/";

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct VirtualHost(Option<String>);

impl VirtualHost {
    /// The one that a client has named, if it has.
    pub(crate) fn new(name: Option<&str>) -> Self {
        Self(name.map(str::to_owned))
    }

    /// Whether the client has named one, as RabbitMQ's clients do.
    pub(crate) fn is_named(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT)
    }

    /// A queue as texts name it.
    pub(crate) fn queue<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource::queue(name, self.name())
    }

    /// An exchange as texts name it.
    pub(crate) fn exchange<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource::exchange(name, self.name())
    }
}
