//! Ending or renewing a lock that a receive has taken.

use std::sync::Arc;

use access::Entity;
use admin::Error;
use admin::data::{self, Action, Call};
use broker::{Command, LockToken, Outcome, Output, RequestId, SubqueueId};
use hyper::StatusCode;

use super::{Response, empty, run_detached, unavailable};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};

/// Does with the lock what the call asks for.
pub async fn respond(
    call: Call,
    token: LockToken,
    entity: Arc<Entity>,
    server: &Arc<NamespaceView>,
) -> Result<Response, Error> {
    let server = Arc::clone(server);
    run_detached(async move {
        let shard_client = ShardClient::connect_to(&server, LocksAtEnd::Keep).await;
        let mut shard_client = shard_client.map_err(unavailable)?;
        let command = |request| command(&call, token, &entity, request);
        let done = shard_client.ask(command, |output| match output {
            Output::Settled { result, .. } => Some(result.map_err(|error| data::lock(&error))),
            Output::Renewed { result, .. } => {
                let refuse = |error| data::request(&error, &entity.path);
                Some(result.map(drop).map_err(refuse))
            }
            _ => None,
        });
        done.await.map_err(unavailable)??;
        Ok(empty(StatusCode::OK))
    })
    .await
}

fn command(call: &Call, token: LockToken, entity: &Entity, request: RequestId) -> Command {
    let (entity, subqueue) = (entity.id, call.subqueue);
    let outcome = match call.action {
        Action::Renew(_) => {
            let tokens = vec![token];
            return Command::Renew {
                request,
                subqueue: SubqueueId { entity, subqueue },
                tokens,
            };
        }
        Action::Unlock(_) => Outcome::abandon(Vec::new()),
        _ => Outcome::Complete,
    };
    Command::Settle {
        request: Some(request),
        session: None,
        subqueue: SubqueueId { entity, subqueue },
        token,
        outcome,
    }
}
