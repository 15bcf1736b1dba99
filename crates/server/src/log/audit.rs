//! Audit: the lines of the log about changes of entities, rules, policies, keys and the clock.
//!
//! Each line names the client, its address and what it changed. Lines have the target `audit`, so
//! that a filter can tell them from other lines, and are never left out, also if the client leaves
//! before its answer. A line is written when the change is durable; a refused change is a
//! [refusal](crate::log::refusals). Purges and redrives have a line too; single messages have none,
//! and neither have dynamic nodes, which last no longer than their connection.

use std::net::SocketAddr;
use std::sync::Arc;

use broker::{Command, ConnectionId, EntityPath, Order, Output, RequestId, Requester, RouterOrder};
use hyper::{Method, Request};
use rustc_hash::FxHashMap;

use crate::http::request::caller::Caller;
use crate::http::response::answer::Response;
use crate::log::log_text::{NAME, SENTENCE, printable};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::DirectoryReceiver;

/// The target of all lines.
pub const TARGET: &str = "audit";
/// The client of a request that shows no credential.
pub const ANONYMOUS: &str = "anonymous";

/// What a request has changed, where its path does not tell. It travels in the response.
#[derive(Clone, Debug, Default)]
pub struct Changes(pub Vec<String>);

/// A response whose lines in the log say more than its path.
pub fn with_changes(mut response: Response, changes: Vec<String>) -> Response {
    response.extensions_mut().insert(Changes(changes));
    response
}

/// What it means that a namespace has the second of these things, and had the first: a line for
/// each one that is new, differs or has gone.
pub fn changes_of<'a, T: PartialEq>(
    kind: &str,
    (before, now): (&'a [T], &'a [T]),
    namespace: &str,
    name: impl Fn(&'a T) -> &'a str,
) -> Vec<String> {
    let find = |all: &'a [T], one| all.iter().find(|it| name(it) == name(one));
    let changed = now.iter().filter_map(|one| match find(before, one) {
        Some(old) if old == one => None,
        Some(_) => Some(("change", one)),
        None => Some(("create", one)),
    });
    let gone = before.iter().filter(|one| find(now, one).is_none());
    let all = changed.chain(gone.map(|one| ("delete", one)));
    let line = |(verb, one)| format!("{verb} {kind} {} of namespace '{namespace}'", name(one));
    all.map(line).collect()
}

/// A request of administration over HTTP that may change something. It holds a secret, so it has no
/// `Debug`.
#[derive(Clone)]
pub struct HttpChange {
    peer: SocketAddr,
    caller: Caller,
    /// Where the caller has its rights.
    server: Arc<NamespaceView>,
    method: Method,
    path: String,
}

impl HttpChange {
    /// None if the method only reads.
    pub fn of<T>(
        request: &Request<T>,
        peer: SocketAddr,
        caller: &Caller,
        server: &Arc<NamespaceView>,
    ) -> Option<Self> {
        let method = request.method().clone();
        (!matches!(method, Method::GET | Method::HEAD)).then(|| Self {
            peer,
            caller: caller.clone(),
            server: Arc::clone(server),
            path: request.uri().path().to_owned(),
            method,
        })
    }

    /// Writes the lines if the response tells that the request was carried out.
    pub fn log(&self, response: &Response) {
        if !response.status().is_success() {
            return;
        }
        match response.extensions().get::<Changes>() {
            Some(Changes(changes)) => {
                changes.iter().for_each(|change| self.write(change));
            }
            None => self.write(&format!("{} {}", self.method, self.path)),
        }
    }

    /// Writes the line of one change.
    pub fn write(&self, change: &str) {
        let (peer, method) = (self.peer, &self.method);
        let client = printable(&self.caller.name(&self.server, &self.path), NAME);
        let path = printable(&self.path, NAME);
        let change = printable(change, SENTENCE);
        tracing::info!(target: TARGET, %peer, client, %method, path, "audit: {change}");
    }
}

/// The changes that an AMQP connection has asked for and that are not answered.
#[derive(Debug, Default)]
pub struct PendingChanges(FxHashMap<RequestId, String>);

impl PendingChanges {
    /// Remembers the changes among `commands`.
    pub fn note(&mut self, commands: &[Command], directory: &DirectoryReceiver) {
        for command in commands {
            if let Some((request, change)) = change_of(command, directory) {
                self.0.insert(request, change);
            }
        }
    }

