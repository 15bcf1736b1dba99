//! Detach: removes a link from its session, finally if `closed`. [AMQP 2.7.7]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::error::Error;
use crate::fields::{Fields, mandatory};

/// [AMQP 2.7.7]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Detach {
    pub handle: u32,
    pub closed: bool,
    pub error: Option<Error>,
}

impl Detach {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "detach", 3)?;
        let detach = Self {
            handle: mandatory(fields.uint("handle")?, "handle")?,
            closed: fields.boolean("closed")?.unwrap_or(false),
            error: Error::field(&mut fields)?,
        };
        fields.finish()?;
        Ok(detach)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::DETACH, 3);
        encode::uint(out, self.handle);
        encode::boolean(out, self.closed);
        encode::option(out, self.error.as_ref(), |out, error| error.encode(out));
        encode::list_finish(out, start);
    }
}
