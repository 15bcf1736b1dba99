//! Namespace registry: the namespaces of a server, as its connections look them up.
//!
//! Each namespace has a directory that its connections watch. The shard task alone changes the
//! registry, before it answers the order that has caused the change. Connections read it while they
//! open, requests of HTTP each once; no message passes by here.
//!
//! Invariant: the default namespace is always there, and its rules are the configuration's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use access::{AccessRules, Directory};
use broker::{
    Broker, DEFAULT_NAMESPACE, EntityChange, NamespaceChange, NamespaceDefinition, RuleSnapshot,
    Shard, name_in_host,
};
use dashmap::DashMap;
use dialect::{KeyOwner, Namespaces};
use store::NamespaceId;
use tokio::sync::watch;

use crate::shard::DirectoryReceiver;

/// A change of one turn that connections have to know.
#[derive(Debug)]
pub enum DirectoryChange {
    Namespace(NamespaceChange),
    Entity(Box<EntityChange>),
    Rules(NamespaceId, RuleSnapshot),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub struct NamespaceRegistry {
    default: watch::Sender<Arc<Directory>>,
    by_id: DashMap<NamespaceId, RegisteredNamespace>,
    by_name: DashMap<String, NamespaceId>,
    by_host: DashMap<String, NamespaceId>,
    by_key: DashMap<String, Vec<NamespaceId>>,
    /// Whether a fault rule of one of them compares whose operation it is.
    names_clients: AtomicBool,
    /// Whether a fault rule of one of them is for HTTP requests.
    matches_http: AtomicBool,
    /// Whether a fault rule is for the attach of senders.
    matches_senders: AtomicBool,
}

/// A namespace besides the default one.
#[derive(Debug)]
struct RegisteredNamespace {
    definition: Arc<NamespaceDefinition>,
    directory: watch::Sender<Arc<Directory>>,
    /// How many AMQP connections belong to it.
    connections: Arc<AtomicU32>,
}

/// A connection's place among those of its namespace, which is free once this is dropped.
#[derive(Debug)]
pub struct NamespacePlace(Arc<AtomicU32>);

impl Drop for NamespacePlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl NamespaceRegistry {
    /// The namespaces that a shard begins with. The rules are those of the default one.
    pub fn new(shard: &Shard, rules: AccessRules) -> Self {
        let registry = Self {
            default: watch::Sender::new(Arc::new(Directory::new(rules))),
            ..Self::default()
        };
        let broker = &shard.broker;
        let namespaces = broker.namespaces().map(DirectoryChange::Namespace);
        let entities = broker
            .entities()
            .map(|it| DirectoryChange::Entity(Box::new(it)));
        let rules = broker.rules();
        let rules = rules.map(|(namespace, rules)| DirectoryChange::Rules(namespace, rules));
        registry.apply(namespaces.chain(entities).chain(rules));
        registry
    }

    /// Whether connections have to tell the broker whose they are.
    pub fn names_clients(&self) -> bool {
        self.names_clients.load(Ordering::Acquire)
    }

    /// Whether HTTP requests have to be shown to the broker.
    pub fn matches_http(&self) -> bool {
        self.matches_http.load(Ordering::Acquire)
    }

    /// Whether connections have to ask the broker before they attach a sender.
    pub fn matches_senders(&self) -> bool {
        self.matches_senders.load(Ordering::Acquire)
    }

    /// The shard says what its fault rules ask for before it answers the order that has changed
    /// them.
    pub fn follow_faults(&self, broker: &Broker) {
        for (flag, now) in [
            (&self.names_clients, broker.faults_name_clients()),
            (&self.matches_http, broker.faults_match_http()),
            (&self.matches_senders, broker.faults_match_senders()),
        ] {
            if flag.load(Ordering::Acquire) != now {
                flag.store(now, Ordering::Release);
            }
        }
    }

