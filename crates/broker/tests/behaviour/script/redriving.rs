//! Lines of scripts that put dead letters back.

use broker::{Command, Incoming, RedrivenMessage, SubqueueId};
use bytes::Bytes;

use super::{Stage, numbers, subqueue};

impl Stage {
    /// Redrives what a receiver was given, or what stands in its place: `as=TEXT`.
    pub(super) fn redrive(&mut self, args: &[&str]) {
        let (entity, subqueue) = (self.entity(args), subqueue(args));
        for number in numbers(args) {
            let key = (args[0].to_owned(), number);
            let payload = self.payloads.get(&key).cloned().unwrap_or_default();
            let request = self.request(&format!("redrive {} #{number}", args[0]));
            let token = self.token(args[0], number);
            self.turn(vec![Command::Redrive {
                request,
                subqueue: SubqueueId { entity, subqueue },
                token,
                message: match args.iter().find_map(|it| it.strip_prefix("as=")) {
                    Some(text) => RedrivenMessage::Edited(Box::new(Incoming {
                        payload: Bytes::copy_from_slice(text.as_bytes()),
                        ..Incoming::default()
                    })),
                    None => RedrivenMessage::Unchanged(payload),
                },
            }]);
        }
    }
}
