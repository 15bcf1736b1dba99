//! `/api/queues`: queues as RabbitMQ shows them, made, deleted and purged.
//!
//! Every queue is durable and counts as a quorum queue. The arguments with which one was made are
//! kept in its `UserMetadata`, so that they are shown as they were given.

use broker::{
    Answer, Command, EntityDescription, EntityInfo, EntityKind, EntityPath, Order, Output,
    StoreOnlyProperties, Subqueue, SubqueueId, Wall, arguments_of, is_known_argument,
    settings_of_arguments,
};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::{
    Answered, Call, Failure, NODE, VHOST, bad_request, entity_error, is_read, not_found, object,
};
use crate::namespace::list_queues;
use crate::shard_client::{ShardClient, ShardError};

/// Before the arguments in the metadata of a queue that was made with some.
const ARGUMENTS: &str = "rabbitmq:";

/// Answers a request for all queues, or for the one of a name.
pub(super) async fn handle(shard: &mut ShardClient, call: &Call, rest: &[&str]) -> Answered {
    match (&call.method, rest) {
        (method, [] | [_]) if is_read(method) => {
            let queues = list_queues(shard).await?;
            let shown = queues.iter().map(shown).collect();
            Ok((StatusCode::OK, Some(shown)))
        }
        (method, [_, name]) if is_read(method) => {
            let found = describe(shard, name).await?.ok_or_else(not_found)?;
            Ok((StatusCode::OK, Some(shown(&found))))
        }
        (&Method::PUT, [_, name]) => {
            let is_new = put(shard, name, &object(&call.body)?).await?;
            let status = if is_new {
                StatusCode::CREATED
            } else {
                StatusCode::NO_CONTENT
            };
            Ok((status, None))
        }
        (&Method::DELETE, [_, name]) => delete(shard, name, &call.query).await,
        (&Method::DELETE, [_, name, "contents"]) => purge(shard, name).await,
        (_, [] | [_] | [_, _] | [_, _, "contents"]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// The queue of a name, if there is one.
async fn describe(shard: &mut ShardClient, name: &str) -> Result<Option<EntityInfo>, ShardError> {
    let path = name.to_owned();
    Ok(match shard.order(Order::Describe { path }).await? {
        Ok(Answer::Entity(info)) if info.queue.kind == EntityKind::Queue => Some(*info),
        _ => None,
    })
}

/// Makes a queue, or sees that the one of its name is the same. Returns whether it is new.
pub(super) async fn put(
    shard: &mut ShardClient,
    name: &str,
    given: &Map<String, Json>,
) -> Result<bool, Failure> {
    let arguments = read(name, given)?;
    if let Some(found) = describe(shard, name).await? {
        return check_equivalent(name, &arguments, &arguments_shown(&found)).map(|()| false);
    }
    let refused = |(argument, why): (String, String)| {
        let place = format!("queue '{name}' in vhost '{VHOST}'");
        bad_request(format!("invalid arg '{argument}' for {place}: {why}"))
    };
    let settings = settings_of_arguments(&arguments).map_err(refused)?;
    let metadata = format!("{ARGUMENTS}{}", Json::Object(arguments));
    let order = Order::Create {
        path: EntityPath::Queue(name.to_owned()),
        description: Box::new(EntityDescription {
            settings,
            store_only: StoreOnlyProperties {
                user_metadata: Some(metadata),
                ..StoreOnlyProperties::default()
            },
            ..EntityDescription::default()
        }),
        rules: None,
    };
    let made = shard.order(order).await?;
    made.map_err(|error| entity_error(&error))?;
    Ok(true)
}

/// The arguments of a queue that is to be made.
fn read(name: &str, given: &Map<String, Json>) -> Result<Map<String, Json>, Failure> {
    if name.starts_with("amq.") {
        let reason = "Access refused.".to_owned();
        let status = StatusCode::UNAUTHORIZED;
        return Err(Failure::Refused((status, "not_authorised", reason)));
    }
    broker::check_path(name).map_err(|error| bad_request(error.to_string()))?;
    for flag in ["durable", "auto_delete"] {
        if let Some(value) = given.get(flag).filter(|value| !value.is_boolean()) {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            return Err(bad_request(format!("[\"not_boolean\",\"{shown}\"]")));
        }
    }
    if given.get("auto_delete") == Some(&Json::Bool(true)) {
        let text = "auto_delete: this broker does not support it yet";
        return Err(bad_request(text));
    }
    match given.get("arguments") {
        None => Ok(Map::new()),
        Some(Json::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(bad_request("arguments should be an object")),
    }
}

/// Whether the arguments that are given are those that the queue has.
fn check_equivalent(
    name: &str,
    given: &Map<String, Json>,
    current: &Map<String, Json>,
) -> Result<(), Failure> {
    for (argument, value) in given.iter().filter(|(name, _)| is_known_argument(name)) {
        let current = current.get(argument);
        if current != Some(value) {
            let current = current.map_or_else(|| "none".to_owned(), quoted);
            return Err(bad_request(format!(
                "inequivalent arg '{argument}' for queue '{name}' in vhost '{VHOST}': received {} \
                 but current is {current}",
                quoted(value),
            )));
        }
    }
    Ok(())
}

fn quoted(value: &Json) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    format!("'{text}'")
}

/// The arguments of a queue: those with which it was made, or those that say what it has.
pub(super) fn arguments_shown(info: &EntityInfo) -> Map<String, Json> {
    let metadata = info.store_only.user_metadata.as_deref();
    let given = metadata.and_then(|text| text.strip_prefix(ARGUMENTS));
    let given = given.and_then(|text| serde_json::from_str::<Map<String, Json>>(text).ok());
    let mut shown = given.unwrap_or_else(|| arguments_of(&info.queue.settings));
    let kind = || "quorum".into();
    shown.entry("x-queue-type").or_insert_with(kind);
    shown
}

fn shown(info: &EntityInfo) -> Json {
    let queue = &info.queue;
    let applied = queue.policy.as_deref().cloned().unwrap_or_default();
    let limit = queue.settings.max_delivery_count;
    let limit = (limit != u32::MAX).then(|| limit.saturating_sub(1));
    json!({
        "name": queue.path,
        "vhost": VHOST,
        "type": "quorum",
        "durable": true,
        "auto_delete": false,
        "exclusive": false,
        "arguments": arguments_shown(info),
        "policy": applied.user,
        "operator_policy": applied.operator,
        "effective_policy_definition": applied.definition,
        "delivery_limit": limit,
        "messages": queue.active,
        "messages_ready": queue.active.saturating_sub(queue.locked),
        "messages_unacknowledged": queue.locked,
        "consumers": queue.receivers,
        "state": "running",
        "node": NODE,
        "leader": NODE,
        "members": [NODE],
        "online": [NODE],
    })
}

async fn delete(shard: &mut ShardClient, name: &str, query: &str) -> Answered {
    let found = describe(shard, name).await?.ok_or_else(not_found)?;
    let has = |flag: &str| {
        query
            .split('&')
            .any(|pair| pair == flag || pair == format!("{flag}=true"))
    };
    if has("if-empty") && found.queue.active > 0 {
        return Err(bad_request(format!(
            "queue '{name}' in vhost '/' not empty"
        )));
    }
    if has("if-unused") && found.queue.receivers > 0 {
        return Err(bad_request(format!("queue '{name}' in vhost '/' in use")));
    }
    let path = name.to_owned();
    let removed = shard.order(Order::Remove { path }).await?;
    removed.map_err(|error| entity_error(&error))?;
    Ok((StatusCode::NO_CONTENT, None))
}

/// Deletes the messages that are available now.
async fn purge(shard: &mut ShardClient, name: &str) -> Answered {
    let found = describe(shard, name).await?.ok_or_else(not_found)?;
    let count = usize::try_from(found.queue.active).unwrap_or(usize::MAX);
    let subqueue = SubqueueId {
        entity: found.queue.id,
        subqueue: Subqueue::Main,
    };
    let command = |request| Command::DeleteMessages {
        request,
        subqueue,
        session: None,
        enqueued_before: Wall(u64::MAX),
        count,
    };
    let deleted = shard.ask(command, |output| match output {
        Output::Deleted { result, .. } => Some(result),
        _ => None,
    });
    deleted
        .await?
        .map_err(|error| bad_request(error.to_string()))?;
    Ok((StatusCode::NO_CONTENT, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &Json, current: &Json, expected: &str) {
        let (given, current) = (given.as_object().unwrap(), current.as_object().unwrap());
        let text = match check_equivalent("q", given, current) {
            Ok(()) => "same".to_owned(),
            Err(Failure::Refused((_, _, reason))) => reason,
            Err(Failure::Shard(error)) => error.to_string(),
        };
        assert_eq!(text, expected);
    }

    #[test]
    fn arguments_that_are_given_have_to_be_those_that_are_there() {
        let current = json!({"x-message-ttl": 600_000, "x-queue-type": "quorum"});
        check(&json!({}), &current, "same");
        check(&json!({"x-message-ttl": 600_000}), &current, "same");
        check(&json!({"x-nosuch": 1}), &current, "same");
        check(
            &json!({"x-message-ttl": 600_001}),
            &current,
            "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '600001' but \
             current is '600000'",
        );
        check(
            &json!({"x-expires": 1}),
            &current,
            "inequivalent arg 'x-expires' for queue 'q' in vhost '/': received '1' but current is \
             none",
        );
    }

    #[test]
    fn names_of_rabbitmq_and_wrong_flags_are_refused() {
        let refusal = |name: &str, given: Json| match read(name, given.as_object().unwrap()) {
            Err(Failure::Refused((status, _, reason))) => (status.as_u16(), reason),
            _ => (200, String::new()),
        };
        let refused = (401, "Access refused.".to_owned());
        assert_eq!(refusal("amq.x", json!({})), refused);
        let flag = (400, "[\"not_boolean\",\"x\"]".to_owned());
        assert_eq!(refusal("q", json!({"durable": "x"})), flag);
        assert_eq!(refusal("q", json!({"auto_delete": true})).0, 400);
        assert_eq!(refusal("a//b", json!({})).0, 400);
        assert_eq!(refusal("q", json!({"durable": false})).0, 200);
    }
}
