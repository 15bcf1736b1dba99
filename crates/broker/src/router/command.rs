//! Orders about routers and bindings.
//!
//! Everything that can be refused is looked at before anything is made. Two bindings are the same
//! whatever the order of their arguments.

use store::NamespaceId;

use super::binding::{self, Binding};
use super::routers::Routers;
use super::target::Target;
use super::{PREDECLARED, Router, predeclared, stored};
use crate::api::kind::EntityKind;
use crate::api::page::Page;
use crate::api::router::{
    self, BindingDestination, DEFAULT_ROUTER, MAX_ARGUMENT_BYTES, MAX_BINDING_ARGUMENT_BYTES,
    MAX_BINDINGS, MAX_ROUTER_NAME, MAX_ROUTERS, RESERVED_ROUTERS, RouterAnswer, RouterError,
    RouterInfo, RouterOrder, RouterSettings,
};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::kind::Kind;

/// Carries an order out.
pub(crate) fn carry_out(
    directory: &mut Directory,
    namespace: NamespaceId,
    order: RouterOrder,
    cx: &mut Context<'_>,
) -> Result<RouterAnswer, RouterError> {
    match order {
        RouterOrder::Declare { name, settings } => {
            declare(directory, namespace, name, *settings, cx)?;
            Ok(RouterAnswer::Done)
        }
        RouterOrder::Remove { name } => {
            remove(directory, namespace, name, cx)?;
            Ok(RouterAnswer::Done)
        }
        RouterOrder::Describe { name } => {
            let info = describe(&directory.routers, namespace, &name);
            let info = info.ok_or(RouterError::NotFound(name))?;
            Ok(RouterAnswer::Router(Box::new(info)))
        }
        RouterOrder::List { skip, top } => {
            let page = list(&directory.routers, namespace, skip, top);
            Ok(RouterAnswer::Routers(page))
        }
        RouterOrder::Bind(binding) => {
            bind(directory, namespace, *binding, cx)?;
            Ok(RouterAnswer::Done)
        }
        RouterOrder::Unbind(binding) => {
            unbind(directory, namespace, *binding, cx)?;
            Ok(RouterAnswer::Done)
        }
        RouterOrder::ListBindings {
            source,
            destination,
            key,
            skip,
            top,
        } => {
            let wanted = (source.as_deref(), destination.as_ref(), key.as_deref());
            let page = list_bindings(directory, namespace, wanted, skip, top);
            Ok(RouterAnswer::Bindings(page))
        }
    }
}

fn declare(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: String,
    settings: RouterSettings,
    cx: &mut Context<'_>,
) -> Result<(), RouterError> {
    if name == DEFAULT_ROUTER {
        return Err(RouterError::Default);
    }
    let found = describe(&directory.routers, namespace, &name);
    if let Some(found) = found {
        return match settings.difference(&found.settings) {
            Some(difference) => Err(RouterError::Different { name, difference }),
            None => Ok(()),
        };
    }
    router::check_router_name(&name)?;
    if !cx.shared.settings.tier.has_topics() {
        return Err(RouterError::NotInTier("exchanges"));
    }
    let taken = directory.find(namespace, &name);
    let taken = taken.and_then(|id| directory.get(id));
    if taken.is_some_and(|queue| queue.kind.seen() == EntityKind::Topic) {
        return Err(RouterError::TopicExists(name));
    }
    check_arguments("the arguments of a router", &settings.arguments)?;
    if directory.routers.count() >= MAX_ROUTERS {
        let (limit, what) = (MAX_ROUTERS, "routers");
        return Err(RouterError::TooMany { limit, what });
    }
    directory.make_router_rows(namespace, cx);
    let id = directory.next_id();
    let mut router = Router::new(id, namespace, name, settings);
    router.governed_alternate = directory.policies.alternate(namespace, &router.name);
    directory.routers.create(router, cx);
    Ok(())
}

