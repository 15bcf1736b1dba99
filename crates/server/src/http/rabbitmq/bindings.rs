//! `/api/bindings`: bindings as RabbitMQ shows them, made and deleted. (docs/spec/rabbitmq.md#13)
//!
//! One that is between the same source and destination as others is told from them by its
//! properties key: the routing key, percent-encoded, and a hash of the arguments, if it has any.

use broker::{
    Answer, Binding, BindingDestination, DEFAULT_ROUTER, EntityError, Order, RouterAnswer,
    RouterError, RouterOrder,
};
use hyper::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map as Object, Value as Json, json};

use super::exchanges::{arguments, name_in, shown_arguments};
use super::virtual_hosts::VirtualHost;
use super::{Answered, Call, Failure, bad_request, is_read, not_found, object};
use crate::shard::shard_client::ShardError;

/// What a properties key has instead of nothing, and before a hash.
const MARK: char = '~';
/// What is not encoded in a properties key.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Answers a request for all bindings, for those between two ends, or for one of these.
pub(super) async fn handle(host: &mut VirtualHost, call: &Call, rest: &[&str]) -> Answered {
    let ends = match rest {
        [] | [_] if is_read(&call.method) => return list(host, None, None).await,
        [_, "e", source, kind @ ("q" | "e"), name, ..] => {
            (name_in(source).to_owned(), destination(kind, name))
        }
        [] | [_] => return Err(super::not_allowed()),
        _ => return Err(not_found()),
    };
    match (&call.method, &rest[5..]) {
        (method, []) if is_read(method) => list(host, Some(ends.0), Some(ends.1)).await,
        (&Method::POST, []) => {
            bind(host, read(ends, &object(&call.body)?)?).await?;
            Ok((StatusCode::CREATED, None))
        }
        (method, [key]) if is_read(method) => {
            let found = find(host, ends, key).await?;
            Ok((StatusCode::OK, Some(shown(&found, &host.name))))
        }
        (&Method::DELETE, [key]) => {
            let found = Box::new(find(host, ends, key).await?);
            let order = Order::Router(RouterOrder::Unbind(found));
            let done = host.shard.order(order).await?;
            done.map_err(|error| host.refusal(&error))?;
            Ok((StatusCode::NO_CONTENT, None))
        }
        (_, [] | [_]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// Where a binding is found that a request makes: its path, seen from that of the request.
pub(super) fn location(call: &Call) -> Option<String> {
    let ["bindings", _, "e", source, kind @ ("q" | "e"), name] =
        *call.segments.iter().map(String::as_str).collect::<Vec<_>>()
    else {
        return None;
    };
    if call.method != Method::POST {
        return None;
    }
    let ends = (source.to_owned(), destination(kind, name));
    let binding = read(ends, &object(&call.body).ok()?).ok()?;
    // The key, which is encoded, is encoded once more as a part of a path.
    let key = properties_key(&binding);
    let [name, key] = [name, &key].map(|part| utf8_percent_encode(part, ENCODED));
    Some(format!("{name}/{key}"))
}

fn destination(kind: &str, name: &str) -> BindingDestination {
    match kind {
        "q" => BindingDestination::Entity(name.to_owned()),
        _ => BindingDestination::Router(name_in(name).to_owned()),
    }
}

/// Answers with the bindings that have these ends, where they are named.
pub(super) async fn list(
    host: &mut VirtualHost,
    source: Option<String>,
    destination: Option<BindingDestination>,
) -> Answered {
    let found = all(host, source, destination).await?;
    Ok((
        StatusCode::OK,
        Some(found.iter().map(|it| shown(it, &host.name)).collect()),
    ))
}

/// The bindings that have these ends, where they are named.
pub(super) async fn all(
    host: &mut VirtualHost,
    source: Option<String>,
    destination: Option<BindingDestination>,
) -> Result<Vec<Binding>, ShardError> {
    let order = |skip, top| {
        Order::Router(RouterOrder::ListBindings {
            source: source.clone(),
            destination: destination.clone(),
            key: None,
            skip,
            top,
        })
    };
    let page = |answer| match answer {
        Answer::Router(RouterAnswer::Bindings(page)) => Some(page),
        _ => None,
    };
    host.shard.list(order, page).await
}

async fn find(
    host: &mut VirtualHost,
    (source, destination): (String, BindingDestination),
    key: &str,
) -> Result<Binding, Failure> {
    let all = all(host, Some(source), Some(destination)).await?;
    let found = all.into_iter().find(|it| properties_key(it) == key);
    found.ok_or_else(not_found)
}

/// Makes a binding; one that is there stays.
pub(super) async fn bind(host: &mut VirtualHost, binding: Binding) -> Result<(), Failure> {
    if binding.source == DEFAULT_ROUTER {
        return Err(host.router_refusal(&RouterError::Default));
    }
    let order = Order::Router(RouterOrder::Bind(Box::new(binding)));
    match host.shard.order(order).await? {
        Ok(_) => Ok(()),
        Err(EntityError::NotFound) => Err(not_found()),
        Err(error) => Err(host.refusal(&error)),
    }
}

fn read(
    (source, destination): (String, BindingDestination),
    given: &Object<String, Json>,
) -> Result<Binding, Failure> {
    let key = match given.get("routing_key") {
        None => "",
        Some(Json::String(key)) => key,
        Some(_) => return Err(bad_request("routing_key should be a text")),
    };
    Ok(Binding {
        source,
        destination,
        key: key.to_owned(),
        arguments: arguments(given)?,
    })
}

/// A binding as definitions have it.
pub(super) fn defined(given: &Object<String, Json>) -> Result<Binding, Failure> {
    let text = |name: &str| {
        let value = given.get(name).and_then(Json::as_str);
        value.ok_or_else(|| bad_request(format!("[{{key_missing,{name}}}]")))
    };
    let kind = match text("destination_type")? {
        "queue" => "q",
        "exchange" => "e",
        other => {
            let text = format!("destination_type '{other}': it is queue or exchange");
            return Err(bad_request(text));
        }
    };
    let ends = (
        text("source")?.to_owned(),
        destination(kind, text("destination")?),
    );
    read(ends, given)
}

/// By which a binding is told from others of the same ends.
fn properties_key(binding: &Binding) -> String {
    let key = utf8_percent_encode(&binding.key, ENCODED);
    match rabbitmq::argument_hash(&binding.arguments).as_str() {
        "" if binding.key.is_empty() => MARK.to_string(),
        "" => key.to_string(),
        hash => format!("{key}{MARK}{hash}"),
    }
}

/// A binding as lists have it.
fn shown(binding: &Binding, vhost: &str) -> Json {
    let mut shown = definition(binding, vhost);
    shown["properties_key"] = json!(properties_key(binding));
    shown
}

/// A binding as definitions have it.
pub(super) fn definition(binding: &Binding, vhost: &str) -> Json {
    let (kind, destination) = match &binding.destination {
        BindingDestination::Entity(name) => ("queue", name),
        BindingDestination::Router(name) => ("exchange", name),
    };
    json!({
        "source": binding.source,
        "vhost": vhost,
        "destination": destination,
        "destination_type": kind,
        "routing_key": binding.key,
        "arguments": shown_arguments(&binding.arguments),
    })
}

#[cfg(test)]
mod tests {
    use amqp::Value;

    use super::*;

    #[test]
    fn a_binding_is_told_by_its_encoded_key_and_a_hash_of_its_arguments() {
        let key = |key: &str, arguments: &[(&str, i64)]| {
            let arguments = arguments.iter();
            let arguments = arguments.map(|(key, value)| ((*key).to_owned(), Value::Long(*value)));
            properties_key(&Binding {
                source: "x".to_owned(),
                destination: BindingDestination::Entity("q".to_owned()),
                key: key.to_owned(),
                arguments: arguments.collect(),
            })
        };
        assert_eq!(key("", &[]), "~");
        assert_eq!(key("a/b.c", &[]), "a%2Fb.c");
        let hash = key("", &[("n", 1)]);
        assert!(hash.starts_with('~') && hash.len() == 9, "{hash}");
        assert_ne!(hash, key("", &[("n", 2)]));
        assert_eq!(
            key("k", &[("n", 1), ("m", 2)]),
            key("k", &[("m", 2), ("n", 1)])
        );
    }
}
