//! `/$railbus/entities`: what there is, in the shape of our own files, and changes to it.
//!
//! `GET` shows all of it, or the entity or the rule of a path (`events/Subscriptions/all`,
//! `events/Subscriptions/all/Rules/big`); with each entity goes its `state`. `PUT` makes or replaces
//! what its path names (only makes it with `If-None-Match: *`), `PATCH` changes the properties that
//! its body has [RFC 7396], and `DELETE` deletes it. What was made or changed is the answer. Behind an
//! entity's path are its `messages`, and what is done to many of them at once.

mod change;
mod messages;
mod place;
mod show;
mod surgery;

use std::sync::Arc;

use broker::{EntityError, RuleError};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::IF_NONE_MATCH;
use hyper::{Method, Request, StatusCode};
use serde_json::Value as Json;
use tokio::sync::oneshot;

use super::answer::{self, Response};
use super::body;
use super::routes::Route;
use crate::desk::{Closed, Desk};
use crate::door::House;
use messages::Range;
use place::Place;
use surgery::Deed;

const PREFIX: &str = "/$railbus/entities";
/// More than any entity needs.
const BODY_BYTES: usize = 1 << 20;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Bad(String),
    #[error(transparent)]
    Entity(#[from] EntityError),
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error("the broker answered something else")]
    Unexpected,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Entity(
                EntityError::NotFound
                | EntityError::NoTopic
                | EntityError::Rule(RuleError::NotFound(_) | RuleError::NoSubscription),
            ) => StatusCode::NOT_FOUND,
            Self::Entity(
                EntityError::Exists(_)
                | EntityError::TooMany { .. }
                | EntityError::Rule(RuleError::Exists(_) | RuleError::TooMany { .. }),
            ) => StatusCode::CONFLICT,
            Self::Entity(_) | Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::Closed(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unexpected => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        answer::error(refusal.status(), &refusal.to_string())
    }
}

/// What a request asks for.
#[derive(Debug)]
enum Wish {
    Show,
    Browse(Range),
    Operate(Deed, Bytes),
    /// Whether it may be there already.
    Put(Json, bool),
    Patch(Json),
    Delete,
}

/// Answers a request to whoever may manage.
pub async fn respond(
    request: Request<Incoming>,
    route: Route,
    path: &str,
    house: &Arc<House>,
) -> Response {
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    // One slash at the end means nothing.
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = match route {
        Route::Messages | Route::Purge | Route::Redrive => above(path),
        _ => path,
    };
    let place = match Place::parse(path) {
        Ok(place) => place,
        Err(text) => return Refusal::Bad(text).into(),
    };
    let wish = match wish(request, route, house).await {
        Ok(wish) => wish,
        Err(refusal) => return refusal,
    };
    // A task of its own, so that a client that goes does not stop what it has begun.
    let house = Arc::clone(house);
    let (client, _waiting) = oneshot::channel();
    let working = tokio::spawn(async move { work(&house, &place, wish, client).await });
    match working.await {
        Ok(Ok((status, json))) => answer::value(status, &json),
        Ok(Err(refusal)) => refusal.into(),
        Err(error) => {
            tracing::error!(%error, "a request ended by a fault of ours");
            answer::error(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the broker's")
        }
    }
}

/// The path of the entity whose messages are meant.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(path, _)| path)
}

async fn wish(request: Request<Incoming>, route: Route, house: &House) -> Result<Wish, Response> {
    let deed = match route {
        Route::Messages => {
            let range = Range::parse(request.uri().query().unwrap_or_default());
            return Ok(Wish::Browse(range.map_err(Refusal::Bad)?));
        }
        Route::Purge => Some(Deed::Purge),
        Route::Redrive => Some(Deed::Redrive),
        _ => None,
    };
    let may_be_there = request.headers().get(IF_NONE_MATCH).is_none();
    let method = request.method().clone();
    match method {
        Method::GET | Method::HEAD => return Ok(Wish::Show),
        Method::DELETE => return Ok(Wish::Delete),
        _ => {}
    }
    let body = body::read_own(request, BODY_BYTES, house.limits().handshake).await?;
    if let Some(deed) = deed {
        return Ok(Wish::Operate(deed, body));
    }
    let json = serde_json::from_slice(&body)
        .map_err(|error| Refusal::Bad(format!("the body is no JSON: {error}")))?;
    Ok(match method {
        Method::PUT => Wish::Put(json, may_be_there),
        _ => Wish::Patch(json),
    })
}

async fn work(
    house: &House,
    place: &Place,
    wish: Wish,
    client: oneshot::Sender<()>,
) -> Result<(StatusCode, Json), Refusal> {
    let mut desk = Desk::open_in(house).await?;
    let result = match wish {
        Wish::Show => show::place(&mut desk, place).await,
        Wish::Browse(range) => messages::show(&mut desk, place, range).await,
        Wish::Operate(deed, body) => surgery::work(&mut desk, place, deed, &body, &client).await,
        Wish::Delete => change::delete(&mut desk, place).await,
        Wish::Patch(json) => change::patch(&mut desk, place, json).await,
        Wish::Put(json, may_be_there) => change::put(&mut desk, place, json, may_be_there).await,
    };
    desk.close().await;
    result
}
