//! Attaching as a script writes it: `r1`, `r1 delete`, `r1 dead`, `r1 copy`, and behind `where`
//! the selector.

use std::sync::Arc;

use broker::{Command, Selector};
use store::EntityId;

use super::{mode, receiver, subqueue};

/// The command of a line.
pub fn command(args: &[&str], entity: EntityId) -> Command {
    let mut parts = args.splitn(2, |word| *word == "where");
    let args = parts.next().unwrap();
    let selector = parts.next().map(|words| words.join(" "));
    let selector = selector.map(|text| Arc::new(Selector::parse(&text).unwrap()));
    let (receiver, subqueue, mode) = (receiver(args[0]), subqueue(args), mode(args));
    match selector {
        selector if args.contains(&"copy") => Command::AttachBrowser {
            receiver,
            entity,
            subqueue,
            selector,
        },
        Some(selector) => Command::AttachSelective {
            receiver,
            entity,
            subqueue,
            mode,
            selector,
        },
        None => Command::Attach {
            receiver,
            entity,
            subqueue,
            mode,
        },
    }
}
