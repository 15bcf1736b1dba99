//! Disposition: the state of a range of deliveries. [AMQP 2.7.6]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::performative::mode::Role;
use crate::state::DeliveryState;

/// [AMQP 2.7.6]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Disposition {
    pub role: Role,
    pub first: u32,
    pub last: Option<u32>,
    pub settled: bool,
    pub state: Option<DeliveryState>,
    pub batchable: bool,
}

impl Disposition {
    #[inline]
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "disposition", 6)?;
        let role = Role::field(&mut fields)?;
        let first = mandatory(fields.uint("first")?, "first")?;
        let last = fields.uint("last")?;
        let settled = fields.boolean("settled")?.unwrap_or(false);
        let state = DeliveryState::field(&mut fields)?;
        let batchable = fields.boolean("batchable")?.unwrap_or(false);
        fields.finish()?;
        Ok(Self {
            role,
            first,
            last,
            settled,
            state,
            batchable,
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::DISPOSITION, 6);
        self.role.encode(out);
        encode::uint(out, self.first);
        encode::option(out, self.last, encode::uint);
        encode::boolean(out, self.settled);
        encode::option(out, self.state.as_ref(), |out, state| state.encode(out));
        encode::boolean(out, self.batchable);
        encode::list_finish(out, start);
    }
}
