//! Routers: all routers of a broker by id and by name, and which bindings lead where.
//!
//! The routers that every namespace has become rows with the first router, binding or shared body
//! of the namespace; until then there is nothing to store of them. The default router is the home
//! of the bodies that queues share, since it goes last of its namespace.
//! Invariant: each binding's target is there, and `by_target` has exactly the bindings there are.

use std::collections::{BTreeMap, BTreeSet};

use store::{BodyPointer, EntityId, EntityRow, Entry, Head, NamespaceId, StoreError, Write};

use super::binding::Binding;
use super::target::Target;
use super::{PREDECLARED, Router, predeclared, stored};
use crate::api::router::{DEFAULT_ROUTER, RouterSettings};
use crate::context::Context;
use crate::entities::definition;

/// Why there is the default router of a namespace.
const HAS_DEFAULT: &str = "the routers of a namespace are there before it is asked for one";

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Routers {
    by_id: BTreeMap<EntityId, Router>,
    by_name: BTreeMap<NamespaceId, BTreeMap<String, EntityId>>,
    /// The routers and numbers of the bindings that lead to a target.
    by_target: BTreeMap<Target, BTreeSet<(EntityId, u64)>>,
    bindings: usize,
    /// What the arguments of all bindings take.
    argument_bytes: usize,
    /// Of default routers: they number the bodies that queues share.
    heads: BTreeMap<EntityId, Head>,
    /// Those whose heads are to be written at the end of the turn.
    touched: BTreeSet<EntityId>,
}

impl Routers {
    /// A router that the store has.
    pub(crate) fn recover(&mut self, row: &EntityRow, settings: RouterSettings, head: Head) {
        if row.path == DEFAULT_ROUTER {
            self.heads.insert(row.id, head);
        }
        self.insert(Router::new(
            row.id,
            row.namespace,
            row.path.clone(),
            settings,
        ));
    }

