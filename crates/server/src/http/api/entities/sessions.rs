//! `GET /$railbus/entities/{path}/message-sessions`: the sessions of a queue or subscription that
//! have messages or a state, held or not, by page; and the state of one, held or not:
//! `GET /$railbus/entities/{path}/session-state?session=`.
//!
//! `?skip=` a number and `?count=` a maximum, both of them optional; `next` is how many the next
//! page skips, or null at the end. The holder of a session is that of the moment when the page is
//! made. A state that is no text is in base 64; of one with more than [`STATE_BYTES`] the size and
//! the start are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use broker::{Command, EntityError, EntityKind, Output, RequestError};
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Value as Json, json};
use store::EntityId;

use super::{ApiError, ResourcePath, receivers, show};
use crate::http::request::query;
use crate::shard::shard_client::ShardClient;

/// Sessions of an answer, unless it is asked for fewer or more.
const COUNT: u64 = 100;
/// Sessions of an answer at most.
const MOST: u64 = 1_000;
/// A longer state is not shown.
const STATE_BYTES: usize = 256 << 10;
/// The start that is shown of a longer state.
const START_BYTES: usize = 1 << 10;

/// Which sessions are listed.
#[derive(Debug)]
pub struct SessionRange {
    skip: u64,
    count: u64,
}

impl SessionRange {
    /// Parses a query.
    pub fn parse(query: &str) -> Result<Self, String> {
        let (mut skip, mut count) = (0, COUNT);
        for (name, value) in query::parameters(query) {
            let value = value?;
            match name {
                "skip" => skip = query::number(name, &value, 0..=u64::MAX)?,
                "count" => count = query::number(name, &value, 1..=MOST)?,
                other => {
                    return Err(format!(
                        "unknown parameter `{other}`: the parameters are skip and count"
                    ));
                }
            }
        }
        Ok(Self { skip, count })
    }
}

/// The session that a query names.
pub fn parse_session(query: &str) -> Result<String, String> {
    let mut session = None;
    for (name, value) in query::parameters(query) {
        match name {
            "session" => session = Some(value?.into_owned()),
            other => {
                return Err(format!(
                    "unknown parameter `{other}`: the parameter is session"
                ));
            }
        }
    }
    session.ok_or_else(|| "the parameter session says which one is meant".to_owned())
}

/// Lists them.
pub async fn list(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    range: SessionRange,
) -> Result<(StatusCode, Json), ApiError> {
    let entity = entity_of(shard_client, resource).await?;
    let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let command = |request| Command::ListSessions {
        request,
        entity,
        updated_after: None,
        skip: size(range.skip),
        top: size(range.count),
    };
    let listed = shard_client.ask(command, |output| match output {
        Output::Sessions { result, .. } => Some(result),
        _ => None,
    });
    let page = listed.await?.map_err(refused)?;
    // A page may be full of bytes before it is full of sessions; the end has none.
    let next = (!page.ids.is_empty()).then_some(page.skip);
    let sessions = shard_client.sessions(entity, page.ids).await?;
    let sessions = sessions.ok_or(EntityError::NotFound)?;
    let sessions: Vec<_> = sessions.iter().map(receivers::session).collect();
    Ok((StatusCode::OK, json!({"sessions": sessions, "next": next})))
}

/// Shows the state of one.
pub async fn show_state(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    session: String,
) -> Result<(StatusCode, Json), ApiError> {
    let entity = entity_of(shard_client, resource).await?;
    let id = Bytes::from(session);
    let command = |request| Command::ShowSessionState {
        request,
        entity,
        session: id.clone(),
    };
    let shown = shard_client.ask(command, |output| match output {
        Output::SessionState { result, .. } => Some(result),
        _ => None,
    });
    let state = shown.await?.map_err(refused)?;
    let sessions = shard_client.sessions(entity, vec![id]).await?;
    let session = sessions.and_then(|sessions| sessions.into_iter().next());
    let mut answer = receivers::session(&session.ok_or(EntityError::NotFound)?);
    add_state(&mut answer, state.as_deref());
    Ok((StatusCode::OK, answer))
}

fn add_state(answer: &mut Json, state: Option<&[u8]>) {
    let Some(state) = state else {
        answer["state"] = Json::Null;
        return;
    };
    match std::str::from_utf8(state) {
        _ if state.len() > STATE_BYTES => {
            answer["state-bytes"] = state.len().into();
            let start = &state[..START_BYTES];
            answer["state-start"] = String::from_utf8_lossy(start).into();
        }
        Ok(text) => answer["state"] = text.into(),
        Err(_) => answer["state-base64"] = BASE64.encode(state).into(),
    }
}

async fn entity_of(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
) -> Result<EntityId, ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let queue = show::describe(shard_client, &path).await?.queue;
    if queue.kind == EntityKind::Topic {
        let text = "a topic has no sessions; its subscriptions do";
        return Err(ApiError::Bad(text.to_owned()));
    }
    Ok(queue.id)
}

fn refused(error: RequestError) -> ApiError {
    match error {
        RequestError::NotFound => EntityError::NotFound.into(),
        error => ApiError::Bad(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_which_sessions() {
        let parse = |query| SessionRange::parse(query).map(|range| (range.skip, range.count));
        assert_eq!(parse(""), Ok((0, 100)));
        assert_eq!(parse("skip=100&count=1000"), Ok((100, 1_000)));
        for wrong in ["count=0", "count=1001", "skip=-1", "from=1", "skip=%ff"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_session("session=a%2Fb"), Ok("a/b".to_owned()));
        assert_eq!(parse_session("session="), Ok(String::new()));
        assert!(parse_session("").is_err());
        assert!(parse_session("id=a").is_err());
    }

    fn check(state: Option<&[u8]>, expected: &Json) {
        let mut answer = json!({});
        add_state(&mut answer, state);
        assert_eq!(&answer, expected);
    }

    #[test]
    fn a_state_is_shown_as_bodies_are() {
        check(None, &json!({"state": null}));
        check(Some(b""), &json!({"state": ""}));
        check(Some(b"hello"), &json!({"state": "hello"}));
        check(Some(&[0xff, 0]), &json!({"state-base64": "/wA="}));
        let long = vec![b'x'; STATE_BYTES + 1];
        let start = "x".repeat(START_BYTES);
        check(
            Some(&long),
            &json!({"state-bytes": long.len(), "state-start": start}),
        );
    }
}