    /// Counts a connection that belongs to a namespace from now on. The default one, which has no
    /// limits, counts none.
    ///
    /// # Errors
    /// The limit, if the namespace has that many.
    pub fn admit(&self, namespace: NamespaceId) -> Result<Option<NamespacePlace>, u32> {
        let Some(found) = self.by_id.get(&namespace) else {
            return Ok(None);
        };
        let limit = found.definition.limits.max_connections;
        let connections = Arc::clone(&found.connections);
        let one_more = |count| Some(count + 1).filter(|_| limit.is_none_or(|limit| count < limit));
        match connections.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more) {
            Ok(_) => Ok(Some(NamespacePlace(connections))),
            Err(count) => Err(limit.unwrap_or(count)),
        }
    }

    /// Takes over the changes of a turn, in their order.
    pub fn apply(&self, changes: impl IntoIterator<Item = DirectoryChange>) {
        let mut waiting: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for change in changes {
            match change {
                DirectoryChange::Namespace(change) => {
                    self.apply_to_directories(std::mem::take(&mut waiting));
                    self.apply_to_namespace(change);
                }
                DirectoryChange::Entity(ref entity) => {
                    waiting.entry(entity.namespace).or_default().push(change);
                }
                DirectoryChange::Rules(namespace, _) => {
                    waiting.entry(namespace).or_default().push(change);
                }
            }
        }
        self.apply_to_directories(waiting);
    }

    fn apply_to_directories(&self, waiting: BTreeMap<NamespaceId, Vec<DirectoryChange>>) {
        for (namespace, changes) in waiting {
            let apply = |directory: &mut Arc<Directory>| {
                let directory = Arc::make_mut(directory);
                for change in changes {
                    match change {
                        DirectoryChange::Entity(change) => directory.apply(*change),
                        DirectoryChange::Rules(_, rules) => directory.set_rules(rules),
                        DirectoryChange::Namespace(_) => {}
                    }
                }
            };
            if namespace == NamespaceId::default() {
                self.default.send_modify(apply);
            } else if let Some(found) = self.by_id.get(&namespace) {
                found.directory.send_modify(apply);
            }
        }
    }

    /// While a namespace changes it can be found all the time, by what it has before and after.
    fn apply_to_namespace(&self, change: NamespaceChange) {
        let id = change.id;
        let Some(definition) = change.definition else {
            return self.remove(id);
        };
        let rules = self.rules_of(&definition);
        let before = self.by_id.get_mut(&id).map(|mut known| {
            let set_rules =
                |it: &mut Arc<Directory>| Arc::make_mut(it).set_access_rules(rules.clone());
            known.directory.send_modify(set_rules);
            std::mem::replace(&mut known.definition, Arc::clone(&definition))
        });
        if before.is_none() {
            let directory = watch::Sender::new(Arc::new(Directory::of(id, rules)));
            let registered = RegisteredNamespace {
                definition: Arc::clone(&definition),
                directory,
                connections: Arc::default(),
            };
            self.by_id.insert(id, registered);
        }
        self.by_name.insert(definition.name.clone(), id);
        for host in &definition.hosts {
            self.by_host.insert(host.clone(), id);
        }
        for key in &definition.keys {
            let mut owners = self.by_key.entry(key.key_name.clone()).or_default();
            if !owners.contains(&id) {
                owners.push(id);
            }
        }
        if let Some(before) = before {
            self.forget(id, &before, &definition);
        }
    }

    fn remove(&self, id: NamespaceId) {
        if let Some((_, before)) = self.by_id.remove(&id) {
            self.by_name.remove(&before.definition.name);
            self.forget(id, &before.definition, &NamespaceDefinition::default());
            let deleted = Arc::new(Directory::deleted(id));
            before.directory.send_replace(deleted);
        }
    }

    /// A namespace has no longer what is not in `after`.
    fn forget(&self, id: NamespaceId, before: &NamespaceDefinition, after: &NamespaceDefinition) {
        for host in &before.hosts {
            if !after.hosts.contains(host) {
                self.by_host.remove(host);
            }
        }
        for key in &before.keys {
            let mut kept = after.keys.iter();
            if kept.any(|kept| kept.key_name == key.key_name) {
                continue;
            }
            if let Some(mut owners) = self.by_key.get_mut(&key.key_name) {
                owners.retain(|owner| *owner != id);
            }
            self.by_key
                .remove_if(&key.key_name, |_, owners| owners.is_empty());
        }
    }

