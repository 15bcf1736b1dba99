//! Request right: that by which a request is answered. It is checked before the answer, and again
//! while one goes on.

use std::sync::Arc;

use access::{Operation, Unauthorized};

use super::caller::Caller;
use super::reader;
use crate::http::api::entities;
use crate::http::routes::Route;
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

/// Whether a client may do that: by a right to the namespace, by one to the entity that the route
/// `own` is about, or because the route shows it its own entities alone.
pub fn authorize(
    caller: &mut Caller,
    server: &NamespaceView,
    operation: Operation,
    (asked, path): (&str, &str),
    own: Option<Route>,
) -> Result<(), Unauthorized> {
    let Err(reason) = caller.check(server, operation, asked) else {
        return Ok(());
    };
    let Some(route) = own else {
        return Err(reason);
    };
    if let Some(entity) = entities::entity_of(route, path) {
        let result = caller.check_entity(server, operation, &entity);
        // A signature for an entity is none for the path of the request, and no guess for that.
        return match access::is_guess(reason.sub_code()) {
            true => result,
            false => result.map_err(|_| reason),
        };
    }
    match reader::is_partial(route).then(|| caller.reader(server)) {
        Some(Some(reader)) => {
            server.set_reader(reader);
            Ok(())
        }
        _ => Err(reason),
    }
}
