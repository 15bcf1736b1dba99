//! Queues: they are declared, shown, deleted and purged. (docs/spec/rabbitmq.md#6.1, #6.2)
//!
//! A declaration looks for the queue first: one that is there is compared, one that is not is made.

use amqp::{Error, Map, Value};
use broker::{
    Answer, Command, DEFAULT_ROUTER, EntityDescription, EntityError, EntityInfo, EntityKind,
    EntityPath, Order, QueueArguments, RESERVED_ROUTERS, Resource, StoreOnlyProperties, Subqueue,
    SubqueueId, Wall, check_path,
};
use dialect::LinkContext;

use crate::address::{self, DEFAULT_EXCHANGE};
use crate::arguments;
use crate::dynamic_queue::{self, DynamicQueue};
use crate::exclusive_queues::ExclusiveQueues;
use crate::links::Links;
use crate::management::request::Request;
use crate::management::response::Response;
use crate::management::{Operation, Step};
use crate::rights::Permission;
use crate::virtual_host::VirtualHost;

/// The type of reply queues.
const VOLATILE: &str = "rabbit_volatile_queue";

/// What is done with a queue.
#[derive(Debug)]
pub(super) enum QueueOperation {
    /// Looked for, to be compared or made.
    Compare {
        name: String,
        arguments: QueueArguments,
    },
    Make {
        name: String,
        arguments: QueueArguments,
    },
    /// Declared again as it is.
    Renew {
        name: String,
    },
    Show {
        name: String,
    },
    /// The reply queue of a requester.
    ShowReply {
        name: String,
    },
    /// Looked for, to count what is deleted with it.
    Count {
        name: String,
    },
    Delete {
        messages: u64,
    },
    /// Answered by the broker's own command.
    Purge,
}

fn respond(status: u16, text: impl Into<String>) -> (Operation, Step) {
    (Operation::Router, Response::new(status, text).into())
}

fn describe(name: &str) -> Step {
    let path = name.to_owned();
    Step::Order(Order::Describe { path })
}

fn bad_name(segment: &str) -> (Operation, Step) {
    respond(400, format!("bad queue name '{segment}'"))
}

/// The answer with a number of messages.
pub(super) fn message_count(count: u64) -> Response {
    let count = (Value::from("message_count"), Value::Ulong(count));
    Response::with(200, Value::Map(vec![count]))
}

pub(super) fn get(segment: &str) -> (Operation, Step) {
    let Some(name) = address::decoded(segment) else {
        return bad_name(segment);
    };
    let (operation, step) = match dynamic_queue::node_of(&name) {
        Some((DynamicQueue::Reply, node)) => {
            let step = Step::Order(Order::FindNode { node });
            (QueueOperation::ShowReply { name }, step)
        }
        _ => {
            let step = describe(&name);
            (QueueOperation::Show { name }, step)
        }
    };
    (Operation::Queue(operation), step)
}

impl Links {
    pub(super) fn declare_queue(
        &self,
        cx: &LinkContext<'_>,
        segment: &str,
        request: &Request,
    ) -> (Operation, Step) {
        let Some(name) = address::decoded(segment) else {
            return bad_name(segment);
        };
        if name.is_empty() {
            return respond(400, "declare queue with empty name not allowed");
        }
        let queue = self.virtual_host.queue(&name);
        if let Some(error) = self.deny(cx, Permission::Configure, &name, queue) {
            return (Operation::Router, Step::End(error));
        }
        if name.starts_with(RESERVED_ROUTERS) {
            return respond(403, format!("{queue} starts with reserved prefix 'amq.'"));
        }
        if let Err(error) = check_path(&name) {
            return respond(400, error.to_string());
        }
        let Some(Value::Map(body)) = &request.body else {
            return respond(400, "the body of a queue is a map");
        };
        let arguments = match read_properties(body, queue) {
            Ok(arguments) => arguments,
            Err(response) => return (Operation::Router, response.into()),
        };
        if let Some(error) = self.deny_dead_letters(cx, &name, &arguments) {
            return (Operation::Router, Step::End(error));
        }
        let step = describe(&name);
        let operation = QueueOperation::Compare { name, arguments };
        (Operation::Queue(operation), step)
    }

    /// The error for a client that may not move dead letters from the queue to where it says.
    fn deny_dead_letters(
        &self,
        cx: &LinkContext<'_>,
        name: &str,
        arguments: &QueueArguments,
    ) -> Option<Error> {
        let settings = arguments.settings();
        let router = settings.dead_letter_router?;
        let exchange = |name| self.virtual_host.exchange(name);
        let from = self.deny(cx, Permission::Read, name, self.virtual_host.queue(name));
        from.or_else(|| match (router.as_str(), settings.dead_letter_key) {
            (DEFAULT_ROUTER, Some(queue)) => {
                self.deny(cx, Permission::Write, &queue, exchange(DEFAULT_EXCHANGE))
            }
            (name, _) => self.deny(cx, Permission::Write, "", exchange(name)),
        })
    }

