//! Transfer: one delivery, or a part of it. [AMQP 2.7.5]

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::performative::mode::ReceiverSettleMode;
use crate::state::DeliveryState;

/// The longest delivery-tag. [AMQP 2.8.7]
pub const MAX_DELIVERY_TAG: usize = 32;

/// [AMQP 2.7.5]. The payload travels beside it.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Transfer {
    pub handle: u32,
    pub delivery_id: Option<u32>,
    pub delivery_tag: Option<Bytes>,
    pub message_format: Option<u32>,
    pub settled: Option<bool>,
    pub more: bool,
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    pub state: Option<DeliveryState>,
    pub resume: bool,
    pub aborted: bool,
    pub batchable: bool,
}

impl Transfer {
    #[inline]
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "transfer", 11)?;
        let handle = mandatory(fields.uint("handle")?, "handle")?;
        let delivery_id = fields.uint("delivery-id")?;
        let delivery_tag = delivery_tag(&mut fields)?;
        let message_format = fields.uint("message-format")?;
        let settled = fields.boolean("settled")?;
        let more = fields.boolean("more")?.unwrap_or(false);
        let rcv_settle_mode = ReceiverSettleMode::field(&mut fields)?;
        let state = DeliveryState::field(&mut fields)?;
        let resume = fields.boolean("resume")?.unwrap_or(false);
        let aborted = fields.boolean("aborted")?.unwrap_or(false);
        let batchable = fields.boolean("batchable")?.unwrap_or(false);
        fields.finish()?;
        Ok(Self {
            handle,
            delivery_id,
            delivery_tag,
            message_format,
            settled,
            more,
            rcv_settle_mode,
            state,
            resume,
            aborted,
            batchable,
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::TRANSFER, 11);
        encode::uint(out, self.handle);
        encode::option(out, self.delivery_id, encode::uint);
        encode::option(out, self.delivery_tag.as_deref(), encode::binary);
        encode::option(out, self.message_format, encode::uint);
        encode::option(out, self.settled, encode::boolean);
        encode::boolean(out, self.more);
        encode::option(out, self.rcv_settle_mode, ReceiverSettleMode::encode);
        encode::option(out, self.state.as_ref(), |out, state| state.encode(out));
        encode::boolean(out, self.resume);
        encode::boolean(out, self.aborted);
        encode::boolean(out, self.batchable);
        encode::list_finish(out, start);
    }
}

#[inline]
fn delivery_tag(fields: &mut Fields<'_>) -> Result<Option<Bytes>, DecodeError> {
    match fields.binary("delivery-tag")? {
        Some(tag) if tag.len() > MAX_DELIVERY_TAG => Err(DecodeError::OutOfRange("delivery-tag")),
        tag => Ok(tag),
    }
}
