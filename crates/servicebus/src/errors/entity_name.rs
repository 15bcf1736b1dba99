//! Entity name: the two forms in which error texts name an entity. (docs/spec/amqp.md#3.6, #5.5)

use std::fmt::{self, Display};

use broker::EntityKind;

/// An entity that refuses something.
pub(crate) struct EntityName<'a> {
    /// Its address, `sb://host/path`.
    pub(crate) resource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) kind: EntityKind,
    pub(crate) path: &'a str,
}

impl EntityName<'_> {
    /// The word for what it is, or for the topic that it belongs to.
    pub(super) fn kind(&self) -> &'static str {
        match self.kind {
            EntityKind::Queue => "Queue",
            EntityKind::Topic | EntityKind::Subscription => "Topic",
        }
    }
}

/// Its place in the namespace, as texts about quotas and rules have it:
/// `namespace:Queue:path` or `namespace:Topic:path|subscription`.
impl Display for EntityName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.replacen("/Subscriptions/", "|", 1);
        write!(f, "{}:{}:{path}", self.namespace, self.kind())
    }
}
