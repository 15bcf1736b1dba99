//! Call: a request of management, parsed and checked as far as that needs no broker.

use std::fmt;

use broker::{EntityKind, EntityPath, Listing, NameError, RuleDescription};
use bytes::Bytes;
use http::header::IF_MATCH;
use http::{HeaderMap, Method, Request};

use super::respond::ResponseBuilder;
use crate::error::{Error, Subject};
use crate::query::Query;
use crate::resource::{Resource, subscription_path};
use crate::xml::{self, Element};
use crate::{authorization, description, rule};

/// The headers with a token for a forwarding target, and the property that names the target.
const SUPPLEMENTS: [(&str, &str); 2] = [
    ("servicebussupplementaryauthorization", "ForwardTo"),
    (
        "servicebusdlqsupplementaryauthorization",
        "ForwardDeadLetteredMessagesTo",
    ),
];

/// The error of an invalid description.
const INVALID: &str = "Bad Request. The specified resource description is invalid";

/// A request of management.
#[derive(Debug)]
pub(super) enum Call {
    ShowNamespace,
    List {
        of: Listing,
        query: Query,
    },
    ListRules {
        subscription: String,
        query: Query,
    },
    /// A queue or a topic.
    ShowEntity {
        path: String,
    },
    ShowSubscription {
        path: String,
    },
    DeleteEntity {
        path: String,
    },
    PutEntity(Box<Put>),
    ShowRule {
        subscription: String,
        name: String,
    },
    DeleteRule {
        subscription: String,
        name: String,
    },
    PutRule {
        subscription: String,
        rule: Box<RuleDescription>,
        update: bool,
    },
}

/// An entity to which messages are forwarded.
pub(super) struct Destination {
    pub path: String,
    /// The token for it. One that is no text is never valid.
    pub token: Option<String>,
}

// Written by hand, so that no token can be printed by mistake.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Destination");
        shown.field("path", &self.path).finish_non_exhaustive()
    }
}

/// An entity to create or update. Its element may hold keys.
pub(super) struct Put {
    pub path: EntityPath,
    pub kind: EntityKind,
    pub element: Element,
    pub authorization_rules: Vec<authorization::SubmittedRule>,
    /// Whether the entity must exist already, rather than not yet.
    pub update: bool,
}

impl fmt::Debug for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Put");
        shown.field("path", &self.path).field("kind", &self.kind);
        shown.field("update", &self.update).finish_non_exhaustive()
    }
}

impl Put {
    /// The path under which the broker knows it.
    pub(super) fn broker_path(&self) -> String {
        match &self.path {
            EntityPath::Queue(path) | EntityPath::Topic(path) => path.clone(),
            EntityPath::Subscription { topic, name } => subscription_path(topic, name),
        }
    }
}

