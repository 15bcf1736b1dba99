//! Target check: a client that manages one entity forwards its messages only to entities that it
//! manages as well. (docs/spec/entities.md#14.1)

use access::{Operation, Unauthorized};

use crate::http::request::caller::Caller;
use crate::namespaces::namespace_view::NamespaceView;

/// The client that sets a target. One with the right to the namespace may set any.
pub struct TargetCheck(Option<Box<Caller>>);

impl TargetCheck {
    /// Of a client with rights to single entities alone, if it is one.
    pub fn of(caller: Option<Caller>) -> Self {
        Self(caller.filter(Caller::is_of_one_entity).map(Box::new))
    }

    /// Whether messages may be forwarded to `target`.
    pub fn check(&self, server: &NamespaceView, target: &str) -> Result<(), Unauthorized> {
        match &self.0 {
            Some(caller) => caller
                .clone()
                .check_entity(server, Operation::Operate, target),
            None => Ok(()),
        }
    }
}
