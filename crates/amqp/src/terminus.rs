//! Terminus: the source or target of a link. [AMQP 3.5.3, 3.5.4, 4.5.1]
//!
//! Addresses and filters are kept as they were received, because the reply repeats them
//! (docs/spec/amqp.md#rule-4). Null fields are read as the standard's defaults, and those are
//! written out.

#![allow(
    missing_docs,
    reason = "the fields are the standard's; the sections are cited"
)]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::Fields;
use crate::state::DeliveryState;
use crate::symbol::Symbol;
use crate::value::{Map, Value};

/// Where a link's messages come from. [AMQP 3.5.3]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Any type by the standard; a string in practice. Echoed exactly as it came.
    pub address: Option<Value>,
    pub durable: u32,
    pub expiry_policy: Option<Symbol>,
    pub timeout: u32,
    pub dynamic: bool,
    pub dynamic_node_properties: Option<Value>,
    pub distribution_mode: Option<Symbol>,
    /// Filter set: key symbol, value usually described.
    pub filter: Option<Map>,
    pub default_outcome: Option<DeliveryState>,
    pub outcomes: Vec<Symbol>,
    pub capabilities: Vec<Symbol>,
}

/// Where a link's messages go. [AMQP 3.5.4]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    pub address: Option<Value>,
    pub durable: u32,
    pub expiry_policy: Option<Symbol>,
    pub timeout: u32,
    pub dynamic: bool,
    pub dynamic_node_properties: Option<Value>,
    pub capabilities: Vec<Symbol>,
}

/// The value of an attach's target field.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetTerminus {
    /// An ordinary node.
    Node(Target),
    /// The transaction coordinator, with its capabilities. [AMQP 4.5.1]
    Coordinator(Vec<Symbol>),
}

impl Source {
    /// Reads a source that stands in an attach's field; `None` when the peer refuses the link.
    pub(crate) fn field(fields: &mut Fields<'_>) -> Result<Option<Box<Self>>, DecodeError> {
        let Some(cursor) = fields.present()? else {
            return Ok(None);
        };
        match cursor.descriptor()? {
            descriptor::SOURCE => Self::decode(cursor).map(|source| Some(Box::new(source))),
            other => Err(DecodeError::UnexpectedDescriptor(other)),
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "source", 11)?;
        let source = Self {
            address: fields.value()?,
            durable: durability(&mut fields)?,
            expiry_policy: fields.symbol("expiry-policy")?,
            timeout: fields.uint("timeout")?.unwrap_or(0),
            dynamic: fields.boolean("dynamic")?.unwrap_or(false),
            dynamic_node_properties: fields.value()?,
            distribution_mode: fields.symbol("distribution-mode")?,
            filter: fields.map("filter")?,
            default_outcome: DeliveryState::field(&mut fields)?,
            outcomes: fields.symbols("outcomes")?,
            capabilities: fields.symbols("capabilities")?,
        };
        fields.finish()?;
        Ok(source)
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::SOURCE, 11);
        encode::option(out, self.address.as_ref(), encode::value);
        encode::uint(out, self.durable);
        encode::option(out, self.expiry_policy.as_ref(), |out, policy| {
            encode::symbol(out, policy.as_str());
        });
        encode::uint(out, self.timeout);
        encode::boolean(out, self.dynamic);
        encode::option(out, self.dynamic_node_properties.as_ref(), encode::value);
        encode::option(out, self.distribution_mode.as_ref(), |out, mode| {
            encode::symbol(out, mode.as_str());
        });
        encode::option(out, self.filter.as_deref(), encode::map);
        encode::option(out, self.default_outcome.as_ref(), |out, outcome| {
            outcome.encode(out);
        });
        encode::symbols(out, &self.outcomes);
        encode::symbols(out, &self.capabilities);
        encode::list_finish(out, start);
    }
}

impl Target {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "target", 7)?;
        let target = Self {
            address: fields.value()?,
            durable: durability(&mut fields)?,
            expiry_policy: fields.symbol("expiry-policy")?,
            timeout: fields.uint("timeout")?.unwrap_or(0),
            dynamic: fields.boolean("dynamic")?.unwrap_or(false),
            dynamic_node_properties: fields.value()?,
            capabilities: fields.symbols("capabilities")?,
        };
        fields.finish()?;
        Ok(target)
    }

    fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::TARGET, 7);
        encode::option(out, self.address.as_ref(), encode::value);
        encode::uint(out, self.durable);
        encode::option(out, self.expiry_policy.as_ref(), |out, policy| {
            encode::symbol(out, policy.as_str());
        });
        encode::uint(out, self.timeout);
        encode::boolean(out, self.dynamic);
        encode::option(out, self.dynamic_node_properties.as_ref(), encode::value);
        encode::symbols(out, &self.capabilities);
        encode::list_finish(out, start);
    }
}

impl TargetTerminus {
    /// Reads a target that stands in an attach's field; `None` when the peer refuses the link.
    pub(crate) fn field(fields: &mut Fields<'_>) -> Result<Option<Box<Self>>, DecodeError> {
        let Some(cursor) = fields.present()? else {
            return Ok(None);
        };
        let terminus = match cursor.descriptor()? {
            descriptor::TARGET => Self::Node(Target::decode(cursor)?),
            descriptor::COORDINATOR => Self::Coordinator(coordinator(cursor)?),
            other => return Err(DecodeError::UnexpectedDescriptor(other)),
        };
        Ok(Some(Box::new(terminus)))
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Node(target) => target.encode(out),
            Self::Coordinator(capabilities) => {
                let start = encode::described_list(out, descriptor::COORDINATOR, 1);
                encode::symbols(out, capabilities);
                encode::list_finish(out, start);
            }
        }
    }
}

fn coordinator(cursor: &mut Cursor<'_>) -> Result<Vec<Symbol>, DecodeError> {
    let mut fields = Fields::open(cursor, "coordinator", 1)?;
    let capabilities = fields.symbols("capabilities")?;
    fields.finish()?;
    Ok(capabilities)
}

/// None, configuration, or unsettled-state. [AMQP 3.5.5]
fn durability(fields: &mut Fields<'_>) -> Result<u32, DecodeError> {
    match fields.uint("durable")?.unwrap_or(0) {
        durable @ 0..=2 => Ok(durable),
        _ => Err(DecodeError::OutOfRange("durable")),
    }
}
