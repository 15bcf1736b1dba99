//! Subscriptions of JMS clients as a script writes them: `subscribe r1/2 of=t name=s client=c
//! durable shared`, and behind `where` the selector. Without a name the subscription is the
//! consumer's own. `unsubscribe s client=c` deletes a durable one.

use broker::{
    ClientAffineProperties, Command, Order, ReceiveMode, SubscribeError, SubscribeRequest,
    Subscribed, client_affine_name,
};

use super::{Stage, millis, named, receiver};
use crate::world::administer;

impl Stage {
    pub(super) fn subscribe(&mut self, args: &[&str]) {
        let mut parts = args.splitn(2, |word| *word == "where");
        let args = parts.next().unwrap();
        let selector = parts.next().map(|words| words.join(" "));
        let request = SubscribeRequest {
            topic: self.named_entity(named(args, "of=").unwrap()),
            name: named(args, "name=").map(str::to_owned),
            properties: ClientAffineProperties {
                client_id: named(args, "client=").unwrap_or("").to_owned(),
                is_durable: args.contains(&"durable"),
                is_shared: args.contains(&"shared"),
                selector,
            },
            auto_delete_on_idle: named(args, "idle=").map_or(u64::MAX, millis),
            mode: ReceiveMode::PeekLock,
        };
        self.turn(vec![Command::Subscribe {
            receiver: receiver(args[0]),
            request: Box::new(request),
        }]);
    }

    pub(super) fn unsubscribe(&mut self, args: &[&str]) {
        let client_id = named(args, "client=").unwrap_or("");
        let name = client_affine_name(args[0], client_id, true).unwrap();
        let request = self.request(&format!("unsubscribe {}", args[0]));
        self.turn(vec![administer(request, Order::Unsubscribe { name })]);
    }
}

/// What a consumer hears of its subscription. A name that the broker has made up is left out.
pub fn subscribed(name: &str, result: &Result<Subscribed, SubscribeError>) -> String {
    match result {
        Ok(subscribed) => {
            let (topic, below) = subscribed.path.rsplit_once('/').unwrap();
            let (own, rest) = below.split_once('$').unwrap();
            let is_made_up = own.len() == 32 && own.bytes().all(|it| it.is_ascii_hexdigit());
            let own = if is_made_up { "~" } else { own };
            format!("{name} consumes {topic}/{own}${rest}")
        }
        Err(error) => format!("{name} has no subscription: {error}"),
    }
}
