//! Session holder: the receiver link whose session a request is about. (docs/spec/amqp.md#7.1)
//!
//! A request names the session, the link that holds it, or both. A link that is named and gone has
//! lost its session, even if another link of the connection holds it now.

use access::Operation;
use amqp::Error;
use broker::is_same_session;
use bytes::Bytes;
use store::EntityId;

use crate::client::Client;
use crate::errors;
use crate::links::link::{Link, LinkKind};

/// Whether only the holder of a session may do this with it.
pub(super) fn is_of_holder(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReceiveDeferred
            | Operation::UpdateDisposition
            | Operation::RenewSessionLock
            | Operation::GetSessionState
            | Operation::SetSessionState
    )
}

impl Client {
    /// The session of an entity that a request is about. One that is named must be held by the
    /// named link; without a link's name, by any link of the connection.
    pub(super) fn held_session(
        &self,
        entity: EntityId,
        session: Option<&str>,
        link_name: Option<&str>,
    ) -> Result<Option<Bytes>, Error> {
        let is_named = |link: &Link| link_name.is_none_or(|name| link.name == name);
        let links = self.links.iter().map(|(_, link)| link);
        let mut held = links.filter(|link| is_named(link)).filter_map(|link| {
            let LinkKind::Receiver(receiver) = &link.kind else {
                return None;
            };
            let session = receiver.held_session.as_ref();
            session.filter(|_| receiver.entity == entity)
        });
        match session {
            Some(session) => {
                let found = held.find(|held| is_same_session(held, session.as_bytes()));
                let found = found.ok_or_else(errors::session_lock_lost)?;
                Ok(Some(found.clone()))
            }
            None if link_name.is_some() => Ok(held.next().cloned()),
            None => Ok(None),
        }
    }
}