    /// Writes the line of a change that `output` answers, if it was made.
    pub fn log(
        &mut self,
        output: &Output,
        (peer, connection): (SocketAddr, ConnectionId),
        client: impl FnOnce() -> String,
    ) {
        let mut asked = |request, is_done: bool| self.0.remove(request).filter(|_| is_done);
        let change = match output {
            Output::RuleChanged { request, result } => asked(request, result.is_ok()),
            Output::Administered { request, result } => asked(request, result.is_ok()),
            Output::Deleted { request, result } => {
                let count = result.as_ref().map_or(0, |count| *count);
                let purge = asked(request, count > 0);
                purge.map(|purge| format!("{purge}: {count} messages"))
            }
            Output::Ended {
                requester: Requester::Request(request),
                ..
            } => asked(request, false),
            Output::Subscribed { result, .. } => {
                let made = result.as_ref().as_ref().ok().filter(|made| made.is_new);
                made.map(|made| format!("create subscription {}", made.path))
            }
            _ => return,
        };
        if let Some(change) = change {
            write(&change, (peer, connection), &client());
        }
    }

    /// Writes the lines of changes whose answers come no more, since the connection has ended.
    /// Whether they were made is not known here.
    pub fn end(&mut self, from: (SocketAddr, ConnectionId), client: impl Fn() -> String) {
        for (_, change) in self.0.drain() {
            let change = format!("{change}: the connection ended before the answer");
            write(&change, from, &client());
        }
    }
}

fn write(change: &str, (peer, connection): (SocketAddr, ConnectionId), client: &str) {
    let client = printable(client, NAME);
    let change = printable(change, SENTENCE);
    let connection = connection.0;
    tracing::info!(target: TARGET, %peer, connection, client, "audit: {change}");
}

fn change_of(command: &Command, directory: &DirectoryReceiver) -> Option<(RequestId, String)> {
    let path = |id| {
        directory
            .borrow()
            .path_of(id)
            .unwrap_or_default()
            .to_owned()
    };
    Some(match command {
        Command::AddRule {
            request,
            entity,
            rule,
        } => (
            *request,
            format!("create rule {}/{}", path(*entity), rule.name),
        ),
        Command::RemoveRule {
            request,
            entity,
            name,
        } => (*request, format!("delete rule {}/{name}", path(*entity))),
        Command::DeleteMessages {
            request, subqueue, ..
        } => (*request, format!("purge {}", path(subqueue.entity))),
        Command::Administer { request, order, .. } => (*request, change_by(order)?),
        _ => return None,
    })
}

/// What an order changes, if it is one that clients of AMQP give.
fn change_by(order: &Order) -> Option<String> {
    Some(match order {
        Order::Create { path, .. } => match path {
            EntityPath::Queue(path) => format!("create queue {path}"),
            EntityPath::Topic(path) => format!("create topic {path}"),
            EntityPath::Subscription { topic, name } => {
                format!("create subscription {topic}/{name}")
            }
        },
        Order::Remove { path } => format!("delete {path}"),
        Order::Unsubscribe { name } => format!("delete subscription {name}"),
        Order::Router(RouterOrder::Declare { name, .. }) => format!("declare exchange {name}"),
        Order::Router(RouterOrder::Remove { name }) => format!("delete exchange {name}"),
        Order::Router(RouterOrder::Bind(binding)) => format!("bind exchange {}", binding.source),
        Order::Router(RouterOrder::Unbind(binding)) => {
            format!("unbind exchange {}", binding.source)
        }
        // They change nothing.
        Order::Redeclare { .. }
        | Order::FindDurable { .. }
        | Order::FindNode { .. }
        | Order::Describe { .. }
        | Order::List { .. }
        | Order::ListPolicies(_)
        | Order::DescribeNamespace
        | Order::DescribeRule { .. }
        | Order::ListRules { .. }
        | Order::Router(
            RouterOrder::Describe { .. } | RouterOrder::List { .. } | RouterOrder::ListBindings { .. },
        )
        // They come over HTTP, whose requests have lines of their own.
        | Order::Update { .. }
        | Order::Apply(_)
        | Order::PutPolicy(_)
        | Order::RemovePolicy { .. }
        | Order::CreateRule { .. }
        | Order::ReplaceRule { .. }
        | Order::RemoveRule { .. }
        | Order::Namespaces(_) => return None,
    })
}
