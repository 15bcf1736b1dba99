//! `/$railbus/policies`: policies and operator policies, in the shape of our own files.
//!
//! `GET` shows all of them by layer, or the one of a path (`/$railbus/policies/user/ttl`). `PUT`
//! puts a policy in the place of the one of its name, and `DELETE` takes it away. Both hold at
//! once. (docs/spec/rabbitmq.md#13)

use std::sync::Arc;

use broker::{Answer, EntityError, Order, Policy, PolicyLayer};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::namespaces::namespace::list_policies;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};

const PREFIX: &str = "/$railbus/policies";
/// More than any policy needs.
const BODY_BYTES: usize = 64 << 10;

/// Answers a request. The caller has the right to manage.
pub async fn respond(
    request: Request<Incoming>,
    path: &str,
    server: &Arc<NamespaceView>,
) -> Response {
    let at = match parse_path(path.strip_prefix(PREFIX).unwrap_or_default()) {
        Ok(at) => at,
        Err(text) => return answer::error(StatusCode::BAD_REQUEST, &text),
    };
    let method = request.method().clone();
    let order = match (at, method) {
        (Some((layer, name)), Method::DELETE) => Order::RemovePolicy { layer, name },
        (Some((layer, name)), Method::PUT) => {
            let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
                Ok(body) => body,
                Err(refusal) => return refusal,
            };
            match parse(&body, layer, name) {
                Ok(policy) => Order::PutPolicy(Box::new(policy)),
                Err(text) => return answer::error(StatusCode::BAD_REQUEST, &text),
            }
        }
        (at, _) => return answered(show(server, at).await),
    };
    answered(change(server, order).await)
}

fn answered(result: Result<(StatusCode, Json), ShardError>) -> Response {
    match result {
        Ok((status, json)) => answer::value(status, &json),
        Err(error) => answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// The policy that a path names; none if it names all of them.
fn parse_path(path: &str) -> Result<Option<(PolicyLayer, String)>, String> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(None);
    }
    let (layer, name) = path.split_once('/').unwrap_or((path, ""));
    let layer = serde_json::from_value(layer.into());
    let layer = layer.map_err(|_| "a policy is at /user/NAME or at /operator/NAME".to_owned())?;
    let name = percent_decode_str(name).decode_utf8();
    let name = name.map_err(|_| "the path is not UTF-8".to_owned())?;
    Ok(Some((layer, name.into_owned())))
}

fn parse(body: &[u8], layer: PolicyLayer, name: String) -> Result<Policy, String> {
    let mut json: Json =
        parse_object(body).map_err(|error| format!("the body is no policy: {error}"))?;
    if let Some(object) = json.as_object_mut() {
        object.insert("name".to_owned(), name.into());
        object.insert("layer".to_owned(), json!(layer));
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

async fn show(
    server: &NamespaceView,
    at: Option<(PolicyLayer, String)>,
) -> Result<(StatusCode, Json), ShardError> {
    let mut shard_client = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let Some((layer, name)) = at else {
        let mut all = list_policies(&mut shard_client, PolicyLayer::User).await?;
        all.extend(list_policies(&mut shard_client, PolicyLayer::Operator).await?);
        return Ok((StatusCode::OK, json!({ "policies": all })));
    };
    let policies = list_policies(&mut shard_client, layer).await?;
    let found = policies.into_iter().find(|policy| policy.name == name);
    Ok(match found {
        Some(policy) => (StatusCode::OK, json!(policy)),
        None => missing(layer, &name),
    })
}

async fn change(server: &NamespaceView, order: Order) -> Result<(StatusCode, Json), ShardError> {
    let shown = match &order {
        Order::PutPolicy(policy) => json!(policy),
        _ => json!({}),
    };
    let removed = match &order {
        Order::RemovePolicy { layer, name } => Some((*layer, name.clone())),
        _ => None,
    };
    let mut shard_client = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    Ok(match (shard_client.order(order).await?, removed) {
        (Ok(Answer::Put { is_new: true }), _) => (StatusCode::CREATED, shown),
        (Ok(_), _) => (StatusCode::OK, shown),
        (Err(EntityError::NotFound), Some((layer, name))) => missing(layer, &name),
        (Err(error @ EntityError::TooMany { .. }), _) => {
            (StatusCode::CONFLICT, json!({ "error": error.to_string() }))
        }
        (Err(error), _) => {
            let text = error.to_string();
            (StatusCode::BAD_REQUEST, json!({ "error": text }))
        }
    })
}

fn missing(layer: PolicyLayer, name: &str) -> (StatusCode, Json) {
    let text = format!("there is no {layer} '{name}'");
    (StatusCode::NOT_FOUND, json!({ "error": text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_all_policies_or_one() {
        assert_eq!(parse_path(""), Ok(None));
        assert_eq!(parse_path("/"), Ok(None));
        let operator = Some((PolicyLayer::Operator, "a/b".to_owned()));
        assert_eq!(parse_path("/operator/a%2Fb"), Ok(operator));
        assert!(parse_path("/nobody/a").is_err());
        assert!(parse_path("/user/%FF").is_err());
    }

    #[test]
    fn a_body_has_what_a_policy_has_and_nothing_else() {
        let parse = |body: &str| parse(body.as_bytes(), PolicyLayer::User, "p".to_owned());
        let policy = parse(r#"{"pattern": "^a", "definition": {"expires": 1}}"#).unwrap();
        assert_eq!((&*policy.name, &*policy.pattern), ("p", "^a"));
        assert!(parse(r#"{"pattern": "^a", "definition": {}, "x": 1}"#).is_err());
        assert!(parse(r#"{"pattern": "^a"}"#).is_err());
        assert!(parse("[]").is_err());
        assert!(parse("").is_err());
    }
}