    /// A namespace has its own keys; what else it accepts is the default one's to say.
    fn rules_of(&self, definition: &Arc<NamespaceDefinition>) -> AccessRules {
        let default = self.default.borrow();
        default.access().rules_of_namespace(definition)
    }

    /// Watches the directory of a namespace that is there.
    pub fn subscribe(&self, namespace: NamespaceId) -> Option<DirectoryReceiver> {
        if namespace == NamespaceId::default() {
            return Some(self.default.subscribe());
        }
        let found = self.by_id.get(&namespace)?;
        Some(found.directory.subscribe())
    }

    /// The name of a namespace besides the default one.
    pub fn name(&self, namespace: NamespaceId) -> Option<String> {
        let found = self.by_id.get(&namespace)?;
        Some(found.definition.name.clone())
    }

    /// The names of all namespaces besides the default one, in their order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.by_name.iter().map(|it| it.key().clone()).collect();
        names.sort_unstable();
        names
    }

    /// The namespace of a name.
    pub fn of_name(&self, name: &str) -> Option<NamespaceId> {
        match name {
            DEFAULT_NAMESPACE => Some(NamespaceId::default()),
            name => self.by_name.get(name).map(|found| *found),
        }
    }

    /// The directory of a namespace that is there.
    pub fn directory(&self, namespace: NamespaceId) -> Option<Arc<Directory>> {
        if namespace == NamespaceId::default() {
            return Some(Arc::clone(&self.default.borrow()));
        }
        let found = self.by_id.get(&namespace)?;
        let directory = Arc::clone(&found.directory.borrow());
        Some(directory)
    }

    /// Replaces the rules of the default namespace, and what follows from them for the others.
    pub fn set_access_rules(&self, rules: AccessRules) {
        self.default
            .send_modify(|directory| Arc::make_mut(directory).set_access_rules(rules));
        for namespace in &self.by_id {
            let rules = self.rules_of(&namespace.definition);
            namespace
                .directory
                .send_modify(|directory| Arc::make_mut(directory).set_access_rules(rules));
        }
    }

    /// Has connections look up the rights of their links again.
    pub fn recheck_access(&self) {
        let recheck = |directory: &mut Arc<Directory>| Arc::make_mut(directory).recheck_access();
        self.default.send_modify(recheck);
        for namespace in &self.by_id {
            namespace.directory.send_modify(recheck);
        }
    }
}

impl Namespaces for NamespaceRegistry {
    fn of_host(&self, host: &str) -> Option<Arc<Directory>> {
        let listed = self.by_host.get(host).map(|found| *found);
        let named = || self.of_name(name_in_host(host)?);
        self.directory(listed.or_else(named)?)
    }

    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>> {
        self.directory(self.of_name(name)?)
    }

    fn of_key(&self, key_name: &str) -> KeyOwner {
        let owners = self.by_key.get(key_name).map(|found| found.clone());
        let Some(owners) = owners.filter(|owners| !owners.is_empty()) else {
            return KeyOwner::Default;
        };
        if self.default.borrow().access().has_key(key_name) {
            return KeyOwner::Default;
        }
        match owners[..] {
            [only] => match self.directory(only) {
                Some(directory) => KeyOwner::One(directory),
                None => KeyOwner::Default,
            },
            _ => KeyOwner::Several,
        }
    }

    fn of_audience(&self, path: &str) -> Option<Arc<Directory>> {
        let (name, _) = path.split_once('/')?;
        let namespace = *self.by_name.get(name)?;
        let default = Arc::clone(&self.default.borrow());
        let mut ends = path.match_indices('/').map(|(end, _)| end);
        let is_entity = |end| default.get(&path[..end]).is_some();
        if is_entity(path.len()) || ends.any(is_entity) {
            return None;
        }
        self.directory(namespace)
    }
}

#[cfg(test)]
#[path = "namespace_registry_tests.rs"]
mod tests;
