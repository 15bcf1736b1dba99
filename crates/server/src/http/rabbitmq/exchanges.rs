//! `/api/exchanges`: exchanges as RabbitMQ shows them, declared and deleted.
//! (docs/spec/rabbitmq.md#13)
//!
//! The default exchange, whose name is empty, is `amq.default` in paths.

use amqp::{Map, Value};
use broker::{
    Answer, BindingDestination, DEFAULT_ROUTER, EntityError, Order, Resource, RouterAnswer,
    RouterError, RouterInfo, RouterOrder, RouterSettings,
};
use entity::rules::TypedValue;
use hyper::{Method, StatusCode};
use serde_json::{Map as Object, Value as Json, json};

use super::virtual_hosts::VirtualHost;
use super::{
    Answered, Call, Failure, bad_request, bindings, flag, has_flag, is_read, made, not_found,
    object,
};
use crate::shard::shard_client::ShardError;

/// The default exchange in paths.
const DEFAULT_IN_PATHS: &str = "amq.default";
/// The argument that names the exchange for what matches no binding.
const ALTERNATE: &str = "alternate-exchange";
/// What a declaration may say; anything else is passed over, as RabbitMQ does.
const PROPERTIES: [&str; 3] = ["durable", "auto_delete", "internal"];

/// Answers a request for all exchanges, or for the one of a name.
pub(super) async fn handle(host: &mut VirtualHost, call: &Call, rest: &[&str]) -> Answered {
    match (&call.method, rest) {
        (method, [] | [_]) if is_read(method) => {
            let all = list(host).await?;
            Ok((
                StatusCode::OK,
                Some(all.iter().map(|it| shown(it, &host.name)).collect()),
            ))
        }
        (method, [_, name]) if is_read(method) => {
            let found = describe(host, name_in(name)).await?;
            Ok((
                StatusCode::OK,
                Some(shown(&found.ok_or_else(not_found)?, &host.name)),
            ))
        }
        (&Method::PUT, [_, name]) => {
            let settings = read(&object(&call.body)?)?;
            made(declare(host, name_in(name), settings).await?)
        }
        (&Method::DELETE, [_, name]) => delete(host, name_in(name), &call.query).await,
        (method, [_, name, "bindings", end]) if is_read(method) => {
            let name = name_in(name).to_owned();
            describe(host, &name).await?.ok_or_else(not_found)?;
            match *end {
                "source" => bindings::list(host, Some(name), None).await,
                "destination" => {
                    let destination = BindingDestination::Router(name);
                    bindings::list(host, None, Some(destination)).await
                }
                _ => Err(not_found()),
            }
        }
        (_, [] | [_] | [_, _] | [_, _, "bindings", _]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// An exchange's name, of which a path has this.
pub(super) fn name_in(segment: &str) -> &str {
    match segment {
        DEFAULT_IN_PATHS => DEFAULT_ROUTER,
        name => name,
    }
}

/// All exchanges, in the order of their names.
pub(super) async fn list(host: &mut VirtualHost) -> Result<Vec<RouterInfo>, ShardError> {
    let order = |skip, top| Order::Router(RouterOrder::List { skip, top });
    let page = |answer| match answer {
        Answer::Router(RouterAnswer::Routers(page)) => Some(page),
        _ => None,
    };
    host.shard.list(order, page).await
}

async fn describe(host: &mut VirtualHost, name: &str) -> Result<Option<RouterInfo>, ShardError> {
    let name = name.to_owned();
    let order = Order::Router(RouterOrder::Describe { name });
    Ok(match host.shard.order(order).await? {
        Ok(Answer::Router(RouterAnswer::Router(info))) => Some(*info),
        _ => None,
    })
}

/// Makes an exchange, or sees that the one of its name is the same. Returns whether it is new.
pub(super) async fn declare(
    host: &mut VirtualHost,
    name: &str,
    settings: RouterSettings,
) -> Result<bool, Failure> {
    let is_new = describe(host, name).await?.is_none();
    let order = RouterOrder::Declare {
        name: name.to_owned(),
        settings: Box::new(settings),
    };
    match host.shard.order(Order::Router(order)).await? {
        Ok(_) => Ok(is_new),
        Err(error) => Err(host.refusal(&error)),
    }
}

/// What an exchange is declared as. What it does not say is false, and a direct exchange.
pub(super) fn read(given: &Object<String, Json>) -> Result<RouterSettings, Failure> {
    let text = |text: &str| Value::from(text);
    let mut body = Map::new();
    for property in PROPERTIES {
        body.push((text(property), Value::Bool(flag(given, property)?)));
    }
    match given.get("type") {
        None => {}
        Some(Json::String(kind)) => body.push((text("type"), text(kind))),
        Some(_) => return Err(bad_request("type should be a text")),
    }
    let arguments = arguments(given)?.into_iter();
    let arguments = arguments.map(|(key, value)| (Value::String(key), value));
    body.push((text("arguments"), Value::Map(arguments.collect())));
    rabbitmq::exchange_settings(&body).map_err(bad_request)
}

/// The arguments of an exchange or a binding: texts, numbers, true and false.
pub(super) fn arguments(given: &Object<String, Json>) -> Result<Vec<(String, Value)>, Failure> {
    let arguments = match given.get("arguments") {
        None => return Ok(Vec::new()),
        Some(Json::Object(arguments)) => arguments,
        Some(_) => return Err(bad_request("arguments should be an object")),
    };
    let read = arguments.iter().map(|(key, value)| {
        let value: Result<TypedValue, _> = serde_json::from_value(value.clone());
        let value = value.map_err(|error| bad_request(format!("argument '{key}': {error}")))?;
        Ok((key.clone(), value.0))
    });
    read.collect()
}

/// Arguments as they are shown.
pub(super) fn shown_arguments(arguments: &[(String, Value)]) -> Object<String, Json> {
    let shown = arguments.iter().map(|(key, value)| {
        let value = serde_json::to_value(TypedValue(value.clone()));
        (key.clone(), value.unwrap_or_default())
    });
    shown.collect()
}

/// An exchange as lists and definitions have it.
pub(super) fn shown(info: &RouterInfo, vhost: &str) -> Json {
    let settings = &info.settings;
    let mut arguments = shown_arguments(&settings.arguments);
    if let Some(alternate) = &settings.alternate {
        arguments.insert(ALTERNATE.to_owned(), json!(alternate));
    }
    json!({
        "name": info.name,
        "vhost": vhost,
        "type": settings.kind.name(),
        "durable": settings.durable,
        "auto_delete": settings.auto_delete,
        "internal": settings.internal,
        "arguments": arguments,
    })
}

async fn delete(host: &mut VirtualHost, name: &str, query: &str) -> Answered {
    let found = describe(host, name).await?.ok_or_else(not_found)?;
    if has_flag(query, "if-unused") && found.bindings > 0 {
        let exchange = Resource::exchange(name, &host.name);
        return Err(bad_request(format!("{exchange} in use")));
    }
    let name = name.to_owned();
    let order = Order::Router(RouterOrder::Remove { name });
    match host.shard.order(order).await? {
        Ok(_) => Ok((StatusCode::NO_CONTENT, None)),
        Err(EntityError::Router(RouterError::NotFound(_))) => Err(not_found()),
        Err(error) => Err(host.refusal(&error)),
    }
}

#[cfg(test)]
mod tests {
    use broker::RouterKind;

    use super::*;

    #[test]
    fn a_declaration_is_read_and_what_cannot_be_is_named() {
        let reason = |given: Json| match read(given.as_object().unwrap()) {
            Err(Failure::Refused((_, _, reason))) => reason,
            other => panic!("it is refused, not {:?}", other.ok()),
        };
        assert_eq!(reason(json!({"type": "x"})), "invalid exchange type 'x'");
        assert_eq!(
            reason(json!({"durable": "yes"})),
            "[\"not_boolean\",\"yes\"]"
        );
        assert_eq!(
            reason(json!({"arguments": []})),
            "arguments should be an object"
        );
        let given = json!({
            "type": "topic", "durable": "true", "internal": "false", "anything": [1],
            "arguments": {"alternate-exchange": "other", "n": 5}
        });
        let Ok(settings) = read(given.as_object().unwrap()) else {
            panic!("it can be");
        };
        assert_eq!(settings.kind, RouterKind::Topic);
        assert!(settings.durable && !settings.internal);
        assert_eq!(settings.alternate.as_deref(), Some("other"));
        assert_eq!(settings.arguments, [("n".to_owned(), Value::Long(5))]);
    }
}
