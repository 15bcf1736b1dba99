//! Namespaces made, changed, reset and deleted by order.
//!
//! Each order is one turn and one write set, so a crash leaves the namespace as it was or as it is
//! to be. What the entities of a deleted namespace have in the store goes later, in pieces.

use store::NamespaceId;

use crate::api::entity_error::EntityError;
use crate::api::id::ConnectionId;
use crate::api::namespace::{NamespaceAnswer, NamespaceDescription, NamespaceOrder};
use crate::api::order::Answer;
use crate::api::page::Page;
use crate::api::policy::PolicyLayer;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::template::{Template, make};
use crate::snapshot::{free, load, restore, take};

/// Carries an order out.
pub(super) fn carry_out(
    directory: &mut Directory,
    connection: ConnectionId,
    order: NamespaceOrder,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    if (order.copies() || order.loads()) && cx.shared.nearly_full {
        return Err(EntityError::DiskNearlyFull);
    }
    let answer = match order {
        NamespaceOrder::Create { definition, like } => {
            let like = like.map(|name| directory.namespaces.find(&name));
            let like = like.transpose()?;
            let template =
                like.map_or_else(Template::default, |id| make::of_namespace(directory, id));
            template.check_size()?;
            template.check_limits(definition.limits)?;
            let id = directory.create_namespace(*definition, template.clone(), cx)?;
            cx.enter(id);
            make::make(&template, directory, id, cx);
            one(directory, id)
        }
        NamespaceOrder::Replace(definition) => {
            let id = directory.replace_namespace(*definition, cx)?;
            one(directory, id)
        }
        NamespaceOrder::Remove(name) => {
            let id = enter(directory, &name, cx)?;
            if id == NamespaceId::default() {
                let text = "the default namespace cannot be deleted; reset it".to_owned();
                return Err(EntityError::Invalid(text));
            }
            clear(directory, id, cx);
            free::remove_all(directory, id, cx);
            directory.remove_namespace(id, cx);
            NamespaceAnswer::Done
        }
        NamespaceOrder::Reset(name) => {
            let id = enter(directory, &name, cx)?;
            clear(directory, id, cx);
            let template = directory.namespaces.template(id).clone();
            make::make(&template, directory, id, cx);
            NamespaceAnswer::Done
        }
        NamespaceOrder::ReplaceFaults { name, rules } => {
            let id = enter(directory, &name, cx)?;
            directory.faults.replace(id, rules)?;
            NamespaceAnswer::Faults(directory.faults.describe(id))
        }
        NamespaceOrder::AddFault { name, rule } => {
            let id = enter(directory, &name, cx)?;
            let known = directory.faults.describe(id).into_iter();
            let rules = known.map(|fault| fault.rule).chain([*rule]);
            directory.faults.replace(id, rules.collect())?;
            NamespaceAnswer::Faults(directory.faults.describe(id))
        }
        NamespaceOrder::ListFaults(name) => {
            let id = enter(directory, &name, cx)?;
            NamespaceAnswer::Faults(directory.faults.describe(id))
        }
        NamespaceOrder::TakeSnapshot { name, snapshot } => {
            let id = enter(directory, &name, cx)?;
            let taken = snapshot.clone();
            take::take(directory, id, Some(taken), cx)?;
            let mut all = directory.snapshots.list(id);
            all.retain(|description| description.name == snapshot);
            NamespaceAnswer::Snapshots(all)
        }
        NamespaceOrder::ListSnapshots(name) => {
            let id = enter(directory, &name, cx)?;
            NamespaceAnswer::Snapshots(directory.snapshots.list(id))
        }
        NamespaceOrder::RemoveSnapshot { name, snapshot } => {
            let id = enter(directory, &name, cx)?;
            free::remove(directory, id, &snapshot, cx)?;
            NamespaceAnswer::Done
        }
        NamespaceOrder::Restore { name, snapshot } => {
            let id = enter(directory, &name, cx)?;
            restore::restore(directory, id, &snapshot, cx)?;
            NamespaceAnswer::Done
        }
        NamespaceOrder::Fork {
            name,
            snapshot,
            definition,
        } => {
            let from = enter(directory, &name, cx)?;
            let id = restore::fork(directory, from, snapshot.as_deref(), *definition, cx)?;
            one(directory, id)
        }
        NamespaceOrder::Export(name) => {
            let id = enter(directory, &name, cx)?;
            NamespaceAnswer::Contents(Box::new(take::export(directory, id, connection, cx)?))
        }
        NamespaceOrder::BeginLoad(entities) => {
            NamespaceAnswer::Loading(load::begin(directory, entities, connection, cx)?)
        }
        NamespaceOrder::Load { load: id, piece } => {
            load::add(directory, id, *piece, cx)?;
            NamespaceAnswer::Done
        }
        NamespaceOrder::EndLoad { load: id, target } => {
            let id = load::end(directory, id, target, cx)?;
            one(directory, id)
        }
        NamespaceOrder::Release(id) => {
            free::release(directory, id, cx);
            NamespaceAnswer::Done
        }
        NamespaceOrder::Describe(name) => {
            let id = enter(directory, &name, cx)?;
            one(directory, id)
        }
        NamespaceOrder::List { skip, top } => NamespaceAnswer::Some(list(directory, skip, top)),
    };
    Ok(Answer::Namespaces(answer))
}

/// Finds the namespace that an order is about.
fn enter(
    directory: &Directory,
    name: &str,
    cx: &mut Context<'_>,
) -> Result<NamespaceId, EntityError> {
    let id = directory.namespaces.find(name)?;
    cx.enter(id);
    Ok(id)
}

fn one(directory: &Directory, id: NamespaceId) -> NamespaceAnswer {
    NamespaceAnswer::One(Box::new(directory.describe_namespace(id)))
}

fn list(directory: &Directory, skip: usize, top: usize) -> Page<NamespaceDescription> {
    let mut ids = directory.namespaces.ids().skip(skip);
    let items = ids.by_ref().take(top);
    let items = items.map(|id| directory.describe_namespace(id)).collect();
    Page {
        items,
        more: ids.next().is_some(),
    }
}

/// Deletes all entities of a namespace, its exchanges, its policies and its fault rules.
fn clear(directory: &mut Directory, id: NamespaceId, cx: &mut Context<'_>) {
    let cleared = directory.faults.replace(id, Vec::new());
    cleared.expect("no rule is wrong about none");
    directory.remove_entities(id, cx);
    directory.routers.clear(id, cx);
    for layer in [PolicyLayer::User, PolicyLayer::Operator] {
        let policies = directory.policies(id, layer);
        let names: Vec<_> = policies.map(|policy| policy.name.clone()).collect();
        for name in names {
            let removed = directory.take_policy(id, layer, &name, &mut Vec::new(), cx);
            assert!(removed.is_ok(), "it was listed just now");
        }
    }
    directory.govern_routers(id);
}
