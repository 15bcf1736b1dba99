//! Resource: a queue or an exchange, as the texts of RabbitMQ name it.

use std::fmt;

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    kind: &'static str,
    name: &'a str,
    virtual_host: &'a str,
}

impl<'a> Resource<'a> {
    /// The queue of a name. The virtual host is called as its client calls it.
    #[must_use]
    pub const fn queue(name: &'a str, virtual_host: &'a str) -> Self {
        Self {
            kind: "queue",
            name,
            virtual_host,
        }
    }

    /// The exchange of a name.
    #[must_use]
    pub const fn exchange(name: &'a str, virtual_host: &'a str) -> Self {
        Self {
            kind: "exchange",
            name,
            virtual_host,
        }
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            virtual_host,
        } = self;
        write!(f, "{kind} '{name}' in vhost '{virtual_host}'")
    }
}
