//! Bindings: they are made, listed and removed. (docs/spec/rabbitmq.md#6.1, #6.4)
//!
//! A binding's place is its path: source, destination and key, and a hash of its arguments, by
//! which one with arguments is found again among those that differ in nothing else.

use amqp::{Map, Value, encode};
use broker::{
    Answer, Binding, BindingDestination, EntityError, MAX_BINDINGS, Order, RouterAnswer,
    RouterOrder,
};
use bytes::BytesMut;
use dialect::LinkContext;

use crate::address::{self, encoded};
use crate::links::Links;
use crate::management::exchanges::{refusal, texts};
use crate::management::request::Request;
use crate::management::response::Response;
use crate::management::{Operation, Step};
use crate::rights::Permission;
use crate::virtual_host::VirtualHost;

/// Most bindings of one list.
const MAX_LISTED: usize = 1_000;

/// The parts of a binding's path.
#[derive(Debug)]
pub(super) struct Place {
    source: String,
    destination: BindingDestination,
    key: String,
    /// The hash of the arguments, empty without any.
    hash: String,
}

/// Lists the bindings of a query.
pub(super) fn list(request: &Request) -> (Operation, Step) {
    match Place::read(&request.query, '&') {
        Ok(place) => {
            let step = Step::Order(listing(&place, MAX_LISTED));
            (Operation::ListBindings, step)
        }
        Err(text) => (Operation::Router, Response::new(400, text).into()),
    }
}

fn listing(place: &Place, top: usize) -> Order {
    Order::Router(RouterOrder::ListBindings {
        source: Some(place.source.clone()),
        destination: Some(place.destination.clone()),
        key: Some(place.key.clone()),
        skip: 0,
        top,
    })
}

/// The response to a list.
pub(super) fn listed(result: Result<Answer, EntityError>, host: &VirtualHost) -> Response {
    match result {
        Ok(Answer::Router(RouterAnswer::Bindings(page))) => {
            Response::with(200, Value::List(page.items.iter().map(shown).collect()))
        }
        Ok(_) => Response::with(200, Value::List(Vec::new())),
        Err(EntityError::Router(error)) => refusal(&error, host),
        Err(error) => Response::new(400, error.to_string()),
    }
}

/// What follows when the bindings are known of which one is to be removed.
pub(super) fn remove_listed(
    hash: &str,
    result: Result<Answer, EntityError>,
    host: &VirtualHost,
) -> Step {
    match result {
        Ok(Answer::Router(RouterAnswer::Bindings(page))) => {
            let mut found = page.items.into_iter();
            match found.find(|binding| argument_hash(&binding.arguments) == hash) {
                Some(binding) => Step::Order(Order::Router(RouterOrder::Unbind(Box::new(binding)))),
                None => Response::no_content().into(),
            }
        }
        Err(EntityError::Router(error)) => refusal(&error, host).into(),
        _ => Response::no_content().into(),
    }
}

impl Links {
    pub(super) fn bind(&self, cx: &LinkContext<'_>, request: &Request) -> (Operation, Step) {
        let refused = |text: String| (Operation::Router, Response::new(400, text).into());
        let Some(Value::Map(body)) = &request.body else {
            return refused("the body of a binding is a map".to_owned());
        };
        let binding = match read(body) {
            Ok(binding) => binding,
            Err(text) => return refused(text),
        };
        if let Some(error) = self.deny_binding(cx, &binding.source, &binding.destination) {
            return (Operation::Router, Step::End(error));
        }
        if let Some(response) = self.locked(cx, &binding.destination) {
            return (Operation::Router, response.into());
        }
        let order = Order::Router(RouterOrder::Bind(Box::new(binding)));
        (Operation::Router, Step::Order(order))
    }

    pub(super) fn unbind(&self, cx: &LinkContext<'_>, segment: &str) -> (Operation, Step) {
        let place = match Place::read(segment, ';') {
            Ok(place) => place,
            Err(text) => return (Operation::Router, Response::new(400, text).into()),
        };
        if let Some(error) = self.deny_binding(cx, &place.source, &place.destination) {
            return (Operation::Router, Step::End(error));
        }
        if let Some(response) = self.locked(cx, &place.destination) {
            return (Operation::Router, response.into());
        }
        let step = Step::Order(listing(&place, MAX_BINDINGS));
        (Operation::Unbind { hash: place.hash }, step)
    }

