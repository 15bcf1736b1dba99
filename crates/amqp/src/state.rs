//! Delivery state: the state of a delivery, terminal outcomes included. [AMQP 3.4, 4.5.8]

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::error::Error;
use crate::fields::{Fields, mandatory};
use crate::format;
use crate::value::Map;

/// By far the commonest state, in the form that most peers write.
const BARE_ACCEPTED: &[u8; 4] = &[format::DESCRIBED, format::SMALL_ULONG, 0x24, format::LIST_0];

/// The state of a delivery at one of its ends.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub enum DeliveryState {
    /// Not terminal: how much has arrived. [AMQP 3.4.1]
    Received {
        section_number: u32,
        section_offset: u64,
    },
    /// [AMQP 3.4.2]
    Accepted,
    /// [AMQP 3.4.3]
    Rejected(Option<Error>),
    /// [AMQP 3.4.4]
    Released,
    /// [AMQP 3.4.5]
    Modified {
        delivery_failed: bool,
        undeliverable_here: bool,
        message_annotations: Option<Map>,
    },
    /// A transaction's id, answering a declare. [AMQP 4.5.5]
    Declared { txn_id: Bytes },
    /// A state that holds once the transaction commits. [AMQP 4.5.8]
    Transactional {
        txn_id: Bytes,
        outcome: Option<Box<DeliveryState>>,
    },
}

impl DeliveryState {
    /// Reads a state that stands in a composite's field.
    #[inline]
    pub(crate) fn field(fields: &mut Fields<'_>) -> Result<Option<Self>, DecodeError> {
        let Some(cursor) = fields.present()? else {
            return Ok(None);
        };
        if cursor.skip(BARE_ACCEPTED) {
            return Ok(Some(Self::Accepted));
        }
        Self::decode(cursor).map(Some)
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.descriptor()? {
            descriptor::TRANSACTIONAL_STATE => transactional(cursor),
            other => outcome(cursor, other),
        }
    }

    /// Bytes of the state in full: what every copy of it costs, about.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out.len()
    }

    /// Appends the state in full.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Received {
                section_number,
                section_offset,
            } => {
                encode_received(out, *section_number, *section_offset);
            }
            Self::Accepted => encode_bare(out, descriptor::ACCEPTED),
            Self::Rejected(error) => encode_rejected(out, error.as_ref()),
            Self::Released => encode_bare(out, descriptor::RELEASED),
            Self::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations,
            } => {
                let annotations = message_annotations.as_ref();
                encode_modified(out, *delivery_failed, *undeliverable_here, annotations);
            }
            Self::Declared { txn_id } => encode_declared(out, txn_id),
            Self::Transactional { txn_id, outcome } => {
                encode_transactional(out, txn_id, outcome.as_deref());
            }
        }
    }
}

/// Any state but a transactional one, which alone holds another state and never one of its kind.
fn outcome(cursor: &mut Cursor<'_>, descriptor: u64) -> Result<DeliveryState, DecodeError> {
    match descriptor {
        descriptor::RECEIVED => received(cursor),
        descriptor::ACCEPTED => bare(cursor, "accepted", DeliveryState::Accepted),
        descriptor::REJECTED => rejected(cursor),
        descriptor::RELEASED => bare(cursor, "released", DeliveryState::Released),
        descriptor::MODIFIED => modified(cursor),
        descriptor::DECLARED => declared(cursor),
        other => Err(DecodeError::UnexpectedDescriptor(other)),
    }
}

fn bare(
    cursor: &mut Cursor<'_>,
    name: &'static str,
    state: DeliveryState,
) -> Result<DeliveryState, DecodeError> {
    Fields::open(cursor, name, 0)?.finish()?;
    Ok(state)
}

fn received(cursor: &mut Cursor<'_>) -> Result<DeliveryState, DecodeError> {
    let mut fields = Fields::open(cursor, "received", 2)?;
    let state = DeliveryState::Received {
        section_number: mandatory(fields.uint("section-number")?, "section-number")?,
        section_offset: mandatory(fields.ulong("section-offset")?, "section-offset")?,
    };
    fields.finish()?;
    Ok(state)
}

fn rejected(cursor: &mut Cursor<'_>) -> Result<DeliveryState, DecodeError> {
    let mut fields = Fields::open(cursor, "rejected", 1)?;
    let error = Error::field(&mut fields)?;
    fields.finish()?;
    Ok(DeliveryState::Rejected(error))
}

fn modified(cursor: &mut Cursor<'_>) -> Result<DeliveryState, DecodeError> {
    let mut fields = Fields::open(cursor, "modified", 3)?;
    let state = DeliveryState::Modified {
        delivery_failed: fields.boolean("delivery-failed")?.unwrap_or(false),
        undeliverable_here: fields.boolean("undeliverable-here")?.unwrap_or(false),
        message_annotations: fields.map("message-annotations")?,
    };
    fields.finish()?;
    Ok(state)
}

fn declared(cursor: &mut Cursor<'_>) -> Result<DeliveryState, DecodeError> {
    let mut fields = Fields::open(cursor, "declared", 1)?;
    let txn_id = mandatory(fields.binary("txn-id")?, "txn-id")?;
    fields.finish()?;
    Ok(DeliveryState::Declared { txn_id })
}

fn transactional(cursor: &mut Cursor<'_>) -> Result<DeliveryState, DecodeError> {
    let mut fields = Fields::open(cursor, "transactional-state", 2)?;
    let txn_id = mandatory(fields.binary("txn-id")?, "txn-id")?;
    let inner = match fields.present()? {
        Some(cursor) => {
            let descriptor = cursor.descriptor()?;
            Some(Box::new(outcome(cursor, descriptor)?))
        }
        None => None,
    };
    fields.finish()?;
    Ok(DeliveryState::Transactional {
        txn_id,
        outcome: inner,
    })
}

/// A state without fields: an empty `list8`, since `list0` is never written
/// (docs/spec/amqp.md#rule-3).
fn encode_bare(out: &mut BytesMut, descriptor: u64) {
    let start = encode::described_list(out, descriptor, 0);
    encode::list_finish(out, start);
}

fn encode_received(out: &mut BytesMut, section_number: u32, section_offset: u64) {
    let start = encode::described_list(out, descriptor::RECEIVED, 2);
    encode::uint(out, section_number);
    encode::ulong(out, section_offset);
    encode::list_finish(out, start);
}

fn encode_rejected(out: &mut BytesMut, error: Option<&Error>) {
    let start = encode::described_list(out, descriptor::REJECTED, 1);
    encode::option(out, error, |out, error| error.encode(out));
    encode::list_finish(out, start);
}

fn encode_modified(
    out: &mut BytesMut,
    delivery_failed: bool,
    undeliverable_here: bool,
    message_annotations: Option<&Map>,
) {
    let start = encode::described_list(out, descriptor::MODIFIED, 3);
    encode::boolean(out, delivery_failed);
    encode::boolean(out, undeliverable_here);
    encode::option(out, message_annotations, |out, map| encode::map(out, map));
    encode::list_finish(out, start);
}

fn encode_declared(out: &mut BytesMut, txn_id: &[u8]) {
    let start = encode::described_list(out, descriptor::DECLARED, 1);
    encode::binary(out, txn_id);
    encode::list_finish(out, start);
}

fn encode_transactional(out: &mut BytesMut, txn_id: &[u8], outcome: Option<&DeliveryState>) {
    let start = encode::described_list(out, descriptor::TRANSACTIONAL_STATE, 2);
    encode::binary(out, txn_id);
    encode::option(out, outcome, |out, outcome| outcome.encode(out));
    encode::list_finish(out, start);
}
