//! Recovery: the directory as a store has kept it.
//!
//! Rows come in the order of their ids, so what an entity belongs to is there before it: its topic,
//! its via entity. What the store must have and has not is corruption, and nothing is served then.

use std::collections::BTreeMap;

use store::{EntityId, Entry, Recovery, StoreError};

use crate::api::settings::BrokerSettings;
use crate::context::token;
use crate::entities::definition::Definition;
use crate::entities::directory::Directory;
use crate::entities::template::Template;
use crate::entities::tombstone::{Bodies, Tombstone};
use crate::queue::Queue;
use crate::queue::kind::Kind;

impl Directory {
    /// The entities that a store has recovered.
    pub(crate) fn recover(
        settings: &BrokerSettings,
        recovery: Recovery,
    ) -> Result<Self, StoreError> {
        let mut directory = Self {
            last: recovery.last_entity.map_or(0, |id| id.0),
            version: token::first_version(settings.seed),
            first_version: token::first_version(settings.seed),
            ..Self::default()
        };
        let mut heads: BTreeMap<_, _> = recovery.heads.into_iter().collect();
        let mut template = Template::default();
        for row in recovery.entities {
            directory.namespaces.note_id(row.namespace);
            let head = heads.remove(&row.id).unwrap_or_else(store::Head::empty);
            let mut description = match Definition::decode(&row)? {
                Definition::Entity(description) => *description,
                Definition::Router(settings) => {
                    directory.last = directory.last.max(row.id.0);
                    directory.routers.recover(&row, *settings, head);
                    continue;
                }
                Definition::Snapshot(snapshot) => {
                    directory.last = directory.last.max(row.id.0);
                    directory.snapshots.insert(row.id, *snapshot);
                    continue;
                }
                Definition::Frozen {
                    snapshot,
                    mut frozen,
                } => {
                    directory.last = directory.last.max(row.id.0);
                    frozen.head = head;
                    directory
                        .snapshots
                        .recover_part(snapshot, row.id, *frozen)?;
                    continue;
                }
                Definition::Tombstone { topic, borrows } => {
                    let bodies = if borrows {
                        Bodies::NotLent
                    } else {
                        Bodies::All
                    };
                    let tombstone = Tombstone::new(row.id, row.namespace, topic, head, bodies);
                    directory.last = directory.last.max(row.id.0);
                    directory.tombstones.insert(row.id, tombstone);
                    continue;
                }
                Definition::Namespace(mut namespace) => {
                    directory.last = directory.last.max(row.id.0);
                    if namespace.template == template {
                        // One copy in memory.
                        namespace.template = template.clone();
                    }
                    template = namespace.template.clone();
                    directory.namespaces.recover(row.namespace, *namespace);
                    continue;
                }
                Definition::Policy(policy) => {
                    directory.last = directory.last.max(row.id.0);
                    directory.policies.recover(row.id, row.namespace, policy)?;
                    continue;
                }
            };
            let kind = std::mem::replace(&mut description.kind, Kind::Queue);
            // Ids rise, so the via entity is there before.
            description.kind = directory.recovered_kind(row.namespace, &row.path, kind);
            let window = settings.window;
            let mut queue = Queue::new(row.id, row.namespace, row.path, description, head, window);
            if queue.is_empty() {
                queue.rows.origins.forget_snapshots();
            }
            directory.insert(queue);
        }
        directory.check_topics()?;
        directory.snapshots.check_topics()?;
        directory.recover_deleted();
        let rules = directory.recover_bindings(recovery.rules)?;
        directory.snapshots.check_rules()?;
        directory.govern_all();
        directory.recover_rules(&rules)?;
        for row in recovery.expiries {
            if let Some(queue) = directory.get_mut(row.entity)
                && row.part == store::Part::Active
            {
                queue.expiry.recover(row.block, row.due_ms);
            } else if let Some(frozen) = directory.snapshots.part_mut(row.entity)
                && row.part == store::Part::Active
            {
                frozen.expiries.push((row.block, row.due_ms));
            }
        }
        directory.iter_mut().for_each(Queue::recheck_lives);
        Ok(directory)
    }

    /// Takes what is of routers and of snapshots out of what is of subscriptions too.
    fn recover_bindings(
        &mut self,
        entries: Vec<(EntityId, Entry)>,
    ) -> Result<Vec<(EntityId, Entry)>, StoreError> {
        let Self {
            routers,
            queues,
            snapshots,
            ..
        } = self;
        let mut rules = Vec::with_capacity(entries.len());
        for (id, entry) in entries {
            if let Some(frozen) = snapshots.part_mut(id) {
                frozen.rules.push(entry);
            } else if !routers.recover_binding(id, &entry, |it| queues.contains_key(&it))? {
                rules.push((id, entry));
            }
        }
        Ok(rules)
    }

    /// A subscription goes with its topic in one write set, so without it the store has lost
    /// something: nothing would arrive there any more, and no client would be told.
    fn check_topics(&self) -> Result<(), StoreError> {
        let is_lost = |queue: &&Queue| {
            let topic = queue.kind.topic();
            topic.is_some_and(|topic| {
                let topic = self.get(topic).map(|queue| &queue.kind);
                !matches!(topic, Some(Kind::Topic(_)))
            })
        };
        match self.iter().find(is_lost) {
            None => Ok(()),
            Some(queue) => Err(StoreError::Corrupt {
                what: format!("the subscription {}", queue.path),
                detail: "its topic is missing; restore a backup".to_owned(),
            }),
        }
    }
}