impl Call {
    pub(super) fn parse(
        request: &Request<Bytes>,
        response_builder: &ResponseBuilder,
        random: &mut dyn FnMut() -> [u8; 32],
    ) -> Result<Self, Error> {
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        let resource = Resource::parse(request.uri().path());
        let method = request.method();
        if method == Method::PUT && !is_update_of_client_made(request, &resource) {
            let refuse = |error: NameError| {
                let error = error.in_request(response_builder.address());
                Error::name(&error)
            };
            check_name(&resource).map_err(refuse)?;
        }
        match (method, resource) {
            (&Method::GET, Resource::Namespace) => Ok(Self::ShowNamespace),
            (&Method::GET, Resource::Queues) => Ok(Self::list(Listing::Queues, query)),
            (&Method::GET, Resource::Topics) => Ok(Self::list(Listing::Topics, query)),
            (&Method::GET, Resource::Subscriptions { topic }) => {
                Ok(Self::list(Listing::Subscriptions(topic), query))
            }
            (
                &Method::GET,
                Resource::Rules {
                    topic,
                    subscription,
                },
            ) => Ok(Self::ListRules {
                subscription: subscription_path(&topic, &subscription),
                query,
            }),
            (&Method::GET, Resource::Entity { path }) => Ok(Self::ShowEntity { path }),
            (&Method::GET, Resource::Subscription { topic, name }) => Ok(Self::ShowSubscription {
                path: subscription_path(&topic, &name),
            }),
            (
                &Method::DELETE,
                resource @ (Resource::Entity { .. } | Resource::Subscription { .. }),
            ) => {
                let path = resource.broker_path().unwrap_or_default();
                Ok(Self::DeleteEntity { path })
            }
            (
                &Method::PUT,
                resource @ (Resource::Entity { .. } | Resource::Subscription { .. }),
            ) => put(request, resource, random),
            (
                method @ (&Method::GET | &Method::DELETE | &Method::PUT),
                Resource::Rule {
                    topic,
                    subscription,
                    name,
                },
            ) => {
                let subscription = subscription_path(&topic, &subscription);
                match *method {
                    Method::GET => Ok(Self::ShowRule { subscription, name }),
                    Method::DELETE => Ok(Self::DeleteRule { subscription, name }),
                    _ => {
                        let address = response_builder.address();
                        put_rule(request, subscription, &name, &address)
                    }
                }
            }
            _ => Err(Error::verb(method)),
        }
    }

    fn list(of: Listing, query: Query) -> Self {
        Self::List { of, query }
    }

    /// Whether an empty list of services stands for what is missing. A subscription or rule that
    /// is missing is a 404, in the cloud too. (docs/spec/admin.md#6)
    pub(super) fn answers_empty_feed_if_missing(&self) -> bool {
        match self {
            Self::ShowNamespace
            | Self::List { .. }
            | Self::ListRules { .. }
            | Self::ShowEntity { .. } => true,
            Self::ShowSubscription { .. }
            | Self::ShowRule { .. }
            | Self::DeleteEntity { .. }
            | Self::PutEntity(_)
            | Self::DeleteRule { .. }
            | Self::PutRule { .. } => false,
        }
    }

    pub(super) fn is_delete(&self) -> bool {
        matches!(self, Self::DeleteEntity { .. } | Self::DeleteRule { .. })
    }

    /// Its subject, as errors name it.
    pub(super) fn subject(&self, namespace: &str) -> Subject {
        match self {
            Self::PutEntity(put) => match &put.path {
                EntityPath::Queue(path) | EntityPath::Topic(path) => {
                    Subject::Entity { path: path.clone() }
                }
                EntityPath::Subscription { topic, name } => Subject::Below {
                    name: format!("{namespace}:Topic:{topic}|{name}"),
                },
            },
            Self::PutRule {
                subscription, rule, ..
            } => Subject::Below {
                name: format!("{namespace}:Topic:{}|{}", piped(subscription), rule.name),
            },
            Self::ShowRule { subscription, name } | Self::DeleteRule { subscription, name } => {
                Subject::Below {
                    name: format!("{namespace}:Topic:{}|{name}", piped(subscription)),
                }
            }
            Self::ShowSubscription { path } => Subject::Below {
                name: format!("{namespace}:Topic:{}", piped(path)),
            },
            Self::ShowEntity { path } | Self::DeleteEntity { path } => {
                Subject::Entity { path: path.clone() }
            }
            Self::ShowNamespace | Self::List { .. } | Self::ListRules { .. } => Subject::Entity {
                path: namespace.to_owned(),
            },
        }
    }

    /// Where messages are to go on to.
    pub(super) fn destinations(&self, headers: &HeaderMap) -> Vec<Destination> {
        let Self::PutEntity(put) = self else {
            return Vec::new();
        };
        let destinations = SUPPLEMENTS.into_iter().filter_map(|(header, property)| {
            let target = put.element.value(property)?;
            let token = headers.get(header);
            Some(Destination {
                path: path_of(target).to_owned(),
                token: token.map(|token| token.to_str().unwrap_or_default().to_owned()),
            })
        });
        destinations.collect()
    }
}