    pub(super) fn delete_queue(&self, cx: &LinkContext<'_>, segment: &str) -> (Operation, Step) {
        let Some(name) = address::decoded(segment) else {
            return bad_name(segment);
        };
        let queue = self.virtual_host.queue(&name);
        if let Some(error) = self.deny(cx, Permission::Configure, &name, queue) {
            return (Operation::Router, Step::End(error));
        }
        let step = describe(&name);
        (Operation::Queue(QueueOperation::Count { name }), step)
    }

    pub(super) fn purge_queue(&self, cx: &LinkContext<'_>, segment: &str) -> (Operation, Step) {
        let Some(name) = address::decoded(segment) else {
            return bad_name(segment);
        };
        let resource = self.virtual_host.queue(&name);
        if let Some(error) = self.deny(cx, Permission::Read, &name, resource) {
            return (Operation::Router, Step::End(error));
        }
        let queue = cx.directory.get(&name).filter(|it| it.path == name);
        let Some(queue) = queue.filter(|it| it.kind == EntityKind::Queue) else {
            return respond(404, format!("no {resource}"));
        };
        if self.exclusive.is_locked(cx.directory, &name) {
            return (Operation::Router, Response::locked(resource).into());
        }
        let subqueue = SubqueueId {
            entity: queue.id,
            subqueue: Subqueue::Main,
        };
        let command = move |request| Command::DeleteMessages {
            request,
            subqueue,
            session: None,
            enqueued_before: Wall(u64::MAX),
            count: usize::MAX,
        };
        let operation = Operation::Queue(QueueOperation::Purge);
        (operation, Step::Purge(Box::new(command)))
    }
}

/// The arguments of a declaration whose other properties can be met.
fn read_properties(body: &Map, queue: Resource<'_>) -> Result<QueueArguments, Response> {
    let empty = Map::new();
    let mut given = &empty;
    let mut flags = [
        ("durable", true),
        ("exclusive", false),
        ("auto_delete", false),
    ];
    for (key, value) in body {
        let flag = flags
            .iter_mut()
            .find(|(name, _)| key.as_text() == Some(*name));
        match (flag, value) {
            (Some((_, flag)), Value::Bool(value)) => *flag = *value,
            (None, Value::Map(map)) if key.as_text() == Some("arguments") => given = map,
            _ => {
                let key = key.as_text().unwrap_or_default();
                let value = match value {
                    Value::Bool(it) => it.to_string(),
                    other => format!("{other:?}"),
                };
                let text = format!("bad queue property {{{{utf8,<<\"{key}\">>}},{value}}}");
                return Err(Response::new(400, text));
            }
        }
    }
    let arguments = arguments::read(given, queue).map_err(|text| Response::new(409, text))?;
    let is_classic = arguments.kind() == "classic";
    let unmet = match flags {
        // Every queue is durable.
        [(_, false), ..] if !is_classic => Some("non-durable"),
        [_, (_, true), _] if !is_classic => Some("exclusive-owner"),
        [_, _, (_, true)] if !is_classic => Some("auto-delete"),
        _ => None,
    };
    match unmet {
        Some(what) => {
            let text = format!("invalid property '{what}' for {queue}");
            Err(Response::new(400, text))
        }
        None => Ok(arguments
            .with_exclusive(flags[1].1)
            .with_auto_delete(flags[2].1)),
    }
}

