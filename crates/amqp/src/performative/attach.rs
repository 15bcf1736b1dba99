//! Attach: attaches a link to a session and names its two ends. [AMQP 2.7.3]
//!
//! A null source and target together mean that the link is refused and that a detach follows. An
//! attach holds more values of any type than the other performatives, so it is validated as a whole
//! first.

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::{DecodeError, MAX_ELEMENTS};
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::performative::mode::{ReceiverSettleMode, Role, SenderSettleMode};
use crate::symbol::Symbol;
use crate::terminus::{Source, TargetTerminus};
use crate::validate;
use crate::value::Map;

/// [AMQP 2.7.3]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Attach {
    pub name: String,
    pub handle: u32,
    pub role: Role,
    /// `None` when the peer left it out; echoed as it came (docs/spec/amqp.md#rule-5).
    pub snd_settle_mode: Option<SenderSettleMode>,
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    pub source: Option<Box<Source>>,
    pub target: Option<Box<TargetTerminus>>,
    pub unsettled: Option<Map>,
    pub incomplete_unsettled: bool,
    pub initial_delivery_count: Option<u32>,
    pub max_message_size: Option<u64>,
    pub offered_capabilities: Vec<Symbol>,
    pub desired_capabilities: Vec<Symbol>,
    pub properties: Option<Map>,
}

impl Attach {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        validate::value(cursor.rest(), MAX_ELEMENTS)?;
        let mut fields = Fields::open(cursor, "attach", 14)?;
        let attach = Self {
            name: mandatory(fields.text("name")?, "name")?,
            handle: mandatory(fields.uint("handle")?, "handle")?,
            role: Role::field(&mut fields)?,
            snd_settle_mode: SenderSettleMode::field(&mut fields)?,
            rcv_settle_mode: ReceiverSettleMode::field(&mut fields)?,
            source: Source::field(&mut fields)?,
            target: TargetTerminus::field(&mut fields)?,
            unsettled: fields.map("unsettled")?,
            incomplete_unsettled: fields.boolean("incomplete-unsettled")?.unwrap_or(false),
            initial_delivery_count: fields.uint("initial-delivery-count")?,
            max_message_size: fields.ulong("max-message-size")?,
            offered_capabilities: fields.symbols("offered-capabilities")?,
            desired_capabilities: fields.symbols("desired-capabilities")?,
            properties: fields.map("properties")?,
        };
        fields.finish()?;
        Ok(attach)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::ATTACH, 14);
        encode::string(out, &self.name);
        encode::uint(out, self.handle);
        self.role.encode(out);
        encode::option(out, self.snd_settle_mode, SenderSettleMode::encode);
        encode::option(out, self.rcv_settle_mode, ReceiverSettleMode::encode);
        encode::option(out, self.source.as_deref(), |out, source| {
            source.encode(out);
        });
        encode::option(out, self.target.as_deref(), |out, target| {
            target.encode(out);
        });
        encode::option(out, self.unsettled.as_deref(), encode::map);
        encode::boolean(out, self.incomplete_unsettled);
        encode::option(out, self.initial_delivery_count, encode::uint);
        encode::option(out, self.max_message_size, encode::ulong);
        encode::symbols(out, &self.offered_capabilities);
        encode::symbols(out, &self.desired_capabilities);
        encode::option(out, self.properties.as_deref(), encode::map);
        encode::list_finish(out, start);
    }
}
