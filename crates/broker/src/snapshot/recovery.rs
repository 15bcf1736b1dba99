//! Recovery: what a store has kept of snapshots can be made entities again, or nothing is served.

use store::{EntityId, EntityRow, NamespaceId, StoreError};

use super::{Frozen, Snapshots};
use crate::api::rule;
use crate::entities::definition::Definition;
use crate::queue::Description;
use crate::queue::kind::Kind;

impl Frozen {
    /// What an entity with this id would be made as.
    pub(super) fn describe(
        &self,
        id: EntityId,
        namespace: NamespaceId,
    ) -> Result<Description, StoreError> {
        let row = EntityRow {
            id,
            namespace,
            path: self.path.clone(),
            definition: self.definition.clone(),
        };
        match Definition::decode(&row)? {
            Definition::Entity(description) => Ok(*description),
            _ => Err(self.damaged("it is no entity that messages are sent to")),
        }
    }

    fn damaged(&self, detail: &str) -> StoreError {
        StoreError::Corrupt {
            what: format!("what a snapshot has of {}", self.path),
            detail: detail.to_owned(),
        }
    }
}

impl Snapshots {
    /// What a snapshot has of an entity. The snapshot is older.
    pub(crate) fn recover_part(
        &mut self,
        snapshot: EntityId,
        part: EntityId,
        frozen: Frozen,
    ) -> Result<(), StoreError> {
        frozen.describe(part, NamespaceId::default())?;
        if !self.by_id.contains_key(&snapshot) {
            return Err(frozen.damaged("its snapshot is missing; restore a backup"));
        }
        self.insert_part(snapshot, part, frozen);
        Ok(())
    }

    /// The topic of a subscription is in the same snapshot, and older.
    pub(crate) fn check_topics(&self) -> Result<(), StoreError> {
        for snapshot in self.by_id.values() {
            for (part, frozen) in &snapshot.frozen {
                let kind = frozen.describe(*part, snapshot.namespace)?.kind;
                // Queues and topics are of no topic.
                let Some(topic) = kind.topic() else {
                    continue;
                };
                let mut older = snapshot.frozen.range(..part);
                let found = older.find(|(_, other)| other.source == topic);
                let kind = match found {
                    Some((part, topic)) => topic.describe(*part, snapshot.namespace)?.kind,
                    None => Kind::Queue,
                };
                if !matches!(kind, Kind::Topic(_)) {
                    return Err(frozen.damaged("its topic is missing; restore a backup"));
                }
            }
        }
        Ok(())
    }

    /// Rules can be in force again.
    pub(crate) fn check_rules(&self) -> Result<(), StoreError> {
        let frozen = self.by_id.values().flat_map(|it| it.frozen.values());
        for frozen in frozen {
            for entry in &frozen.rules {
                let compiled = rule::decode(entry)?.compile();
                compiled.map_err(|error| frozen.damaged(&error.to_string()))?;
            }
        }
        Ok(())
    }
}
