//! What scripts say and hear of routers and bindings.

use amqp::Value;
use broker::{
    Answer, Binding, BindingDestination, Command, EntityError, Order, Output, Publication, Routed,
    RouterAnswer, RouterKind, RouterOrder, RouterSettings,
};
use store::NamespaceId;

use super::{Stage, messages, named};
use crate::world::administer;

impl Stage {
    /// `router NAME KIND`, perhaps with `auto-delete`, `internal` or `else=ROUTER`; `unroute NAME`;
    /// `bind` or `unbind SOURCE KEY` with `to=QUEUE` or `router=NAME` and perhaps
    /// `arg=NAME:TEXT`; `bindings SOURCE`; `publish ROUTER KEY,KEY TEXT`, perhaps with
    /// `by=RECEIVER`.
    pub(super) fn router_command(&mut self, verb: &str, args: &[&str]) {
        let what = format!("{verb} {}", args.join(" "));
        let order = match verb {
            "publish" => return self.publish(args, &what),
            "router" => RouterOrder::Declare {
                name: name(args[0]),
                settings: Box::new(settings(args)),
            },
            "unroute" => RouterOrder::Remove {
                name: name(args[0]),
            },
            "bind" => RouterOrder::Bind(Box::new(binding(args))),
            "unbind" => RouterOrder::Unbind(Box::new(binding(args))),
            "bindings" => RouterOrder::ListBindings {
                source: Some(name(args[0])),
                destination: None,
                key: None,
                skip: 0,
                top: 10,
            },
            other => panic!("unknown command {other}"),
        };
        let request = self.request(&what);
        self.turn(vec![administer(request, Order::Router(order))]);
    }

    fn publish(&mut self, args: &[&str], what: &str) {
        let request = self.request_of(named(args, "by=").unwrap_or("r0"), what);
        let publications = messages(&args[2..]).into_iter().map(|message| {
            let publication = Box::new(Publication {
                namespace: NamespaceId(0),
                router: name(args[0]),
                keys: args[1].split(',').map(name).collect(),
                message,
            });
            Command::Publish {
                request,
                publication,
            }
        });
        self.turn(publications.collect());
    }

    /// What is said of a message that was published.
    pub(super) fn published(&self, output: &Output) -> Option<String> {
        let Output::Published { request, result } = output else {
            return None;
        };
        let what = self.what(*request);
        Some(match result {
            Ok(Routed::Stored { destinations }) => format!("{what}: stored by {destinations}"),
            Ok(Routed::Unmatched) => format!("{what}: unmatched"),
            Err(error) => format!("{what}: {error}"),
        })
    }
}

/// What is said of an order about routers, if it is one.
pub(super) fn answered(what: &str, result: &Result<Answer, EntityError>) -> Option<String> {
    match result {
        Ok(Answer::Router(RouterAnswer::Bindings(page))) => {
            let shown = page.items.iter().map(|binding| {
                let destination = match &binding.destination {
                    BindingDestination::Entity(path) => path.clone(),
                    BindingDestination::Router(name) => format!("router {name}"),
                };
                format!("{} to {destination}", binding.key)
            });
            let shown: Vec<_> = shown.collect();
            Some(format!("{what}: {}", shown.join(", ")))
        }
        Ok(Answer::Router(_)) => Some(format!("{what}: done")),
        Err(EntityError::Router(error)) => Some(format!("{what}: {error}")),
        _ => None,
    }
}

/// A `-` is the empty name.
fn name(text: &str) -> String {
    if text == "-" { "" } else { text }.to_owned()
}

fn settings(args: &[&str]) -> RouterSettings {
    let kind = RouterKind::ALL
        .into_iter()
        .find(|kind| kind.name() == args[1]);
    RouterSettings {
        auto_delete: args.contains(&"auto-delete"),
        internal: args.contains(&"internal"),
        alternate: named(args, "else=").map(str::to_owned),
        ..RouterSettings::new(kind.unwrap())
    }
}

fn binding(args: &[&str]) -> Binding {
    let destination = match named(args, "router=") {
        Some(router) => BindingDestination::Router(name(router)),
        None => BindingDestination::Entity(named(args, "to=").unwrap().to_owned()),
    };
    let arguments = args.iter().filter_map(|arg| arg.strip_prefix("arg="));
    let arguments = arguments.map(|arg| {
        let (name, value) = arg.split_once(':').unwrap();
        let value = value.parse().map_or(Value::from(value), Value::Int);
        (name.to_owned(), value)
    });
    Binding {
        source: name(args[0]),
        destination,
        key: name(args[1]),
        arguments: arguments.collect(),
    }
}
