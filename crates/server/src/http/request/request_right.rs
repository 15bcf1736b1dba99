//! Request right: that by which a request is answered, checked again while its answer goes on.

use std::sync::Arc;

use access::Operation;

use super::caller::Caller;
use crate::namespaces::namespace_view::NamespaceView;

/// See the head of this file. It holds a secret, so it has no `Debug`.
#[derive(Clone)]
pub struct RequestRight {
    caller: Caller,
    server: Arc<NamespaceView>,
    operation: Operation,
    path: String,
}

impl RequestRight {
    /// The right of a client of `server`'s namespace to do that at the path that it asked for.
    pub fn new(
        caller: Caller,
        server: &Arc<NamespaceView>,
        operation: Operation,
        path: String,
    ) -> Self {
        Self {
            caller,
            server: Arc::clone(server),
            operation,
            path,
        }
    }

    /// Whether the caller would be answered now: its session is open, its token has not expired,
    /// and its key is there.
    pub fn holds(&self) -> bool {
        let (caller, server) = (&self.caller, &*self.server);
        let has_right = || caller.check(server, self.operation, &self.path).is_ok();
        caller.is_signed_in(server) && (has_right() || caller.reader(server).is_some())
    }
}
