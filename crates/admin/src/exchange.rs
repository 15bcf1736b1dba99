//! Exchange: one request, from its head and body to its response.
//!
//! It first checks everything that needs no broker. Then one order answers the request; only an
//! update first reads the entity, since a description may repeat a value that the entity already
//! has.
//!
//! Invariant: a request that is refused has changed nothing.

mod call;
mod denied;
mod respond;

use broker::{
    Answer, EntityDescription, EntityError, EntityInfo, EntityKind, Order, RuleDescription,
    RuleError, Wall,
};
use bytes::Bytes;
use http::{Method, Request, StatusCode};

use crate::error::{Error, nothing_to_delete};
use crate::resource::Resource;
use crate::settings::Settings;
use crate::{description, rule};

use call::{Call, Destination, Put};
use respond::ResponseBuilder;

/// A response with its whole body. One that refuses has its [`Error`] and its [`TrackingId`] among
/// its extensions.
pub type Response = http::Response<Bytes>;

/// The reason phrase of a response's status line, among its extensions; printable ASCII alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReasonPhrase(pub String);

/// The id by which the text of a refusal names its exchange, among the response's extensions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrackingId(pub String);

/// The inputs of an exchange besides the request.
pub struct RequestContext<'a> {
    /// Real time.
    pub now: Wall,
    /// Names the exchange in errors.
    pub tracking: u128,
    /// Random bytes for keys that the client did not choose.
    pub random: &'a mut dyn FnMut() -> [u8; 32],
}

/// The next step of an exchange.
#[derive(Debug)]
pub enum Step {
    /// Ask the broker this.
    Ask(Order),
    /// Send this response.
    Respond(Response),
}

/// One request.
#[derive(Debug)]
pub struct Exchange {
    settings: Settings,
    response_builder: ResponseBuilder,
    call: Call,
    destinations: Vec<Destination>,
    /// Whether an update has read the entity and has been ordered.
    is_ordered: bool,
    /// The answer if the entity is there, to a caller that may not manage it.
    denied: Option<Error>,
}

impl Exchange {
    /// Parses a request. Its body is empty unless it is a PUT.
    ///
    /// # Errors
    /// A request that is refused at once has its response.
    pub fn begin(
        settings: &Settings,
        request: &Request<Bytes>,
        context: RequestContext<'_>,
    ) -> Result<(Self, Order), Box<Response>> {
        let RequestContext {
            now,
            tracking,
            random,
        } = context;
        let response_builder = ResponseBuilder::new(request, now, tracking);
        let call = match Call::parse(request, &response_builder, random) {
            Ok(call) => call,
            Err(error) => return Err(Box::new(response_builder.error(&error))),
        };
        let destinations = call.destinations(request.headers());
        let exchange = Self {
            settings: settings.clone(),
            response_builder,
            call,
            destinations,
            is_ordered: false,
            denied: None,
        };
        match exchange.first_order() {
            Ok(order) => Ok((exchange, order)),
            Err(error) => Err(Box::new(exchange.response_builder.error(&error))),
        }
    }

    /// The exchange of a request whose caller may not manage: what is missing is told, all else is
    /// refused. (docs/spec/admin.md#2.5)
    ///
    /// # Errors
    /// A request that is refused at once has its response.
    pub fn begin_denied<T>(
        settings: &Settings,
        request: &Request<T>,
        now: Wall,
        tracking: u128,
    ) -> Result<(Self, Order), Box<Response>> {
        let response_builder = ResponseBuilder::new(request, now, tracking);
        let resource = Resource::parse(request.uri().path());
        let denial = response_builder.denial(request.method(), &resource);
        let path = match resource {
            // A client asks for a name that begins so to learn whether it may manage.
            Resource::Entity { path } if !path.starts_with('$') => path,
            _ => return Err(Box::new(response_builder.denied(&denial))),
        };
        if request.method() != Method::GET {
            return Err(Box::new(response_builder.denied(&denial)));
        }
        let order = Order::Describe { path: path.clone() };
        let exchange = Self {
            settings: settings.clone(),
            response_builder,
            call: Call::ShowEntity { path },
            destinations: Vec::new(),
            is_ordered: false,
            denied: Some(denial.error),
        };
        Ok((exchange, order))
    }

    /// The entities to which messages are forwarded, each with its token: the request requires the
    /// right to manage them too. Without a token the request's own applies.
    /// (docs/spec/admin.md#2.2)
    pub fn destinations(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let destinations = self.destinations.iter();
        destinations.map(|destination| (&*destination.path, destination.token.as_deref()))
    }

    /// The response when the caller refuses the request.
    #[must_use]
    pub fn refuse(&self, error: &Error) -> Response {
        self.response_builder.error(error)
    }

    /// The response to a request that is refused before it is parsed.
    #[must_use]
    pub fn refuse_unparsed<T>(
        request: &Request<T>,
        now: Wall,
        tracking: u128,
        error: &Error,
    ) -> Response {
        ResponseBuilder::new(request, now, tracking).error(error)
    }

    /// The response to a request for the root, which needs no right: a list of services without
    /// any. (docs/spec/admin.md#3)
    #[must_use]
    pub fn root<T>(request: &Request<T>, now: Wall, tracking: u128) -> Response {
        let respond = ResponseBuilder::new(request, now, tracking);
        match *request.method() {
            Method::GET | Method::HEAD => respond.nothing(),
            ref other => respond.error(&Error::verb(other)),
        }
    }

    /// Handles the broker's answer to the last order.
    #[must_use]
    pub fn handle_answer(&mut self, result: Result<Answer, EntityError>) -> Step {
        match self.interpret(result) {
            Ok(step) => step,
            Err(error) => Step::Respond(self.response_builder.error(&error)),
        }
    }

