//! Directories: the entities of each namespace, as connections look them up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use access::{AccessRule, AccessRules, Directory, Entity, Rights, Secret};
use broker::Shard;
use dialect::{KeyOwner, Namespaces};
use store::NamespaceId;

use crate::server::{self, NAMESPACES};

/// See the head of this file.
pub struct Directories {
    all: Mutex<BTreeMap<NamespaceId, Arc<Directory>>>,
}

impl Directories {
    /// Those of a broker that has its entities.
    #[must_use]
    pub fn of(shard: &Shard) -> Self {
        let rules = AccessRules {
            rules: vec![AccessRule {
                name: "sim".to_owned(),
                primary: Secret::new("simkey".to_owned()),
                secondary: None,
                rights: Rights::ALL,
                entity: None,
            }],
            ..AccessRules::default()
        };
        let ids = (0..NAMESPACES.len()).map(server::namespace_id);
        let mut all: BTreeMap<_, _> = ids
            .map(|id| (id, Directory::of(id, rules.clone())))
            .collect();
        for info in shard.broker.queues() {
            if let Some(directory) = all.get_mut(&info.namespace) {
                directory.insert(Entity {
                    id: info.id,
                    path: info.path,
                    kind: info.kind,
                    settings: info.settings,
                    replaces: None,
                });
            }
        }
        for (namespace, rules) in shard.broker.rules() {
            if let Some(directory) = all.get_mut(&namespace) {
                directory.set_rules(rules);
            }
        }
        let all = all.into_iter().map(|(id, it)| (id, Arc::new(it)));
        Self {
            all: Mutex::new(all.collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NamespaceId, Arc<Directory>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That of the default namespace.
    #[must_use]
    pub fn default(&self) -> Arc<Directory> {
        let all = self.lock();
        Arc::clone(&all[&NamespaceId::default()])
    }

    /// Changes one, and returns it. Some namespaces have no clients that look entities up.
    pub fn change(
        &self,
        namespace: NamespaceId,
        change: impl FnOnce(&mut Directory),
    ) -> Option<Arc<Directory>> {
        let mut all = self.lock();
        let directory = all.get_mut(&namespace)?;
        change(Arc::make_mut(directory));
        Some(Arc::clone(directory))
    }
}

impl Namespaces for Directories {
    fn of_audience(&self, _path: &str) -> Option<Arc<Directory>> {
        None
    }

    fn of_host(&self, host: &str) -> Option<Arc<Directory>> {
        let name = host.strip_suffix(".localhost")?;
        let index = NAMESPACES.iter().position(|known| *known == name)?;
        let all = self.lock();
        all.get(&server::namespace_id(index)).cloned()
    }

    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>> {
        self.of_host(&format!("{name}.localhost"))
    }

    /// All namespaces have the same keys, so none is chosen by its key.
    fn of_key(&self, _name: &str) -> KeyOwner {
        KeyOwner::Several
    }
}