fn check_arguments(
    what: &'static str,
    arguments: &[(String, amqp::Value)],
) -> Result<(), RouterError> {
    if binding::encoded_arguments(arguments).len() > MAX_ARGUMENT_BYTES {
        let limit = MAX_ARGUMENT_BYTES;
        return Err(RouterError::TooLong { limit, what });
    }
    Ok(())
}

fn remove(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: String,
    cx: &mut Context<'_>,
) -> Result<(), RouterError> {
    if name == DEFAULT_ROUTER {
        return Err(RouterError::Default);
    }
    if name.starts_with(RESERVED_ROUTERS) {
        return Err(RouterError::Reserved(name));
    }
    let found = directory.routers.find(namespace, &name).map(|it| it.id);
    let id = found.ok_or(RouterError::NotFound(name))?;
    directory.routers.remove(id, cx);
    Ok(())
}

fn describe(routers: &Routers, namespace: NamespaceId, name: &str) -> Option<RouterInfo> {
    let found = routers.find(namespace, name).map(Router::info);
    found.or_else(|| without_row(name))
}

/// A router that is always there and has no row yet.
fn without_row(name: &str) -> Option<RouterInfo> {
    let settings = predeclared(name)?;
    Some(RouterInfo {
        name: name.to_owned(),
        settings,
        bindings: 0,
    })
}

fn list(routers: &Routers, namespace: NamespaceId, skip: usize, top: usize) -> Page<RouterInfo> {
    if routers.has_rows(namespace) {
        return page(routers.of(namespace).map(Router::info), skip, top);
    }
    let always = PREDECLARED.iter().filter_map(|(name, _)| without_row(name));
    page(always, skip, top)
}

fn page<T>(found: impl Iterator<Item = T>, skip: usize, top: usize) -> Page<T> {
    let mut found = found.skip(skip);
    let items = found.by_ref().take(top).collect();
    let more = found.next().is_some();
    Page { items, more }
}

fn bind(
    directory: &mut Directory,
    namespace: NamespaceId,
    binding: router::Binding,
    cx: &mut Context<'_>,
) -> Result<(), RouterError> {
    check_ends(&binding)?;
    if !cx.shared.settings.tier.has_topics() {
        return Err(RouterError::NotInTier("bindings"));
    }
    if binding.key.len() > MAX_ROUTER_NAME {
        let (limit, what) = (MAX_ROUTER_NAME, "a binding key");
        return Err(RouterError::TooLong { limit, what });
    }
    check_arguments("the arguments of a binding", &binding.arguments)?;
    let source = describe(&directory.routers, namespace, &binding.source);
    let source = source.ok_or_else(|| RouterError::NotFound(binding.source.clone()))?;
    stored::check(source.settings.kind, &binding.key, &binding.arguments)?;
    match &binding.destination {
        BindingDestination::Router(name) => {
            let found = describe(&directory.routers, namespace, name);
            found.ok_or_else(|| RouterError::NotFound(name.clone()))?;
        }
        entity @ BindingDestination::Entity(_) => drop(directory.target(namespace, entity)?),
    }
    directory.make_router_rows(namespace, cx);
    let target = directory.target(namespace, &binding.destination)?;
    let source = directory.routers.find(namespace, &binding.source);
    let source = source.expect("it was described above, so it has a row by now");
    let binding = row_of(binding, target);
    if source.bindings.find(&binding).is_some() {
        return Ok(());
    }
    if directory.routers.bindings() >= MAX_BINDINGS {
        let (limit, what) = (MAX_BINDINGS, "bindings");
        return Err(RouterError::TooMany { limit, what });
    }
    let bytes = directory.routers.argument_bytes() + binding.argument_bytes();
    if bytes > MAX_BINDING_ARGUMENT_BYTES {
        let (limit, what) = (
            MAX_BINDING_ARGUMENT_BYTES,
            "the arguments of all bindings together",
        );
        return Err(RouterError::TooLong { limit, what });
    }
    let source = source.id;
    directory.routers.bind(source, binding, cx);
    Ok(())
}