    /// A binding that the store has, if the entity of its entry is a router.
    pub(crate) fn recover_binding(
        &mut self,
        router: EntityId,
        entry: &Entry,
        is_there: impl Fn(EntityId) -> bool,
    ) -> Result<bool, StoreError> {
        let Some(found) = self.by_id.get(&router) else {
            return Ok(false);
        };
        let (number, binding) = stored::decode_binding(found.settings.kind, entry)?;
        let target_is_there = match binding.target {
            Target::Entity(id) => is_there(id),
            Target::Router(id) => self.by_id.contains_key(&id),
        };
        if !target_is_there || found.bindings.find(&binding).is_some() {
            let detail = format!(
                "a binding of '{}' leads nowhere or is there twice; restore a backup",
                found.name
            );
            return Err(stored::damaged(detail));
        }
        self.add(router, number, binding);
        Ok(true)
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Router> {
        self.by_id.get(&id)
    }

    /// The router of a name.
    pub(crate) fn find(&self, namespace: NamespaceId, name: &str) -> Option<&Router> {
        let id = self.by_name.get(&namespace)?.get(name)?;
        self.by_id.get(id)
    }

    /// Whether there is a router of a name in any case of its letters.
    pub(crate) fn has_name_like(&self, namespace: NamespaceId, name: &str) -> bool {
        let is_like = |it: &str| it.eq_ignore_ascii_case(name);
        let mut always = PREDECLARED.iter();
        always.any(|(it, _)| is_like(it)) || self.of(namespace).any(|it| is_like(&it.name))
    }

    /// The routers of a namespace, in the order of their names.
    pub(crate) fn of(&self, namespace: NamespaceId) -> impl Iterator<Item = &Router> {
        let names = self.by_name.get(&namespace).into_iter().flatten();
        names.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// The namespaces that have routers of their own.
    pub(crate) fn namespaces(&self) -> Vec<NamespaceId> {
        self.by_name.keys().copied().collect()
    }

    /// Gives each router of a namespace the alternate that its policy names.
    pub(crate) fn govern(
        &mut self,
        namespace: NamespaceId,
        alternate: impl Fn(&str) -> Option<String>,
    ) {
        for (name, id) in self.by_name.get(&namespace).into_iter().flatten() {
            let router = self.by_id.get_mut(id).expect("a name is that of a router");
            router.governed_alternate = alternate(name);
        }
    }

    /// Whether the routers that every namespace has are rows of this one.
    pub(crate) fn has_rows(&self, namespace: NamespaceId) -> bool {
        self.by_name.contains_key(&namespace)
    }

    /// Makes them rows.
    pub(crate) fn make_rows(
        &mut self,
        namespace: NamespaceId,
        mut next_id: impl FnMut() -> EntityId,
        cx: &mut Context<'_>,
    ) {
        for (name, kind) in PREDECLARED {
            let (id, settings) = (next_id(), RouterSettings::new(kind));
            let router = Router::new(id, namespace, name.to_owned(), settings);
            self.create(router, cx);
            if name == DEFAULT_ROUTER {
                self.heads.insert(id, Head::empty());
            }
        }
    }

    /// Makes a router that is not there.
    pub(crate) fn create(&mut self, router: Router, cx: &mut Context<'_>) {
        cx.write(Write::PutEntity(definition::row_of_router(&router)));
        self.insert(router);
    }

    fn insert(&mut self, router: Router) {
        let names = self.by_name.entry(router.namespace).or_default();
        names.insert(router.name.clone(), router.id);
        self.by_id.insert(router.id, router);
    }

    /// How many there are besides those of every namespace.
    pub(crate) fn count(&self) -> usize {
        self.by_id.len() - self.by_name.len() * PREDECLARED.len()
    }

    /// How many bindings all of them have.
    pub(crate) fn bindings(&self) -> usize {
        self.bindings
    }

    /// What the arguments of all bindings take, in bytes.
    pub(super) fn argument_bytes(&self) -> usize {
        self.argument_bytes
    }

    /// Makes a binding that is not there.
    pub(super) fn bind(&mut self, router: EntityId, binding: Binding, cx: &mut Context<'_>) {
        let found = self.by_id.get(&router);
        let found = found.expect("the caller has found it");
        let number = found.bindings.next_number();
        cx.write(stored::put(router, number, &binding));
        self.add(router, number, binding);
    }

    fn add(&mut self, router: EntityId, number: u64, binding: Binding) {
        self.bindings += 1;
        self.argument_bytes += binding.argument_bytes();
        let of_target = self.by_target.entry(binding.target).or_default();
        of_target.insert((router, number));
        let found = self.by_id.get_mut(&router);
        let found = found.expect("the caller has found it");
        found.bindings.add(number, binding);
    }

    /// Removes a binding, and its router if that is to go with the last one.
    pub(super) fn unbind(&mut self, router: EntityId, number: u64, cx: &mut Context<'_>) {
        if self.take(router, number, cx) {
            self.remove(router, cx);
        }
    }

    /// Removes a router, the bindings from it and to it, and the routers that go with those.
    pub(crate) fn remove(&mut self, router: EntityId, cx: &mut Context<'_>) {
        let mut gone = vec![router];
        while let Some(id) = gone.pop() {
            // One that goes with two others is named twice.
            let Some(router) = self.by_id.remove(&id) else {
                continue;
            };
            if let Some(names) = self.by_name.get_mut(&router.namespace) {
                names.remove(&router.name);
            }
            for (number, binding) in router.bindings.iter() {
                self.forget(binding, (id, number));
            }
            // Its bindings are entries of it.
            cx.write(Write::RemoveEntity(id));
            gone.extend(self.unbind_all(Target::Router(id), cx));
        }
    }

    /// Removes the routers of a namespace, but for those that every namespace has, and the bindings
    /// from those.
    pub(crate) fn clear(&mut self, namespace: NamespaceId, cx: &mut Context<'_>) {
        let own = self
            .of(namespace)
            .filter(|it| predeclared(&it.name).is_none());
        let own: Vec<_> = own.map(|router| router.id).collect();
        for router in own {
            self.remove(router, cx);
        }
        let left = self.of(namespace).flat_map(|router| {
            let numbers = router.bindings.iter().map(|(number, _)| number);
            numbers.map(|number| (router.id, number))
        });
        let left: Vec<_> = left.collect();
        for (router, number) in left {
            self.unbind(router, number, cx);
        }
    }

    /// Removes all routers of a namespace that is gone, and to which no row leads any more.
    pub(crate) fn remove_namespace(&mut self, namespace: NamespaceId, cx: &mut Context<'_>) {
        let all: Vec<_> = self.of(namespace).map(|router| router.id).collect();
        for router in all {
            self.remove(router, cx);
            self.heads.remove(&router);
            self.touched.remove(&router);
        }
        self.by_name.remove(&namespace);
    }

    /// An entity is gone, and with it the bindings that lead to it.
    pub(crate) fn entity_removed(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        for router in self.unbind_all(Target::Entity(entity), cx) {
            self.remove(router, cx);
        }
    }

    /// Removes all bindings to a target. Returns the routers that are to go.
    fn unbind_all(&mut self, target: Target, cx: &mut Context<'_>) -> Vec<EntityId> {
        let bindings = self.by_target.get(&target).cloned().unwrap_or_default();
        let gone = bindings.into_iter();
        gone.filter_map(|(router, number)| self.take(router, number, cx).then_some(router))
            .collect()
    }

    /// Removes a binding. Returns whether its router is to go.
    fn take(&mut self, router: EntityId, number: u64, cx: &mut Context<'_>) -> bool {
        let found = self.by_id.get_mut(&router);
        let found = found.expect("a router that goes takes its bindings along");
        let binding = found.bindings.remove(number);
        let binding = binding.expect("the caller has found it");
        let is_left = found.is_left();
        cx.write(stored::remove(router, number));
        self.forget(&binding, (router, number));
        is_left
    }

    fn forget(&mut self, binding: &Binding, place: (EntityId, u64)) {
        self.bindings -= 1;
        self.argument_bytes -= binding.argument_bytes();
        let of_target = self.by_target.get_mut(&binding.target);
        let of_target = of_target.expect("a binding that goes was added");
        of_target.remove(&place);
        if of_target.is_empty() {
            self.by_target.remove(&binding.target);
        }
    }

    /// The place of a body that several queues are about to share.
    pub(super) fn take_body(&mut self, namespace: NamespaceId) -> BodyPointer {
        let home = self.find(namespace, DEFAULT_ROUTER).expect(HAS_DEFAULT).id;
        let head = self.heads.get_mut(&home).expect(HAS_DEFAULT);
        let number = head.next_number;
        head.next_number = number.next();
        self.touched.insert(home);
        BodyPointer { home, number }
    }

    /// At the end of a turn, writes what has changed.
    pub(crate) fn write_heads(&mut self, cx: &mut Context<'_>) {
        for entity in std::mem::take(&mut self.touched) {
            let head = self.heads.get(&entity).expect(HAS_DEFAULT).clone();
            cx.write(Write::PutHead { entity, head });
        }
    }
}
