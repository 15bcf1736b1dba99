//! `/api/policies` and `/api/operator-policies`.

use broker::{Answer, ApplyTo, EntityError, Order, Policy, PolicyLayer};
use hyper::{Method, StatusCode};
use serde_json::{Map, Number, Value as Json, json};

use super::virtual_hosts::VirtualHost;
use super::{Answered, Call, Failure, bad_request, is_read, not_found, object};
use crate::namespaces::namespace::list_policies;

/// Answers a request for all policies of a layer, or for the one of a name.
pub(super) async fn handle(
    host: &mut VirtualHost,
    layer: PolicyLayer,
    call: &Call,
    rest: &[&str],
) -> Answered {
    match (&call.method, rest) {
        (method, [] | [_]) if is_read(method) => {
            let policies = list_policies(&mut host.shard, layer).await?;
            let known = policies.iter().filter(|policy| is_known(policy));
            let shown = known.map(|policy| Json::Object(shown(policy, &host.name)));
            Ok((StatusCode::OK, Some(shown.collect())))
        }
        (method, [_, name]) if is_read(method) => {
            let policies = list_policies(&mut host.shard, layer).await?;
            let found = policies.iter().find(|policy| policy.name == *name);
            let found = found.ok_or_else(not_found)?;
            Ok((StatusCode::OK, Some(Json::Object(shown(found, &host.name)))))
        }
        (&Method::PUT, [_, name]) => {
            let policy = parse(&object(&call.body)?, layer, name)?;
            let is_new = put(host, policy).await?;
            let status = if is_new {
                StatusCode::CREATED
            } else {
                StatusCode::NO_CONTENT
            };
            Ok((status, None))
        }
        (&Method::DELETE, [_, name]) => {
            let name = (*name).to_owned();
            let removed = host
                .shard
                .order(Order::RemovePolicy { layer, name })
                .await?;
            removed.map_err(|error| host.refusal(&error))?;
            Ok((StatusCode::NO_CONTENT, None))
        }
        (_, [] | [_] | [_, _]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// Puts a policy. Returns whether it is new.
pub(super) async fn put(host: &mut VirtualHost, policy: Policy) -> Result<bool, Failure> {
    let layer = policy.layer;
    match host.shard.order(Order::PutPolicy(Box::new(policy))).await? {
        Ok(answer) => Ok(answer == Answer::Put { is_new: true }),
        Err(EntityError::Invalid(text)) => Err(invalid(&text, layer)),
        Err(error) => Err(host.refusal(&error)),
    }
}

/// Whether RabbitMQ's tools know what a policy applies to. They refuse a whole list that has one of
/// topics or of subscriptions, which mean nothing to them.
pub(super) fn is_known(policy: &Policy) -> bool {
    !matches!(policy.apply_to, ApplyTo::Topics | ApplyTo::Subscriptions)
}

/// A policy as RabbitMQ shows it.
pub(super) fn shown(policy: &Policy, vhost: &str) -> Map<String, Json> {
    let shown = json!({
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
    });
    shown.as_object().cloned().unwrap_or_default()
}

/// Reads a policy. Keys that mean nothing are passed over, as RabbitMQ does.
pub(super) fn parse(
    given: &Map<String, Json>,
    layer: PolicyLayer,
    name: &str,
) -> Result<Policy, Failure> {
    let invalid = |text: &str| invalid(text, layer);
    let key = |key: &str| {
        let missing = || bad_request(format!("[{{key_missing,{key}}}]"));
        given.get(key).ok_or_else(missing)
    };
    let pattern = key("pattern")?;
    let Some(pattern) = pattern.as_str() else {
        let text = format!("pattern should be a binary but was {pattern}");
        return Err(invalid(&text));
    };
    let Json::Object(definition) = key("definition")? else {
        return Err(bad_request("definition should be an object"));
    };
    let priority = match given.get("priority") {
        None => Number::from(0),
        Some(Json::Number(number)) => number.clone(),
        Some(Json::String(text)) => {
            let text = format!("priority should be a number, actually was <<\"{text}\">>");
            return Err(invalid(&text));
        }
        Some(other) => {
            let text = format!("priority should be a number, actually was {other}");
            return Err(invalid(&text));
        }
    };
    let apply_to = match given.get("apply-to") {
        None => ApplyTo::All,
        Some(Json::String(text)) => ApplyTo::parse(text).map_err(|text| invalid(&text))?,
        Some(other) => return Err(invalid(&format!("apply-to '{other}' unrecognised"))),
    };
    Ok(Policy {
        name: name.to_owned(),
        layer,
        pattern: pattern.to_owned(),
        apply_to,
        priority,
        definition: definition.clone(),
    })
}

/// RabbitMQ escapes the texts about user policies, and leaves those about operator policies.
fn invalid(text: &str, layer: PolicyLayer) -> Failure {
    let text = match layer {
        PolicyLayer::User => text.replace('<', "&lt;").replace('>', "&gt;"),
        PolicyLayer::Operator => text.to_owned(),
    };
    bad_request(format!("Validation failed\n\n{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(body: &Json, layer: PolicyLayer) -> String {
        let parsed = parse(body.as_object().unwrap(), layer, "p");
        match parsed.map(|policy| policy.check()) {
            Ok(Ok(())) => "taken".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(Failure::Refused((_, _, reason))) => reason,
            Err(Failure::Shard(error)) => error.to_string(),
        }
    }

    fn check(body: &Json, expected: &str) {
        assert_eq!(reason(body, PolicyLayer::User), expected);
    }

    #[test]
    fn what_rabbitmq_takes_is_taken() {
        check(
            &json!({
                "pattern": "", "definition": {"max-length": 1}, "priority": 1.5, "vhost": "x",
                "name": "x", "nosuch": true, "apply-to": "streams",
            }),
            "taken",
        );
    }

    #[test]
    fn what_is_wrong_has_the_texts_of_rabbitmq() {
        check(&json!({"definition": {}}), "[{key_missing,pattern}]");
        check(&json!({"pattern": ""}), "[{key_missing,definition}]");
        let with = |more: Json| {
            let mut body = json!({"pattern": "", "definition": {"max-length": 1}});
            let more = more.as_object().cloned().unwrap();
            body.as_object_mut().unwrap().extend(more);
            body
        };
        let wrapped = |text: &str| format!("Validation failed\n\n{text}\n");
        check(
            &with(json!({"pattern": 3})),
            &wrapped("pattern should be a binary but was 3"),
        );
        let priority = "priority should be a number, actually was <<\"3\">>";
        let escaped = "priority should be a number, actually was &lt;&lt;\"3\"&gt;&gt;";
        check(&with(json!({"priority": "3"})), &wrapped(escaped));
        assert_eq!(
            reason(&with(json!({"priority": "3"})), PolicyLayer::Operator),
            wrapped(priority)
        );
        check(
            &with(json!({"apply-to": "x"})),
            &wrapped(
                "apply-to 'x' unrecognised; should be one of: 'queues', 'classic_queues',  \
                 'quorum_queues', 'streams', 'exchanges', or 'all'",
            ),
        );
        let defined = |definition: Json| with(json!({ "definition": definition }));
        check(&defined(json!({})), "no policy provided");
        check(
            &defined(json!({"message-ttl": -1})),
            "-1 is not a valid message TTL",
        );
        check(
            &defined(json!({"message-ttl": "1"})),
            "<<\"1\">> is not a valid message TTL",
        );
        check(
            &defined(json!({"expires": 0})),
            "0 is not a valid queue expiry",
        );
        check(
            &defined(json!({"overflow": "x"})),
            "<<\"x\">> is not a valid overflow value",
        );
        check(
            &defined(json!({"nosuch": 0})),
            "[{<<\"nosuch\">>,0}] are not recognised policy settings",
        );
        check(
            &defined(json!({"federation-upstream": "x"})),
            "federation-upstream: this broker does not support it yet",
        );
    }
}
