//! Denied: what a request is answered whose caller may not manage. (docs/spec/admin.md#2.5)
//!
//! The token is good, but has not the Manage right. Each kind of resource has its own text; for
//! subscriptions and rules it stands in the status line too. Whether a queue or topic exists is
//! looked at before the right to read it, as in the cloud; nothing else of it is told.

use http::{Method, StatusCode};

use crate::error::Error;
use crate::resource::Resource;

/// What a caller without the right is told.
pub(super) struct Denial {
    pub error: Error,
    /// Whether the text is the reason phrase of the status line too.
    pub is_reason_phrase: bool,
}

/// The answer to a request for a resource; `endpoint` is its address with `sb` as scheme.
pub(super) fn denial(
    method: &Method,
    resource: &Resource,
    endpoint: &str,
    tracking: &str,
) -> Denial {
    let Some(operation) = operation(method, resource) else {
        let text = match *method {
            Method::PUT => "Authorization failed for specified action: Manage,EntityWrite.",
            Method::DELETE => "Authorization failed for specified action: Manage,EntityDelete.",
            _ => "Manage,EntityRead claims required for this operation.",
        };
        return Denial {
            error: Error::new(StatusCode::UNAUTHORIZED, None, text),
            is_reason_phrase: false,
        };
    };
    let text = format!(
        "SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation on \
         endpoint '{endpoint}'. Tracking Id: {tracking}_G2"
    );
    Denial {
        error: Error::new(StatusCode::UNAUTHORIZED, None, text),
        is_reason_phrase: true,
    }
}

/// The name of an operation on subscriptions and rules.
fn operation(method: &Method, resource: &Resource) -> Option<&'static str> {
    let [read, write, delete] = match resource {
        Resource::Subscriptions { .. } => ["EnumerateSubscriptions"; 3],
        Resource::Subscription { .. } => [
            "GetSubscription",
            "CreateOrUpdateSubscription",
            "DeleteSubscription",
        ],
        Resource::Rules { .. } => ["EnumerateRules"; 3],
        Resource::Rule { .. } => ["GetRule", "CreateOrUpdateRule", "DeleteRule"],
        Resource::Namespace
        | Resource::Queues
        | Resource::Topics
        | Resource::Entity { .. }
        | Resource::Reserved { .. }
        | Resource::Other => return None,
    };
    Some(match *method {
        Method::PUT => write,
        Method::DELETE => delete,
        _ => read,
    })
}
