//! Selecting: receivers that are given only the messages that a selector selects, or those of the
//! next session.

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
        self.filtering_receiver(queue, "jms-selector", Value::from(selector), credit)
    }

    /// Opens a receiver in peek-lock mode with so much credit, for the next session of Service Bus
    /// that is free and has messages, and waits for one.
    ///
    /// # Panics
    /// When it is refused.
    pub fn next_session_receiver(&mut self, queue: &str, credit: u32) -> LinkId {
        self.filtering_receiver(queue, "com.microsoft:session-filter", Value::Null, credit)
    }

    fn filtering_receiver(
        &mut self,
        queue: &str,
        name: &'static str,
        value: Value,
        credit: u32,
    ) -> LinkId {
        let name = Symbol::new(name);
        let source = Source {
            address: Some(Value::from(queue)),
            filter: Some(vec![(Value::Symbol(name), value)]),
            ..Source::default()
        };
        let target = TargetTerminus::Node(Target::default());
        let link = self.ask_for(Role::Receiver, source, target);
        self.answer(link).expect("the receiver is granted");
        self.credit(link, credit);
        link
    }
}
