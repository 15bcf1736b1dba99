//! `/$railbus/namespaces/NAME/messages/ID/history` and `/$railbus/namespaces/NAME/history`: what
//! has happened to messages, as far as it is recorded.
//!
//! `?entity=`, `?sequence=` and `?session=` say which messages; without any of them and without an
//! id it is all of the namespace. Each event has a code for programs and a text for people. The
//! answer says how far back the record reaches and whether it has the beginning of each message.
//! A client with the right Listen may ask about its own namespace, one that manages the default
//! namespace about all.

mod event_json;

use broker::HistoryQuery;
use entity::time::checked_text;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};
use store::SequenceNumber;

use super::namespaces::{ApiError, PREFIX, describe};
use crate::http::request::query;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::routes::Route;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};
use event_json::event_json;

/// Events that an answer has if the request does not say, and at most.
const TOP: u64 = 1_000;
const MAX_TOP: u64 = 10_000;

/// What is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Question {
    namespace: String,
    query: HistoryQuery,
    top: usize,
}

impl Question {
    fn parse(path: &str, query: &str) -> Result<Self, String> {
        let mut question = Self {
            namespace: namespace_of(path).ok_or("the path is not UTF-8")?,
            query: HistoryQuery {
                message_id: message_id_of(path)?,
                ..HistoryQuery::default()
            },
            top: usize::try_from(TOP).unwrap_or(usize::MAX),
        };
        let wanted = &mut question.query;
        for (name, value) in query::parameters(query) {
            let value = value?;
            match name {
                "entity" => wanted.entity = Some(value.into_owned()),
                "session" => wanted.session_id = Some(value.into_owned()),
                "sequence" => {
                    let number = query::number(name, &value, 1..=u64::MAX)?;
                    wanted.number = Some(SequenceNumber(number));
                }
                "top" => {
                    let top = query::number(name, &value, 1..=MAX_TOP)?;
                    question.top = usize::try_from(top).unwrap_or(usize::MAX);
                }
                other => {
                    return Err(format!(
                        "unknown parameter `{other}`: the parameters are entity, sequence, \
                         session and top"
                    ));
                }
            }
        }
        let names_one = wanted.entity.is_some() || wanted.message_id.is_some();
        if wanted.number.is_some() && !names_one {
            return Err("sequence is the number of a message in an entity: name that too".into());
        }
        Ok(question)
    }
}

/// The name of the namespace that a path is about.
fn namespace_of(path: &str) -> Option<String> {
    let rest = path.strip_prefix(PREFIX)?.trim_start_matches('/');
    let name = rest.split('/').next()?;
    Some(percent_decode_str(name).decode_utf8().ok()?.into_owned())
}

/// The message id that a path names, if it names one.
fn message_id_of(path: &str) -> Result<Option<String>, String> {
    let id = path.strip_suffix("/history").and_then(|path| {
        let (_, id) = path.rsplit_once('/')?;
        path.ends_with(&format!("/messages/{id}")).then_some(id)
    });
    let id = id.map(|id| percent_decode_str(id).decode_utf8());
    let id = id.transpose().map_err(|_| "the message id is not UTF-8")?;
    Ok(id.map(|id| id.into_owned()))
}

/// Whether it asks for the history of another namespace than the client's own.
pub fn is_of_other(route: Route, path: &str, server: &NamespaceView) -> bool {
    if !matches!(route, Route::History | Route::MessageHistory) {
        return false;
    }
    namespace_of(path) != Some(server.name())
}

/// Answers a request. The client may ask about the namespace of the path.
pub async fn respond(request: &Request<Incoming>, path: &str, server: &NamespaceView) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let question = match Question::parse(path, query) {
        Ok(question) => question,
        Err(text) => return answer::error(StatusCode::BAD_REQUEST, &text),
    };
    match find(question, server).await {
        Ok(json) => answer::value(StatusCode::OK, &json),
        Err(error) => error.into(),
    }
}

async fn find(question: Question, server: &NamespaceView) -> Result<Json, ApiError> {
    let Question {
        namespace,
        query,
        top,
    } = question;
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let id = describe(&mut shard, namespace.clone()).await?.id;
    let Some(reader) = shard.lineage(id).await? else {
        return Ok(json!({
            "namespace": namespace,
            "recorded": false,
            "complete": false,
            "more": false,
            "events": [],
        }));
    };
    // Looking through a record takes some milliseconds.
    let history = tokio::task::spawn_blocking(move || reader.history(&query, top));
    let history = history.await.map_err(|_| ApiError::Unexpected)?;
    let events: Vec<_> = history
        .events
        .iter()
        .map(|it| event_json(it, &history))
        .collect();
    Ok(json!({
        "namespace": namespace,
        "recorded": true,
        "since": checked_text(history.since),
        "complete": history.is_complete,
        "more": history.more,
        "events": events,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str, query: &str) -> Result<Question, String> {
        Question::parse(&format!("{PREFIX}/{path}"), query)
    }

    #[test]
    fn a_question_is_read_from_path_and_query() {
        let question = parse("shop/messages/a%2Fb%20c/history", "entity=orders&top=5").unwrap();
        assert_eq!(question.namespace, "shop");
        assert_eq!(question.query.message_id.as_deref(), Some("a/b c"));
        assert_eq!(question.query.entity.as_deref(), Some("orders"));
        assert_eq!(question.top, 5);
        let question = parse("default/history", "entity=a&sequence=7&session=s").unwrap();
        assert_eq!(question.query.message_id, None);
        assert_eq!(question.query.number, Some(SequenceNumber(7)));
        assert_eq!(question.query.session_id.as_deref(), Some("s"));
        let question = parse("messages/history", "").unwrap();
        assert_eq!(question.query, HistoryQuery::default());
    }

    #[test]
    fn a_wrong_question_is_refused_with_what_is_wrong() {
        for (query, text) in [
            ("sequence=7", "name that too"),
            ("entity=a&sequence=0", "must be a number"),
            ("top=10001", "from 1 to 10000"),
            ("id=7", "unknown parameter `id`"),
        ] {
            let refusal = parse("default/history", query).unwrap_err();
            assert!(refusal.contains(text), "{query}: {refusal}");
        }
    }
}
