//! Mode: the roles and settle modes that performatives carry as a boolean or a number.
//! [AMQP 2.8.1-3]

#![allow(missing_docs, reason = "the variants are the standard's choices")]

use bytes::BytesMut;

use crate::decode::DecodeError;
use crate::encode;
use crate::fields::{Fields, mandatory};

/// Which end of a link speaks. [AMQP 2.8.1]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    Sender,
    Receiver,
}

impl Role {
    #[inline]
    pub(super) fn field(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        match mandatory(fields.boolean("role")?, "role")? {
            false => Ok(Self::Sender),
            true => Ok(Self::Receiver),
        }
    }

    #[inline]
    pub(super) fn encode(self, out: &mut BytesMut) {
        encode::boolean(out, self == Self::Receiver);
    }
}

/// A sender's settlement policy. [AMQP 2.8.2]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SenderSettleMode {
    Unsettled,
    Settled,
    Mixed,
}

impl SenderSettleMode {
    pub(super) fn field(fields: &mut Fields<'_>) -> Result<Option<Self>, DecodeError> {
        match fields.ubyte("snd-settle-mode")? {
            None => Ok(None),
            Some(0) => Ok(Some(Self::Unsettled)),
            Some(1) => Ok(Some(Self::Settled)),
            Some(2) => Ok(Some(Self::Mixed)),
            Some(_) => Err(DecodeError::OutOfRange("snd-settle-mode")),
        }
    }

    pub(super) fn encode(out: &mut BytesMut, mode: Self) {
        encode::ubyte(
            out,
            match mode {
                Self::Unsettled => 0,
                Self::Settled => 1,
                Self::Mixed => 2,
            },
        );
    }
}

/// A receiver's settlement policy. [AMQP 2.8.3]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReceiverSettleMode {
    First,
    Second,
}

impl ReceiverSettleMode {
    #[inline]
    pub(super) fn field(fields: &mut Fields<'_>) -> Result<Option<Self>, DecodeError> {
        match fields.ubyte("rcv-settle-mode")? {
            None => Ok(None),
            Some(0) => Ok(Some(Self::First)),
            Some(1) => Ok(Some(Self::Second)),
            Some(_) => Err(DecodeError::OutOfRange("rcv-settle-mode")),
        }
    }

    #[inline]
    pub(super) fn encode(out: &mut BytesMut, mode: Self) {
        encode::ubyte(out, u8::from(mode == Self::Second));
    }
}
