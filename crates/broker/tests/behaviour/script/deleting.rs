//! Lines of scripts that delete messages.

use broker::{Command, SubqueueId, Wall};
use bytes::Bytes;

use super::{START, Stage, millis, named, subqueue};

impl Stage {
    /// Deletes up to a count; by a connection that asks for nothing else, if none is named.
    pub(super) fn delete(&mut self, args: &[&str]) {
        let what = format!("delete {}", args.join(" "));
        let request = self.request_of(named(args, "by=").unwrap_or("r0"), &what);
        let before = named(args, "before=").map(|before| START + millis(before));
        self.turn(vec![Command::DeleteMessages {
            request,
            subqueue: SubqueueId {
                entity: self.entity(args),
                subqueue: subqueue(args),
            },
            session: named(args, "session=").map(|id| Bytes::from(id.to_owned())),
            enqueued_before: Wall(before.unwrap_or(u64::MAX)),
            count: args[0].parse().unwrap(),
        }]);
    }
}