    /// The response to a binding of a queue that belongs to another connection.
    fn locked(&self, cx: &LinkContext<'_>, destination: &BindingDestination) -> Option<Response> {
        match destination {
            BindingDestination::Entity(name) if self.exclusive.is_locked(cx.directory, name) => {
                Some(Response::locked(self.virtual_host.queue(name)))
            }
            BindingDestination::Entity(_) | BindingDestination::Router(_) => None,
        }
    }

    /// A binding takes the right to read its source and to write to its destination.
    fn deny_binding(
        &self,
        cx: &LinkContext<'_>,
        source: &str,
        destination: &BindingDestination,
    ) -> Option<amqp::Error> {
        let (path, resource) = match destination {
            BindingDestination::Entity(name) => (name.as_str(), self.virtual_host.queue(name)),
            BindingDestination::Router(name) => ("", self.virtual_host.exchange(name)),
        };
        let source = self.virtual_host.exchange(source);
        self.deny(cx, Permission::Read, "", source)
            .or_else(|| self.deny(cx, Permission::Write, path, resource))
    }
}

fn read(body: &Map) -> Result<Binding, String> {
    let text = |key: &str| {
        let value = amqp::value::lookup(body, key)?;
        value.as_text().map(str::to_owned)
    };
    let required = |key: &str| text(key).ok_or_else(|| format!("bad or missing '{key}'"));
    let destination = match (text("destination_queue"), text("destination_exchange")) {
        (Some(name), None) => BindingDestination::Entity(name),
        (None, Some(name)) => BindingDestination::Router(name),
        _ => return Err("bad or missing 'destination_queue' or 'destination_exchange'".to_owned()),
    };
    let arguments = match amqp::value::lookup(body, "arguments") {
        Some(Value::Map(arguments)) => texts(arguments)?,
        _ => return Err("bad or missing 'arguments'".to_owned()),
    };
    Ok(Binding {
        source: required("source")?,
        destination,
        key: required("binding_key")?,
        arguments,
    })
}

impl Place {
    /// Reads the parts of a path or of a query.
    fn read(text: &str, separator: char) -> Result<Self, String> {
        let bad = || format!("bad binding path segment '{text}'");
        let (mut source, mut destination, mut key, mut hash) = (None, None, None, String::new());
        for part in text.split(separator) {
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            let value = address::decoded(value).ok_or_else(bad)?;
            match name {
                "src" => source = Some(value),
                "dstq" => destination = Some(BindingDestination::Entity(value)),
                "dste" => destination = Some(BindingDestination::Router(value)),
                "key" => key = Some(value),
                "args" => hash = value,
                _ => return Err(bad()),
            }
        }
        Ok(Self {
            source: source.ok_or_else(bad)?,
            destination: destination.ok_or_else(bad)?,
            key: key.ok_or_else(bad)?,
            hash,
        })
    }
}

/// A binding as clients see it.
fn shown(binding: &Binding) -> Value {
    let (kind, word, name) = match &binding.destination {
        BindingDestination::Entity(name) => ("destination_queue", "dstq", name),
        BindingDestination::Router(name) => ("destination_exchange", "dste", name),
    };
    let location = format!(
        "/bindings/src={};{word}={};key={};args={}",
        encoded(&binding.source),
        encoded(name),
        encoded(&binding.key),
        argument_hash(&binding.arguments)
    );
    let arguments = binding.arguments.iter();
    let arguments = arguments.map(|(key, value)| (Value::from(key.as_str()), value.clone()));
    let entries = [
        ("source", Value::from(binding.source.as_str())),
        (kind, Value::from(name.as_str())),
        ("binding_key", Value::from(binding.key.as_str())),
        ("arguments", Value::Map(arguments.collect())),
        ("location", Value::String(location)),
    ];
    let entries = entries.into_iter();
    Value::Map(
        entries
            .map(|(key, value)| (Value::from(key), value))
            .collect(),
    )
}

/// Four bytes of the arguments of a binding, sorted, in eight digits; nothing without arguments.
#[must_use]
pub fn argument_hash(arguments: &[(String, Value)]) -> String {
    /// FNV-1a, which needs no table.
    const OFFSET: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    if arguments.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<_> = arguments.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut bytes = BytesMut::new();
    for (key, value) in sorted {
        encode::string(&mut bytes, key);
        encode::value(&mut bytes, value);
    }
    let hash = bytes.iter();
    let hash = hash.fold(OFFSET, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(PRIME)
    });
    format!("{hash:08x}")
}
