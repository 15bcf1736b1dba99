//! Ending or renewing a lock that a receive has taken.

use std::sync::Arc;

use admin::Error;
use admin::data::{self, Action, Call};
use broker::{Command, LockToken, Outcome, Output, SubqueueId};
use hyper::StatusCode;
use servicebus::Entity;

use super::{Response, carry_through, closed, empty};
use crate::desk::Desk;
use crate::door::House;

/// Does with the lock what the call asks for.
pub async fn respond(
    call: Call,
    token: LockToken,
    entity: Arc<Entity>,
    house: &Arc<House>,
) -> Result<Response, Error> {
    let house = Arc::clone(house);
    carry_through(async move {
        let mut desk = Desk::open_in(&house).await.map_err(closed)?;
        let command = command(&call, token, &entity, &desk);
        desk.tell(vec![command]).await.map_err(closed)?;
        let said = desk.hear().await.map_err(closed)?;
        desk.leave().await;
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

fn command(call: &Call, token: LockToken, entity: &Entity, desk: &Desk) -> Command {
    let (request, entity, subqueue) = (desk.request(0), entity.id, call.subqueue);
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
