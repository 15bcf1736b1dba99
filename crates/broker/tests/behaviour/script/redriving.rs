//! Lines of scripts that put dead letters back.

use broker::{Command, SubqueueId};

use super::{Stage, numbers, subqueue};

impl Stage {
    /// Redrives what a receiver was given.
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
                payload,
            }]);
        }
    }
}
