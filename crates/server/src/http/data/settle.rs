//! Ending or renewing a lock that a receive has taken.

use std::sync::Arc;

use admin::Error;
use admin::data::{self, Action, Call};
use broker::{Command, LockToken, Outcome, Output, SubqueueId};
use hyper::StatusCode;
use servicebus::Entity;

use super::{Response, closed, empty, run_detached};
use crate::server_state::ServerState;
use crate::shard_client::ShardClient;

/// Does with the lock what the call asks for.
pub async fn respond(
    call: Call,
    token: LockToken,
    entity: Arc<Entity>,
    server: &Arc<ServerState>,
) -> Result<Response, Error> {
    let server = Arc::clone(server);
    run_detached(async move {
        let mut shard_client = ShardClient::connect_to(&server).await.map_err(closed)?;
        let command = command(&call, token, &entity, &shard_client);
        shard_client
            .send_commands(vec![command])
            .await
            .map_err(closed)?;
        let said = shard_client.next_outputs().await.map_err(closed)?;
        shard_client.leave().await;
        match said.into_iter().next() {
            Some(Output::Settled { result, .. }) => result.map_err(|error| data::lock(&error))?,
            Some(Output::Renewed { result, .. }) => {
                result.map_err(|error| data::request(&error, &entity.path))?;
            }
            _ => return Err(Error::unavailable()),
        }
        Ok(empty(StatusCode::OK))
    })
    .await
}

fn command(call: &Call, token: LockToken, entity: &Entity, shard_client: &ShardClient) -> Command {
    let (request, entity, subqueue) = (shard_client.request(0), entity.id, call.subqueue);
    let outcome = match call.action {
        Action::Renew(_) => {
            let tokens = vec![token];
            return Command::Renew {
                request,
                subqueue: SubqueueId { entity, subqueue },
                tokens,
            };
        }
        Action::Unlock(_) => Outcome::Abandon {
            changes: Vec::new(),
        },
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
