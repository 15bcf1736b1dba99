//! Exchanges: they are declared and deleted. (docs/spec/rabbitmq.md#6.1, #6.3)

use amqp::{Map, Value};
use broker::{
    Answer, EntityError, Order, Resource, RouterDifference, RouterError, RouterKind, RouterOrder,
    RouterSettings,
};
use dialect::LinkContext;

use crate::address;
use crate::links::Links;
use crate::management::request::Request;
use crate::management::response::Response;
use crate::management::{Operation, Step};
use crate::rights::Permission;
use crate::virtual_host::VirtualHost;

const ALTERNATE: &str = "alternate-exchange";

/// The response to an order about an exchange or a binding.
pub(super) fn answer(result: Result<Answer, EntityError>, host: &VirtualHost) -> Response {
    match result {
        Ok(_) => Response::no_content(),
        Err(EntityError::Router(error)) => refusal(&error, host),
        Err(error) => Response::new(400, error.to_string()),
    }
}

/// The response to a removal; what is not there is removed already.
pub(super) fn removed(result: Result<Answer, EntityError>, host: &VirtualHost) -> Response {
    match result {
        Err(EntityError::Router(RouterError::NotFound(_))) => Response::no_content(),
        result => answer(result, host),
    }
}

/// The response to an order that is refused.
pub(super) fn refusal(error: &RouterError, host: &VirtualHost) -> Response {
    let (status, text) = router_refusal(error, host.name());
    Response::new(status, text)
}

/// RabbitMQ's status and text of a refusal, as its management over AMQP has them.
#[must_use]
pub fn router_refusal(error: &RouterError, virtual_host: &str) -> (u16, String) {
    let exchange = |name| Resource::exchange(name, virtual_host);
    match error {
        RouterError::NotFound(name) => (400, format!("no {}", exchange(name))),
        RouterError::NoDestination(name) => {
            (400, format!("no {}", Resource::queue(name, virtual_host)))
        }
        RouterError::Default => {
            let text = "operation not permitted on the default exchange";
            (403, text.to_owned())
        }
        RouterError::Reserved(name) => {
            let exchange = exchange(name);
            (
                403,
                format!("{exchange} starts with reserved prefix 'amq.'"),
            )
        }
        RouterError::Different { name, difference } => {
            let (what, given, current) = differing(difference);
            let exchange = exchange(name);
            let text = format!(
                "inequivalent arg '{what}' for {exchange}: received {given} but current is \
                 {current}"
            );
            (409, text)
        }
        RouterError::TopicExists(name) => {
            let exchange = exchange(name);
            (409, format!("the name of {exchange} is that of a topic"))
        }
        RouterError::Match(value) => {
            let text = format!(
                "Invalid x-match field value <<\"{value}\">>; expected all, any, all-with-x, or \
                 any-with-x"
            );
            (400, text)
        }
        other => (400, other.to_string()),
    }
}

/// The name of a property, its value in the declaration and the present one.
fn differing(difference: &RouterDifference) -> (&'static str, String, String) {
    let flags =
        |what, given: &bool, current: &bool| (what, format!("'{given}'"), format!("'{current}'"));
    match difference {
        RouterDifference::Kind { given, current } => {
            ("type", format!("'{given}'"), format!("'{current}'"))
        }
        RouterDifference::Durable { given, current } => flags("durable", given, current),
        RouterDifference::AutoDelete { given, current } => flags("auto_delete", given, current),
        RouterDifference::Internal { given, current } => flags("internal", given, current),
        RouterDifference::Alternate { given, current } => {
            let both = given.is_some() && current.is_some();
            let text = |name: &Option<String>| match name {
                Some(name) if both => format!("'{name}'"),
                Some(name) => format!("the value '{name}' of type 'longstr'"),
                None => "none".to_owned(),
            };
            (ALTERNATE, text(given), text(current))
        }
    }
}

impl Links {
    pub(super) fn declare_exchange(
        &self,
        cx: &LinkContext<'_>,
        segment: &str,
        request: &Request,
    ) -> (Operation, Step) {
        let refused = |response: Response| (Operation::Router, response.into());
        let Some(name) = address::decoded(segment) else {
            return refused(Response::new(400, format!("bad exchange name '{segment}'")));
        };
        let exchange = self.virtual_host.exchange(&name);
        if let Some(error) = self.deny(cx, Permission::Configure, "", exchange) {
            return (Operation::Router, Step::End(error));
        }
        let Some(Value::Map(body)) = &request.body else {
            return refused(Response::new(400, "the body of an exchange is a map"));
        };
        match exchange_settings(body) {
            Ok(settings) => {
                let settings = Box::new(settings);
                let order = Order::Router(RouterOrder::Declare { name, settings });
                (Operation::Router, Step::Order(order))
            }
            Err(text) => refused(Response::new(400, text)),
        }
    }

    pub(super) fn delete_exchange(&self, cx: &LinkContext<'_>, segment: &str) -> (Operation, Step) {
        let Some(name) = address::decoded(segment) else {
            let response = Response::new(400, format!("bad exchange name '{segment}'"));
            return (Operation::Router, response.into());
        };
        let exchange = self.virtual_host.exchange(&name);
        if let Some(error) = self.deny(cx, Permission::Configure, "", exchange) {
            return (Operation::Router, Step::End(error));
        }
        let order = Order::Router(RouterOrder::Remove { name });
        (Operation::Removal, Step::Order(order))
    }
}

/// What an exchange is declared as.
///
/// # Errors
/// Names what cannot be, as RabbitMQ does.
pub fn exchange_settings(body: &Map) -> Result<RouterSettings, String> {
    let mut settings = RouterSettings::new(RouterKind::Direct);
    for (key, value) in body {
        let key = key.as_text().unwrap_or_default();
        match (key, value) {
            ("durable", Value::Bool(it)) => settings.durable = *it,
            ("auto_delete", Value::Bool(it)) => settings.auto_delete = *it,
            ("internal", Value::Bool(it)) => settings.internal = *it,
            ("type", Value::String(text)) => {
                let mut kinds = RouterKind::ALL.into_iter();
                let kind = kinds.find(|kind| kind.name() == text);
                settings.kind = kind.ok_or_else(|| format!("invalid exchange type '{text}'"))?;
            }
            ("arguments", Value::Map(arguments)) => {
                let mut arguments = texts(arguments)?;
                if let Some(place) = arguments.iter().position(|(key, _)| key == ALTERNATE) {
                    let (_, name) = arguments.remove(place);
                    let name = name.as_text().ok_or("invalid alternate-exchange")?;
                    settings.alternate = Some(name.to_owned());
                }
                settings.arguments = arguments;
            }
            _ => {
                return Err(format!(
                    "bad exchange property {{{{utf8,<<\"{key}\">>}},{value:?}}}"
                ));
            }
        }
    }
    Ok(settings)
}

/// Arguments by their names.
pub(super) fn texts(map: &Map) -> Result<Vec<(String, Value)>, String> {
    let entries = map.iter().map(|(key, value)| {
        let key = key.as_text().ok_or("a key of the arguments is no text")?;
        Ok((key.to_owned(), value.clone()))
    });
    entries.collect()
}