fn unbind(
    directory: &mut Directory,
    namespace: NamespaceId,
    binding: router::Binding,
    cx: &mut Context<'_>,
) -> Result<(), RouterError> {
    check_ends(&binding)?;
    let Some(source) = directory.routers.find(namespace, &binding.source) else {
        return Ok(());
    };
    let Ok(target) = directory.target(namespace, &binding.destination) else {
        return Ok(());
    };
    if let Some(number) = source.bindings.find(&row_of(binding, target)) {
        let source = source.id;
        directory.routers.unbind(source, number, cx);
    }
    Ok(())
}

/// The default router is bound to every queue by its name, and to nothing else.
fn check_ends(binding: &router::Binding) -> Result<(), RouterError> {
    let leads_to_default =
        matches!(&binding.destination, BindingDestination::Router(name) if name == DEFAULT_ROUTER);
    if binding.source == DEFAULT_ROUTER || leads_to_default {
        return Err(RouterError::Default);
    }
    Ok(())
}

fn row_of(binding: router::Binding, target: Target) -> Binding {
    let router::Binding {
        key, mut arguments, ..
    } = binding;
    arguments.sort_by(|(one, _), (two, _)| one.cmp(two));
    Binding {
        target,
        key,
        arguments,
    }
}

impl Directory {
    fn target(
        &self,
        namespace: NamespaceId,
        destination: &BindingDestination,
    ) -> Result<Target, RouterError> {
        match destination {
            BindingDestination::Router(name) => {
                let found = self.routers.find(namespace, name);
                let found = found.ok_or_else(|| RouterError::NotFound(name.clone()))?;
                Ok(Target::Router(found.id))
            }
            BindingDestination::Entity(path) => {
                let found = self.find_exactly(namespace, path);
                let found = found.ok_or_else(|| RouterError::NoDestination(path.clone()))?;
                match found.kind {
                    Kind::Queue | Kind::Topic(_) => Ok(Target::Entity(found.id)),
                    Kind::Subscription(_) => Err(RouterError::Subscription(path.clone())),
                    Kind::Transfer { .. } => Err(RouterError::NoDestination(path.clone())),
                }
            }
        }
    }

    fn destination(&self, target: Target) -> BindingDestination {
        const THERE: &str = "a target that goes takes the bindings to it along";
        match target {
            Target::Entity(id) => {
                BindingDestination::Entity(self.get(id).expect(THERE).path.clone())
            }
            Target::Router(id) => {
                BindingDestination::Router(self.routers.get(id).expect(THERE).name.clone())
            }
        }
    }
}

/// What bindings are listed by: source, destination and key, each of which may be left open.
type Wanted<'a> = (
    Option<&'a str>,
    Option<&'a BindingDestination>,
    Option<&'a str>,
);

fn list_bindings(
    directory: &Directory,
    namespace: NamespaceId,
    (source, destination, key): Wanted<'_>,
    skip: usize,
    top: usize,
) -> Page<router::Binding> {
    let target = match destination.map(|it| directory.target(namespace, it)) {
        Some(Err(_)) => return page(std::iter::empty(), skip, top),
        Some(Ok(target)) => Some(target),
        None => None,
    };
    let routers = directory.routers.of(namespace);
    let routers = routers.filter(|router| source.is_none_or(|name| name == router.name));
    let bindings = routers.flat_map(|router| {
        let bindings = router.bindings.iter();
        bindings.map(move |(_, binding)| (router, binding))
    });
    let found = bindings.filter(|(_, binding)| {
        target.is_none_or(|target| target == binding.target)
            && key.is_none_or(|key| key == binding.key)
    });
    let shown = found.map(|(router, binding)| router::Binding {
        source: router.name.clone(),
        destination: directory.destination(binding.target),
        key: binding.key.clone(),
        arguments: binding.arguments.clone(),
    });
    page(shown, skip, top)
}
