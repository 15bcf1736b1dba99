//! Order: which orders of administrators are operations, and where.
//!
//! Orders that only read, and those about namespaces and policies, are none: rules can always be
//! looked at and taken away. What the server orders by itself is none either.

use std::borrow::Cow;

use store::NamespaceId;

use super::{Concern, Named, Place};
use crate::api::fault::{FaultOperation, Requester};
use crate::api::id::{ConnectionId, RequestId};
use crate::api::order::{EntityPath, Order};
use crate::api::router::RouterOrder;

/// What an order is about, if it is an operation of a client.
pub(super) fn concern<'a>(
    request: RequestId,
    namespace: NamespaceId,
    order: &'a Order,
) -> Option<Concern<'a>> {
    use FaultOperation::{
        AddRule, Bind, CreateEntity, DeleteEntity, RemoveRule, Unbind, UpdateEntity,
    };
    if request.connection == ConnectionId::SERVER {
        return None;
    }
    let at = |path: &'a str| Place::Path(namespace, Cow::Borrowed(path));
    let (operation, place) = match order {
        Order::Create { path, .. } => (CreateEntity, Place::Path(namespace, path_of(path))),
        Order::Update { entity, .. } => (UpdateEntity, Place::Entity(*entity)),
        Order::Remove { path } => (DeleteEntity, at(path)),
        Order::CreateRule { subscription, .. } | Order::ReplaceRule { subscription, .. } => {
            (AddRule, at(subscription))
        }
        Order::RemoveRule { subscription, .. } => (RemoveRule, at(subscription)),
        Order::Router(RouterOrder::Declare { name, .. }) => (CreateEntity, at(name)),
        Order::Router(RouterOrder::Remove { name }) => (DeleteEntity, at(name)),
        Order::Router(RouterOrder::Bind(binding)) => (Bind, at(&binding.source)),
        Order::Router(RouterOrder::Unbind(binding)) => (Unbind, at(&binding.source)),
        Order::FindDurable { .. }
        | Order::FindNode { .. }
        | Order::Unsubscribe { .. }
        | Order::Redeclare { .. }
        | Order::Apply(_)
        | Order::Describe { .. }
        | Order::List { .. }
        | Order::PutPolicy(_)
        | Order::RemovePolicy { .. }
        | Order::ListPolicies(_)
        | Order::DescribeNamespace
        | Order::DescribeRule { .. }
        | Order::ListRules { .. }
        | Order::Namespaces(_)
        | Order::Router(
            RouterOrder::Describe { .. }
            | RouterOrder::List { .. }
            | RouterOrder::ListBindings { .. },
        ) => return None,
    };
    let requester = Some(Requester::Request(request));
    Some(Concern {
        place,
        operation,
        requester,
        named: Named::Nothing,
        session: None,
        messages: &[],
    })
}

fn path_of(path: &EntityPath) -> Cow<'_, str> {
    match path {
        EntityPath::Queue(path) | EntityPath::Topic(path) => Cow::Borrowed(path),
        EntityPath::Subscription { topic, name } => {
            Cow::Owned(format!("{topic}/Subscriptions/{name}"))
        }
    }
}