/// Whether a request changes a subscription with a name that only clients give. It is there or
/// missing; nothing is named by it. (docs/spec/amqp.md#13.4)
fn is_update_of_client_made(request: &Request<Bytes>, resource: &Resource) -> bool {
    let is_named_so = matches!(resource, Resource::Subscription { name, .. } if name.contains('$'));
    is_named_so && is_update(request)
}

/// Whether what a path names may be called so.
fn check_name(resource: &Resource) -> Result<(), NameError> {
    match resource {
        Resource::Entity { path } | Resource::Reserved { path } => broker::check_path(path),
        Resource::Subscription { name, .. } => broker::check_subscription_name(name),
        Resource::Rule { name, .. } => broker::check_rule_name(name),
        Resource::Namespace
        | Resource::Queues
        | Resource::Topics
        | Resource::Subscriptions { .. }
        | Resource::Rules { .. }
        | Resource::Other => Ok(()),
    }
}

/// The path of a target that may be written as a URI. (docs/spec/admin.md#2.2)
fn path_of(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => target,
    };
    path.trim_matches('/')
}

/// `{topic}|{subscription}` of a subscription's path.
fn piped(path: &str) -> String {
    path.replacen("/Subscriptions/", "|", 1)
}

fn put(
    request: &Request<Bytes>,
    resource: Resource,
    random: &mut dyn FnMut() -> [u8; 32],
) -> Result<Call, Error> {
    let element = content(request.body())?;
    let kind = description::kind(&element);
    let (path, kind) = match (resource, kind) {
        (Resource::Entity { path }, Some(EntityKind::Queue)) => {
            (EntityPath::Queue(path), EntityKind::Queue)
        }
        (Resource::Entity { path }, Some(EntityKind::Topic)) => {
            (EntityPath::Topic(path), EntityKind::Topic)
        }
        (Resource::Subscription { topic, name }, Some(EntityKind::Subscription)) => {
            let path = EntityPath::Subscription { topic, name };
            (path, EntityKind::Subscription)
        }
        _ => return Err(invalid(&format!("{} does not describe this", element.name))),
    };
    let authorization_rules = match kind {
        EntityKind::Queue | EntityKind::Topic => authorization::read(&element, random)?,
        EntityKind::Subscription => Vec::new(),
    };
    Ok(Call::PutEntity(Box::new(Put {
        path,
        kind,
        element,
        authorization_rules,
        update: is_update(request),
    })))
}

fn put_rule(
    request: &Request<Bytes>,
    subscription: String,
    name: &str,
    address: &str,
) -> Result<Call, Error> {
    let element = content(request.body())?;
    if element.name != "RuleDescription" {
        return Err(invalid(&format!(
            "{} does not describe a rule",
            element.name
        )));
    }
    Ok(Call::PutRule {
        subscription,
        rule: Box::new(rule::read(&element, Some(name), address)?),
        update: is_update(request),
    })
}

/// The header makes it an update, whatever its value. (docs/spec/admin.md#3)
fn is_update(request: &Request<Bytes>) -> bool {
    request.headers().contains_key(IF_MATCH)
}

/// The description in an entry's content.
fn content(body: &[u8]) -> Result<Element, Error> {
    let entry = xml::parse(body).map_err(|error| {
        let error = error.to_string();
        Error::bad(INVALID).quoting(error.trim_end_matches('.'))
    })?;
    if entry.name != "entry" {
        return Err(invalid("it is no entry"));
    }
    let mut content = entry
        .children
        .into_iter()
        .filter(|child| child.name == "content");
    let content = content.next();
    let content = content.ok_or_else(|| invalid("the entry has no content"))?;
    let mut descriptions = content.children.into_iter();
    match (descriptions.next(), descriptions.next()) {
        (Some(description), None) => Ok(description),
        _ => Err(invalid("the content is not one description")),
    }
}

fn invalid(why: &str) -> Error {
    let why = why.trim_end_matches('.');
    Error::bad(format!("{INVALID}: {why}."))
}
