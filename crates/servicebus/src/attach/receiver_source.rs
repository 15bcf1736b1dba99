//! Receiver source: the messages that a receiver link asks for, by its source.
//! (docs/spec/amqp.md#3.5) [AMQP 3.5.3, 3.5.8]
//!
//! A selector is recognised by its filter's descriptor or, if the value is a plain string, by its
//! key. With distribution mode "copy" the link browses. Neither can be combined with a session. The
//! reply repeats the selector as it was received, because it is in force, and no other filter.

use std::sync::Arc;

use amqp::{Attach, Error, Map, Value};
use broker::{Access, Command, ReceiverId, Selector, Subqueue, SubqueueId};
use store::EntityId;

use crate::errors;

/// The name of a JMS client's filter, and its descriptor.
const SELECTOR: &str = "apache.org:selector-filter:string";
const SELECTOR_CODE: u64 = 0x0000_468c_0000_0004;
/// The name in some other clients.
const JMS_SELECTOR: &str = "jms-selector";
/// Most characters of a selector, as of any expression. (docs/spec/entities.md#4)
const MAX_SELECTOR: usize = 1_024;

/// The selector and distribution mode of a receiver's source.
#[derive(Debug)]
pub(crate) struct ReceiverSource {
    selector: Option<Arc<Selector>>,
    /// The filter of the reply.
    pub(crate) filter: Option<Map>,
    /// Whether the link browses.
    pub(crate) browses: bool,
}

impl ReceiverSource {
    /// Reads the source of a receiver's attach.
    pub(crate) fn of(attach: &Attach) -> Result<Self, Error> {
        let source = attach.source.as_deref();
        let mode = source.and_then(|source| source.distribution_mode.as_ref());
        let browses = match mode.map(amqp::Symbol::as_str) {
            None | Some("move") => false,
            Some("copy") => true,
            Some(_) => return Err(errors::unknown_distribution_mode()),
        };
        let filters = source.and_then(|source| source.filter.as_deref());
        let mut selectors = filters.unwrap_or_default().iter().filter(is_selector);
        let filter = selectors.next();
        if selectors.next().is_some() {
            return Err(errors::several_selectors());
        }
        let selector = filter.map(|(_, value)| parse(value)).transpose()?;
        Ok(Self {
            selector: selector
                .filter(|selector| !selector.is_blank())
                .map(Arc::new),
            filter: filter.map(|filter| vec![filter.clone()]),
            browses,
        })
    }

    /// Whether it has neither a selector nor the mode to browse, as most receivers.
    pub(crate) fn is_plain(&self) -> bool {
        self.selector.is_none() && !self.browses
    }

    /// The same of a source whose distribution mode does not tell that it browses.
    /// (docs/spec/amqp.md#13.3)
    pub(crate) fn consuming(self) -> Self {
        Self {
            browses: false,
            ..self
        }
    }

    /// The text of the selector.
    pub(crate) fn selector_text(&self) -> Option<&str> {
        self.selector.as_deref().map(Selector::text)
    }

    /// The command that attaches the receiver.
    pub(crate) fn command(
        self,
        receiver: ReceiverId,
        entity: EntityId,
        subqueue: Subqueue,
        mode: broker::ReceiveMode,
    ) -> Command {
        let access = match self.browses {
            true => Access::Browse,
            false => Access::Consume(mode),
        };
        Command::Attach {
            receiver,
            subqueue: SubqueueId { entity, subqueue },
            access,
            selector: self.selector,
        }
    }
}

fn is_selector((key, value): &&(Value, Value)) -> bool {
    match value {
        Value::Described(pair) => {
            pair.0 == Value::Ulong(SELECTOR_CODE) || pair.0.as_text() == Some(SELECTOR)
        }
        _ => matches!(key.as_text(), Some(SELECTOR | JMS_SELECTOR)),
    }
}

fn parse(value: &Value) -> Result<Selector, Error> {
    let value = match value {
        Value::Described(pair) => &pair.1,
        value => value,
    };
    let Value::String(text) = value else {
        return Err(errors::no_selector("it must be a string"));
    };
    if text.len() > MAX_SELECTOR && text.chars().count() > MAX_SELECTOR {
        let reason = format!("it is longer than {MAX_SELECTOR} characters");
        return Err(errors::no_selector(&reason));
    }
    Selector::parse(text).map_err(|error| errors::no_selector(&error.to_string()))
}