impl QueueOperation {
    /// What follows from the broker's answer.
    pub(super) fn go_on(
        &mut self,
        result: Result<Answer, EntityError>,
        node: &str,
        host: &VirtualHost,
        exclusive: &mut ExclusiveQueues,
    ) -> Step {
        let found = match result {
            Ok(Answer::Entity(info)) => Ok(Some(info)),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        match (std::mem::replace(self, Self::Purge), found) {
            (Self::Compare { name, arguments }, Ok(Some(info)))
                if is_queue(&info, &name)
                    && (arguments.is_exclusive() != info.queue.settings.exclusive
                        || is_locked(&info, exclusive)) =>
            {
                Response::locked(host.queue(&name)).into()
            }
            (Self::Compare { name, arguments }, Ok(Some(info))) => {
                match difference(host, &name, &arguments, &info) {
                    Some(response) => response.into(),
                    None => {
                        *self = Self::Renew { name: name.clone() };
                        Step::Order(Order::Redeclare { path: name })
                    }
                }
            }
            // It has gone meanwhile.
            (Self::Renew { name }, Err(EntityError::NotFound)) => not_found(host, &name).into(),
            (Self::Renew { .. }, Ok(Some(info))) => {
                Response::with(200, shown(&info, node, host)).into()
            }
            (Self::Compare { name, arguments }, Err(EntityError::NotFound)) => {
                let order = create(&name, &arguments);
                *self = Self::Make { name, arguments };
                Step::Order(order)
            }
            // Another client has made it meanwhile.
            (Self::Make { name, arguments }, Err(EntityError::Exists(EntityKind::Queue))) => {
                let step = describe(&name);
                *self = Self::Compare { name, arguments };
                step
            }
            (Self::Make { name, .. }, Ok(Some(info))) => {
                if info.queue.settings.exclusive {
                    exclusive.declared(name, info.queue.id);
                }
                Response::with(201, shown(&info, node, host)).into()
            }
            (Self::Show { name }, Ok(Some(info))) if is_queue(&info, &name) => {
                Response::with(200, shown(&info, node, host)).into()
            }
            (Self::ShowReply { name }, Ok(_)) => {
                Response::with(200, reply_queue(&name, node, host)).into()
            }
            (Self::Show { name }, Ok(_) | Err(EntityError::NotFound))
            | (Self::ShowReply { name }, Err(EntityError::NotFound)) => {
                not_found(host, &name).into()
            }
            (Self::Count { name }, Ok(Some(info)))
                if is_queue(&info, &name) && is_locked(&info, exclusive) =>
            {
                Response::locked(host.queue(&name)).into()
            }
            (Self::Count { name }, Ok(Some(info))) if is_queue(&info, &name) => {
                *self = Self::Delete {
                    messages: info.queue.active.saturating_sub(info.queue.locked),
                };
                Step::Order(Order::Remove { path: name })
            }
            (Self::Count { .. }, Ok(_) | Err(EntityError::NotFound)) => message_count(0).into(),
            (Self::Delete { messages }, Ok(_) | Err(EntityError::NotFound)) => {
                message_count(messages).into()
            }
            (_, Err(error @ EntityError::TooMany { .. })) => {
                Response::new(403, error.to_string()).into()
            }
            (_, Err(error)) => Response::new(400, error.to_string()).into(),
            (_, Ok(_)) => Response::new(400, "the broker has another answer").into(),
        }
    }
}

fn not_found(host: &VirtualHost, name: &str) -> Response {
    Response::new(404, format!("{} not found", host.queue(name)))
}

fn is_queue(info: &EntityInfo, name: &str) -> bool {
    info.queue.kind == EntityKind::Queue && info.queue.path == name
}

/// Whether it belongs to another connection.
fn is_locked(info: &EntityInfo, exclusive: &ExclusiveQueues) -> bool {
    let queue = &info.queue;
    queue.settings.exclusive && !exclusive.is_own(&queue.path, queue.id)
}

fn create(name: &str, arguments: &QueueArguments) -> Order {
    let description = EntityDescription {
        settings: arguments.settings(),
        store_only: StoreOnlyProperties {
            user_metadata: Some(arguments.metadata()),
            ..StoreOnlyProperties::default()
        },
        ..EntityDescription::default()
    };
    Order::Create {
        path: EntityPath::Queue(name.to_owned()),
        description: Box::new(description),
        rules: None,
    }
}

/// The refusal of a declaration that does not say what there is.
fn difference(
    host: &VirtualHost,
    name: &str,
    arguments: &QueueArguments,
    info: &EntityInfo,
) -> Option<Response> {
    if !is_queue(info, name) {
        let text = format!(
            "the name '{name}' is taken by the {} '{}'",
            info.queue.kind, info.queue.path
        );
        return Some(Response::new(409, text));
    }
    let text = arguments.difference(info, host.name())?;
    Some(Response::new(409, text))
}

/// A queue as clients see it.
fn shown(info: &EntityInfo, node: &str, host: &VirtualHost) -> Value {
    let arguments = QueueArguments::of(info);
    let ready = info.queue.active.saturating_sub(info.queue.locked);
    let consumers = u32::try_from(info.queue.receivers).unwrap_or(u32::MAX);
    map([
        ("message_count", Value::Ulong(ready)),
        ("consumer_count", Value::Uint(consumers)),
        ("name", Value::from(info.queue.path.as_str())),
        ("vhost", Value::from(host.name())),
        ("durable", Value::Bool(true)),
        ("auto_delete", Value::Bool(info.queue.settings.auto_delete)),
        ("exclusive", Value::Bool(info.queue.settings.exclusive)),
        ("type", Value::from(arguments.kind())),
        ("arguments", Value::Map(arguments::map(&arguments))),
        ("leader", Value::from(node)),
        ("replicas", Value::Array(vec![Value::from(node)])),
    ])
}

/// The reply queue of a requester as clients see it. It tells them that the requester is there.
/// (docs/spec/rabbitmq.md#10.8)
fn reply_queue(name: &str, node: &str, host: &VirtualHost) -> Value {
    map([
        ("message_count", Value::Ulong(0)),
        ("consumer_count", Value::Uint(1)),
        ("name", Value::from(name)),
        ("vhost", Value::from(host.name())),
        ("durable", Value::Bool(false)),
        ("auto_delete", Value::Bool(true)),
        ("exclusive", Value::Bool(false)),
        ("type", Value::from(VOLATILE)),
        // Clients cannot read an empty map.
        ("arguments", map([("x-queue-type", Value::from(VOLATILE))])),
        ("leader", Value::from(node)),
        ("replicas", Value::Array(vec![Value::from(node)])),
    ])
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter();
    Value::Map(
        entries
            .map(|(key, value)| (Value::from(key), value))
            .collect(),
    )
}
