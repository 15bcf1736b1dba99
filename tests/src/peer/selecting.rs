//! Selecting: receivers that are given only the messages that a selector selects.

use std::io::{Read, Write};

use amqp::{Role, Source, Symbol, Target, TargetTerminus, Value};
use endpoint::LinkId;

use super::Peer;

impl<S: Read + Write> Peer<S> {
    /// Opens a receiver in peek-lock mode with so much credit, for what `selector` selects.
    ///
    /// # Panics
    /// When it is refused.
    pub fn selecting_receiver(&mut self, queue: &str, selector: &str, credit: u32) -> LinkId {
        let name = Symbol::new("jms-selector");
        let source = Source {
            address: Some(Value::from(queue)),
            filter: Some(vec![(Value::Symbol(name), Value::from(selector))]),
            ..Source::default()
        };
        let target = TargetTerminus::Node(Target::default());
        let link = self.ask_for(Role::Receiver, source, target);
        self.answer(link).expect("the receiver is granted");
        self.credit(link, credit);
        link
    }
}
