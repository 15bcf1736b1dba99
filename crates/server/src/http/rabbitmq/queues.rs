//! `/api/queues`: queues as RabbitMQ shows them, made, deleted and purged.
//!
//! Every queue is durable. The arguments with which one was made are kept with it, so that they are
//! shown as they were given.

use broker::{
    Answer, BindingDestination, Command, EntityDescription, EntityError, EntityInfo, EntityKind,
    EntityPath, Order, Output, QueueArguments, Resource, StoreOnlyProperties, Subqueue, SubqueueId,
    Wall,
};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::virtual_hosts::VirtualHost;
use super::{
    Answered, Call, Failure, NODE, bad_request, bindings, flag, has_flag, is_read, made, not_found,
    object,
};
use crate::namespaces::namespace::list_queues;
use crate::shard::shard_client::ShardError;

/// Answers a request for all queues, or for the one of a name.
pub(super) async fn handle(host: &mut VirtualHost, call: &Call, rest: &[&str]) -> Answered {
    match (&call.method, rest) {
        (method, [] | [_]) if is_read(method) => {
            let queues = list_queues(&mut host.shard).await?;
            let shown = queues.iter().map(|info| shown(info, &host.name));
            Ok((StatusCode::OK, Some(shown.collect())))
        }
        (method, [_, name]) if is_read(method) => {
            let found = describe(host, name).await?.ok_or_else(not_found)?;
            Ok((StatusCode::OK, Some(shown(&found, &host.name))))
        }
        (&Method::PUT, [_, name]) => {
            let arguments = read(host.queue(name), name, &object(&call.body)?)?;
            made(declare(host, name, arguments).await?)
        }
        (&Method::DELETE, [_, name]) => delete(host, name, &call.query).await,
        (&Method::DELETE, [_, name, "contents"]) => purge(host, name).await,
        (method, [_, name, "bindings"]) if is_read(method) => {
            describe(host, name).await?.ok_or_else(not_found)?;
            let destination = BindingDestination::Entity((*name).to_owned());
            bindings::list(host, None, Some(destination)).await
        }
        (_, [] | [_] | [_, _] | [_, _, "contents" | "bindings"]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// The queue of a name, if there is one.
async fn describe(host: &mut VirtualHost, name: &str) -> Result<Option<EntityInfo>, ShardError> {
    let path = name.to_owned();
    Ok(match host.shard.order(Order::Describe { path }).await? {
        Ok(Answer::Entity(info)) if info.queue.kind == EntityKind::Queue => Some(*info),
        _ => None,
    })
}

/// Makes a queue, or sees that the one of its name is the same. Returns whether it is new.
pub(super) async fn declare(
    host: &mut VirtualHost,
    name: &str,
    arguments: QueueArguments,
) -> Result<bool, Failure> {
    if let Some(found) = describe(host, name).await? {
        compare(&arguments, &found, &host.name)?;
        let path = name.to_owned();
        // Whatever it answers: a queue that has gone meanwhile was there when it was declared.
        let _ = host.shard.order(Order::Redeclare { path }).await?;
        return Ok(false);
    }
    let order = Order::Create {
        path: EntityPath::Queue(name.to_owned()),
        description: Box::new(EntityDescription {
            settings: arguments.settings(),
            store_only: StoreOnlyProperties {
                user_metadata: Some(arguments.metadata()),
                ..StoreOnlyProperties::default()
            },
            ..EntityDescription::default()
        }),
        rules: None,
    };
    match host.shard.order(order).await? {
        Ok(_) => Ok(true),
        Err(error) => match describe(host, name).await? {
            // Another client has made it meanwhile.
            Some(found) if matches!(error, EntityError::Exists(_)) => {
                compare(&arguments, &found, &host.name).map(|()| false)
            }
            _ => Err(host.refusal(&error)),
        },
    }
}

/// Whether a queue that is there is as it is declared.
pub(super) fn compare(
    arguments: &QueueArguments,
    found: &EntityInfo,
    vhost: &str,
) -> Result<(), Failure> {
    if found.queue.settings.exclusive {
        let queue = Resource::queue(&found.queue.path, vhost);
        let text = format!("cannot obtain exclusive access to locked {queue}");
        return Err(bad_request(text));
    }
    match arguments.difference(found, vhost) {
        Some(text) => Err(bad_request(text)),
        None => Ok(()),
    }
}

/// The arguments of a queue that is to be made.
pub(super) fn read(
    queue: Resource<'_>,
    name: &str,
    given: &Map<String, Json>,
) -> Result<QueueArguments, Failure> {
    if name.starts_with("amq.") {
        let reason = "Access refused.".to_owned();
        let status = StatusCode::UNAUTHORIZED;
        return Err(Failure::Refused((status, "not_authorised", reason)));
    }
    broker::check_path(name).map_err(|error| bad_request(error.to_string()))?;
    // Every queue is durable, whatever it says.
    flag(given, "durable")?;
    let auto_delete = flag(given, "auto_delete")?;
    let arguments = match given.get("arguments") {
        None => Map::new(),
        Some(Json::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(bad_request("arguments should be an object")),
    };
    let arguments = QueueArguments::read(arguments, queue).map_err(bad_request)?;
    if auto_delete && arguments.kind() != "classic" {
        let text = format!("invalid property 'auto-delete' for {queue}");
        return Err(bad_request(text));
    }
    Ok(arguments.with_auto_delete(auto_delete))
}

fn shown(info: &EntityInfo, vhost: &str) -> Json {
    let queue = &info.queue;
    let arguments = QueueArguments::of(info);
    let applied = queue.policy.as_deref().cloned().unwrap_or_default();
    let limit = queue.settings.max_delivery_count;
    let limit = (limit != u32::MAX).then(|| limit.saturating_sub(1));
    json!({
        "name": queue.path,
        "vhost": vhost,
        "type": arguments.kind(),
        "durable": true,
        "auto_delete": queue.settings.auto_delete,
        "exclusive": queue.settings.exclusive,
        "arguments": arguments.entries(),
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

async fn delete(host: &mut VirtualHost, name: &str, query: &str) -> Answered {
    let found = describe(host, name).await?.ok_or_else(not_found)?;
    let queue = &found.queue;
    // Messages that RabbitMQ does not know are messages too.
    let counts = [
        queue.active,
        queue.scheduled,
        queue.deferred,
        queue.dead_letter,
        queue.transfer,
        queue.transfer_dead_letter,
    ];
    let is_empty = counts.iter().all(|count| *count == 0);
    if has_flag(query, "if-empty") && !is_empty {
        return Err(bad_request(format!("{} not empty", host.queue(name))));
    }
    if has_flag(query, "if-unused") && found.queue.receivers > 0 {
        return Err(bad_request(format!("{} in use", host.queue(name))));
    }
    let path = name.to_owned();
    let removed = host.shard.order(Order::Remove { path }).await?;
    removed.map_err(|error| host.refusal(&error))?;
    Ok((StatusCode::NO_CONTENT, None))
}

/// Deletes the messages that are available now.
async fn purge(host: &mut VirtualHost, name: &str) -> Answered {
    let found = describe(host, name).await?.ok_or_else(not_found)?;
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
    let deleted = host.shard.ask(command, |output| match output {
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

    #[test]
    fn names_of_rabbitmq_and_wrong_flags_are_refused() {
        let refusal = |name: &str, given: Json| match read(
            Resource::queue(name, "/"),
            name,
            given.as_object().unwrap(),
        ) {
            Err(Failure::Refused((status, _, reason))) => (status.as_u16(), reason),
            _ => (200, String::new()),
        };
        let refused = (401, "Access refused.".to_owned());
        assert_eq!(refusal("amq.x", json!({})), refused);
        let flag = (400, "[\"not_boolean\",\"x\"]".to_owned());
        assert_eq!(refusal("q", json!({"durable": "x"})), flag);
        let quorum = json!({"auto_delete": true, "arguments": {"x-queue-type": "quorum"}});
        assert_eq!(refusal("q", quorum).0, 400);
        assert_eq!(refusal("a//b", json!({})).0, 400);
        let why = "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}";
        let arguments = json!({"arguments": {"x-expires": 0}});
        assert_eq!(refusal("q", arguments), (400, why.to_owned()));
        assert_eq!(refusal("q", json!({"durable": false})).0, 200);
        assert_eq!(refusal("q", json!({"durable": "true"})).0, 200);
        let kept = json!({"auto_delete": "true", "arguments": {"x-queue-type": "quorum"}});
        assert_eq!(refusal("q", kept).0, 400);
    }
}
