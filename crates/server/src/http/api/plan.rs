//! `POST /$railbus/plan` and `/$railbus/apply`: the changes that make the namespace equal to a
//! file, shown or carried out.
//!
//! The body is `{"queues": [...], "topics": [...], "authoritative": false}`, in the shape of our
//! own files. Both answer with the changes and the refused ones; if any is refused, none is
//! applied.

use std::sync::Arc;

use broker::Tier;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::log::audit::Changes;
use crate::namespaces::apply;
use crate::namespaces::apply::ApplyMode;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};
use entity::fault;
use entity::plan::{DesiredNamespace, Plan};

/// Room for the rules of a topic that has as many as can be.
const BODY_BYTES: usize = 64 << 20;

/// Answers a request. The caller has the right to manage.
pub async fn respond(
    request: Request<Incoming>,
    server: &Arc<NamespaceView>,
    mode: ApplyMode,
) -> Response {
    let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let wanted = match parse(&body, server.admin.tier) {
        Ok(wanted) => wanted,
        Err(message) => return answer::error(StatusCode::BAD_REQUEST, &message),
    };
    match work(server, &wanted, mode).await {
        Ok((status, plan)) => {
            let changes = plan.changes.iter().map(ToString::to_string).collect();
            let mut response = answer::value(status, &plan);
            response.extensions_mut().insert(Changes(changes));
            response
        }
        Err(error) => answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

fn parse(body: &[u8], tier: Tier) -> Result<DesiredNamespace, String> {
    let mut wanted: DesiredNamespace = parse_object(body)
        .map_err(|error| format!("the body is not an object with queues and topics: {error}"))?;
    let checked = fault::check(&wanted.queues, &wanted.topics)
        .and_then(|()| fault::admit(tier, &mut wanted.queues, &wanted.topics));
    match checked {
        Ok(()) => Ok(wanted),
        Err(fault) => Err(fault.message),
    }
}

async fn work(
    server: &NamespaceView,
    wanted: &DesiredNamespace,
    mode: ApplyMode,
) -> Result<(StatusCode, Plan), ShardError> {
    let mut shard_client = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let plan = apply::apply(&mut shard_client, wanted, mode).await?;
    let status = match mode {
        ApplyMode::Apply if !plan.refused.is_empty() => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    Ok((status, plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: Result<(usize, usize), &str>) {
        let parsed = parse(body.as_bytes(), Tier::Standard);
        let parsed = parsed.map(|wanted| (wanted.queues.len(), wanted.topics.len()));
        match (parsed, expected) {
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (parsed, expected) => assert_eq!(parsed, expected.map_err(str::to_owned), "{body}"),
        }
    }

    #[test]
    fn a_body_is_what_a_file_says() {
        check("{}", Ok((0, 0)));
        check(
            r#"{"queues": [{"name": "a"}], "topics": [{"name": "b"}], "authoritative": true}"#,
            Ok((1, 1)),
        );
    }

    #[test]
    fn what_no_file_could_say_is_refused() {
        check("", Err("not an object with queues and topics"));
        check("5", Err("not an object with queues and topics"));
        check(r#"{"queue": []}"#, Err("unknown field `queue`"));
        check(
            r#"{"queues": [{"name": "a", "lock-duration": "PT1H"}]}"#,
            Err("PT1H is above the maximum of PT5M"),
        );
        check(
            r#"{"queues": [{"name": "a"}, {"name": "A"}]}"#,
            Err("the queue `A` is there already"),
        );
        check(
            r#"{"queues": [{"name": "a"}], "topics": [{"name": "A"}]}"#,
            Err("the entity `A` is there already"),
        );
        check(
            &"[".repeat(100_000),
            Err("not an object with queues and topics"),
        );
    }
}