    fn first_order(&self) -> Result<Order, Error> {
        Ok(match &self.call {
            Call::ShowNamespace => Order::DescribeNamespace,
            Call::List { of, query } => Order::List {
                of: of.clone(),
                skip: query.skip,
                top: query.top,
            },
            Call::ListRules {
                subscription,
                query,
            } => Order::ListRules {
                subscription: subscription.clone(),
                skip: query.skip,
                top: query.top,
            },
            Call::ShowEntity { path } | Call::ShowSubscription { path } => {
                Order::Describe { path: path.clone() }
            }
            Call::DeleteEntity { path } => Order::Remove { path: path.clone() },
            Call::PutEntity(put) if put.update => Order::Describe {
                path: put.broker_path(),
            },
            Call::PutEntity(put) => Order::Create {
                path: put.path.clone(),
                description: Box::new(self.description(put, None)?),
                rules: default_rule(put, &self.response_builder.address())?.map(|rule| vec![rule]),
            },
            Call::ShowRule { subscription, name } => Order::DescribeRule {
                subscription: subscription.clone(),
                name: name.clone(),
            },
            Call::DeleteRule { subscription, name } => Order::RemoveRule {
                subscription: subscription.clone(),
                name: name.clone(),
            },
            Call::PutRule {
                subscription,
                rule,
                update,
            } => {
                let (subscription, rule) = (subscription.clone(), rule.clone());
                if *update {
                    Order::ReplaceRule { subscription, rule }
                } else {
                    Order::CreateRule { subscription, rule }
                }
            }
        })
    }

    fn description(
        &self,
        put: &Put,
        current: Option<&EntityInfo>,
    ) -> Result<EntityDescription, Error> {
        let mut described = description::read(put.kind, &put.element, &self.settings, current)?;
        let known = current.map_or(&[][..], |current| &current.store_only.authorization_rules);
        let rules = put.authorization_rules.iter();
        described.store_only.authorization_rules =
            rules.map(|rule| rule.with_keys_of(known)).collect();
        Ok(described)
    }

    fn interpret(&mut self, result: Result<Answer, EntityError>) -> Result<Step, Error> {
        let answer = match (result, &self.call) {
            (Ok(answer), _) => answer,
            (Err(error), call) => {
                let empty_feed = call.answers_empty_feed_if_missing();
                return match (&error, empty_feed, call.is_delete()) {
                    (error, true, _) if is_missing(error) => {
                        Ok(Step::Respond(self.response_builder.nothing()))
                    }
                    (error, _, true) if is_missing(error) => Err(nothing_to_delete()),
                    _ => {
                        let subject = call.subject(&self.settings.namespace);
                        Err(Error::refused(&error, &subject))
                    }
                };
            }
        };
        if let Some(denied) = &self.denied {
            return Err(denied.clone());
        }
        let respond = &self.response_builder;
        let response = match (&self.call, answer) {
            (Call::PutEntity(put), Answer::Entity(info)) if !put.update => {
                respond.created(&self.settings, &info)
            }
            (Call::PutEntity(put), Answer::Entity(info)) if self.is_ordered => {
                respond.updated(&self.settings, &info, &put.element)
            }
            (Call::PutEntity(put), Answer::Entity(info)) => {
                let order = self.update(put, &info)?;
                self.is_ordered = true;
                return Ok(Step::Ask(order));
            }
            (Call::ShowEntity { .. } | Call::ShowSubscription { .. }, Answer::Entity(info)) => {
                respond.entity(&self.settings, &info)
            }
            (Call::PutRule { update, .. }, Answer::Rule(rule)) => {
                respond.rule(&self.settings, &rule, !*update)
            }
            (Call::ShowRule { .. }, Answer::Rule(rule)) => {
                respond.rule(&self.settings, &rule, false)
            }
            (Call::ShowNamespace, Answer::Namespace(info)) => {
                respond.namespace(&self.settings, info)
            }
            (Call::List { of, query }, Answer::Entities(page)) => {
                respond.entities(&self.settings, of, *query, &page)
            }
            (Call::ListRules { query, .. }, Answer::Rules(page)) => {
                respond.rules(&self.settings, *query, &page)
            }
            (Call::DeleteEntity { .. } | Call::DeleteRule { .. }, Answer::Done) => {
                respond.deleted()
            }
            (_, other) => {
                let text = format!("the broker answered something else: {other:?}");
                return Err(Error::new(StatusCode::INTERNAL_SERVER_ERROR, None, text));
            }
        };
        Ok(Step::Respond(response))
    }

    /// The order of an update, once the entity has been read.
    fn update(&self, put: &Put, info: &EntityInfo) -> Result<Order, Error> {
        if info.queue.kind != put.kind {
            let (path, kind) = (&info.queue.path, info.queue.kind);
            return Err(Error::bad(format!("Bad Request. '{path}' is a {kind}.")));
        }
        Ok(Order::Update {
            entity: info.queue.id,
            description: Box::new(self.description(put, Some(info))?),
        })
    }
}

fn is_missing(error: &EntityError) -> bool {
    matches!(
        error,
        EntityError::NotFound
            | EntityError::NoTopic
            | EntityError::Rule(RuleError::NotFound(_) | RuleError::NoSubscription)
    )
}

/// The rule of a new subscription that replaces the default rule, which matches every message.
fn default_rule(put: &Put, address: &str) -> Result<Option<RuleDescription>, Error> {
    if put.kind != EntityKind::Subscription {
        return Ok(None);
    }
    let element = put.element.child("DefaultRuleDescription");
    let rule = element
        .map(|element| rule::read(element, None, address))
        .transpose()?;
    Ok(rule)
}
