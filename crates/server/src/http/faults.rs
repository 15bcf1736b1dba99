//! `/$railbus/namespaces/NAME/faults`: the fault rules of a namespace.
//!
//! `GET` shows them with what each has done. `PUT` replaces all of them; a rule that stays as it is
//! goes on counting. `POST` adds one behind them. `DELETE` takes all of them away. They are not
//! stored.

use broker::{FaultDescription, FaultRule, NamespaceAnswer, NamespaceOrder};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::answer::{self, Response};
use super::body;
use super::namespaces::{ApiError, ask};
use crate::namespace_view::NamespaceView;
use crate::shard_client::{LocksAtEnd, ShardClient};

/// More than all rules of a namespace need.
const BODY_BYTES: usize = 256 << 10;

/// The body of a `PUT`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    faults: Vec<FaultRule>,
}

/// Answers a request about the rules of the namespace of a name. The caller has the right to manage
/// the default namespace.
pub async fn respond(request: Request<Incoming>, name: &str, server: &NamespaceView) -> Response {
    let name = name.to_owned();
    let order = match *request.method() {
        Method::PUT => read::<Wanted>(request, server)
            .await
            .map(|Wanted { faults: rules }| NamespaceOrder::ReplaceFaults { name, rules }),
        Method::POST => read(request, server)
            .await
            .map(|rule| NamespaceOrder::AddFault { name, rule }),
        Method::DELETE => Ok(NamespaceOrder::ReplaceFaults {
            name,
            rules: Vec::new(),
        }),
        _ => Ok(NamespaceOrder::ListFaults(name)),
    };
    let answered = match order {
        Ok(order) => carry_out(order, server).await,
        Err(refusal) => return refusal,
    };
    match answered {
        Ok(faults) => answer::value(StatusCode::OK, &faults),
        Err(error) => error.into(),
    }
}

async fn read<T: DeserializeOwned>(
    request: Request<Incoming>,
    server: &NamespaceView,
) -> Result<T, Response> {
    let body = body::read_own(request, BODY_BYTES, server.limits().handshake).await?;
    serde_json::from_slice(&body).map_err(|error| {
        let text = "the body is no fault rule, or no list of them";
        answer::error_quoting(StatusCode::BAD_REQUEST, text, &error.to_string())
    })
}

async fn carry_out(order: NamespaceOrder, server: &NamespaceView) -> Result<Json, ApiError> {
    let namespace = match &order {
        NamespaceOrder::ReplaceFaults { name, .. } | NamespaceOrder::AddFault { name, .. } => {
            Some(name.clone())
        }
        _ => None,
    };
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    match ask(&mut shard, order).await? {
        NamespaceAnswer::Faults(faults) => {
            if let Some(namespace) = namespace
                && !faults.is_empty()
            {
                warn_of_faults(&namespace, faults.len());
            }
            let shown = faults.iter().map(shown).collect::<Result<Vec<_>, _>>();
            let faults = shown.map_err(|_| ApiError::Unexpected)?;
            Ok(json!({ "faults": faults }))
        }
        _ => Err(ApiError::Unexpected),
    }
}

/// Tells the operator's log of the rules that a namespace has from now on.
pub fn warn_of_faults(namespace: &str, count: usize) {
    tracing::warn!(namespace, "{count} fault rules: operations fail on purpose");
}

fn shown(fault: &FaultDescription) -> serde_json::Result<Json> {
    let mut shown = serde_json::to_value(&fault.rule)?;
    shown["matched"] = fault.matched.into();
    shown["injected"] = fault.injected.into();
    Ok(shown)
}
