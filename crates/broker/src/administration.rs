//! Administration: entities and rules that an administrator creates, changes, reads and deletes.
//!
//! An order is carried out whole or not at all, and its answer rests on the commit it made, so
//! the next order sees it. Answers are as exact as the moment of the order. A single order tells
//! apart what is there and what is not; a batch makes what a file says. (docs/spec/admin.md#14)

mod batch;
pub(crate) mod entities;
mod inquiry;
mod namespaces;
mod rules;

use store::NamespaceId;

use crate::api::entity_error::EntityError;
use crate::api::id::{ConnectionId, RequestId};
use crate::api::order::{Answer, Order};
use crate::api::output::Output;
use crate::client_affine;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::router;

/// Carries an order out and answers it.
pub(crate) fn administer(
    directory: &mut Directory,
    request: RequestId,
    namespace: NamespaceId,
    order: Order,
    cx: &mut Context<'_>,
) {
    let result = carry_out(directory, request.connection, namespace, order, cx);
    let result = Box::new(result);
    cx.emit(Output::Administered { request, result });
}

fn carry_out(
    directory: &mut Directory,
    connection: ConnectionId,
    namespace: NamespaceId,
    order: Order,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    if !directory.namespaces.contains(namespace) {
        return Err(EntityError::NoNamespace(namespace.0.to_string()));
    }
    match order {
        Order::Namespaces(order) => namespaces::carry_out(directory, connection, order, cx),
        Order::Create {
            path,
            description,
            rules,
        } => {
            let id = entities::make(directory, namespace, path, *description, rules, None, cx)?;
            directory.claim(id, connection, cx);
            inquiry::entity(directory, id, cx)
        }
        Order::Update {
            entity,
            description,
        } => entities::update(directory, entity, *description, cx),
        Order::Remove { path } => entities::remove(directory, namespace, &path, cx),
        Order::Apply(batch) => batch::carry_out(directory, namespace, *batch, cx),
        Order::Describe { path } => inquiry::describe(directory, namespace, &path, cx),
        Order::Redeclare { path } => {
            entities::renew_lease(directory, namespace, &path, cx);
            inquiry::describe(directory, namespace, &path, cx)
        }
        Order::List { of, skip, top } => {
            inquiry::list(directory, namespace, &of, skip, top, cx).map(Answer::Entities)
        }
        Order::PutPolicy(policy) => {
            let is_new = directory.put_policy(namespace, *policy, cx)?;
            Ok(Answer::Put { is_new })
        }
        Order::RemovePolicy { layer, name } => {
            directory.remove_policy(namespace, layer, &name, cx)?;
            Ok(Answer::Done)
        }
        Order::FindDurable { name } => {
            let id = client_affine::find_durable(directory, namespace, &name)?;
            inquiry::entity(directory, id, cx)
        }
        Order::FindNode { node } => {
            let found = directory.get(node).filter(|it| it.namespace == namespace);
            let is_node = found.is_some() && cx.shared.nodes.get(node).is_some();
            is_node.then_some(Answer::Done).ok_or(EntityError::NotFound)
        }
        Order::Unsubscribe { name } => {
            client_affine::unsubscribe(directory, namespace, &name, cx)?;
            Ok(Answer::Done)
        }
        Order::ListPolicies(layer) => {
            let policies = directory.policies(namespace, layer);
            Ok(Answer::Policies(policies.cloned().collect()))
        }
        Order::DescribeNamespace => Ok(Answer::Namespace(inquiry::namespace(
            directory, namespace, cx,
        ))),
        Order::CreateRule { subscription, rule } => {
            let subscription = rules::subscription(directory, namespace, &subscription)?;
            rules::create(directory, subscription, &rule, cx)
        }
        Order::ReplaceRule { subscription, rule } => {
            let subscription = rules::subscription(directory, namespace, &subscription)?;
            rules::replace(directory, subscription, &rule, cx)
        }
        Order::RemoveRule { subscription, name } => {
            let subscription = rules::subscription(directory, namespace, &subscription)?;
            rules::remove(directory, subscription, &name, cx)
        }
        Order::DescribeRule { subscription, name } => {
            let subscription = rules::subscription(directory, namespace, &subscription)?;
            rules::describe(directory, subscription, &name)
        }
        Order::Router(order) => {
            let answer = router::command::carry_out(directory, namespace, order, cx)?;
            Ok(Answer::Router(answer))
        }
        Order::ListRules {
            subscription,
            skip,
            top,
        } => {
            let subscription = rules::subscription(directory, namespace, &subscription)?;
            rules::list(directory, subscription, skip, top)
        }
    }
}
