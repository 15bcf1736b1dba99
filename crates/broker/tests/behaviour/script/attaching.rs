//! Attaching as a script writes it: `r1`, `r1 delete`, `r1 hold`, `r1 dead`, `r1 copy`, with
//! `priority=N`, `timeout=TIME` and `told`, and behind `where` the selector.

use std::sync::Arc;

use broker::{Access, Command, Selector, SubqueueId};
use store::EntityId;

use super::{millis, mode, receiver, subqueue};

/// The command of a line.
pub fn command(args: &[&str], entity: EntityId) -> Command {
    let mut parts = args.splitn(2, |word| *word == "where");
    let args = parts.next().unwrap();
    let selector = parts.next().map(|words| words.join(" "));
    let selector = selector.map(|text| Arc::new(Selector::parse(&text).unwrap()));
    let (receiver, subqueue, mode) = (receiver(args[0]), subqueue(args), mode(args));
    let priority = args.iter().find_map(|arg| arg.strip_prefix("priority="));
    let timeout = args.iter().find_map(|arg| arg.strip_prefix("timeout="));
    let access = match priority {
        _ if args.contains(&"copy") => Access::Browse,
        None if timeout.is_none() && !args.contains(&"told") => Access::Consume(mode),
        priority => Access::Prioritized {
            mode,
            priority: priority.map_or(0, |it| it.parse().unwrap()),
            consumer_timeout: timeout.map(millis),
            hears_activity: args.contains(&"told"),
        },
    };
    Command::Attach {
        receiver,
        subqueue: SubqueueId { entity, subqueue },
        access,
        selector,
    }
}

/// What a receiver is told of its activity.
pub fn told(receiver: &str, active: bool) -> String {
    match active {
        true => format!("{receiver} is active"),
        false => format!("{receiver} is on standby"),
    }
}
