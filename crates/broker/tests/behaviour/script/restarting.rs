//! Lines of scripts that restart the broker.

use broker::Shard;
use bytes::Bytes;
use store::{EntityRow, Store, Write, WriteSet};

use super::{Stage, describe};

impl Stage {
    /// `older`: with the store as a broker would have left it that folds no session ids.
    pub(super) fn restart(&mut self, older: bool) {
        self.audit();
        if older {
            self.compare_session_ids_exactly();
        }
        let mut settings = self.settings.clone();
        // A process has its own seed; an old token means nothing to a new one.
        settings.seed[0] = settings.seed[0].wrapping_add(1);
        self.settings = settings.clone();
        self.waiting.clear();
        self.restart_clock();
        let store = Box::new(self.disk.crash());
        self.shard = Shard::open(settings, describe, store, self.broker_now()).unwrap();
    }

    fn compare_session_ids_exactly(&mut self) {
        let mut store = self.disk.crash();
        let mut set = WriteSet::default();
        for row in self
            .disk
            .with_current(|image| image.entities.clone())
            .values()
        {
            let mut definition: serde_json::Value =
                serde_json::from_slice(&row.definition).unwrap();
            let fields = definition.as_object_mut().unwrap();
            assert!(fields.remove("session_ids").is_some());
            let definition = Bytes::from(definition.to_string());
            set.push(Write::PutEntity(EntityRow {
                definition,
                ..row.clone()
            }));
        }
        store.submit(set);
        self.disk.sync_all();
    }
}
