//! Close: ends a connection, with the reason. [AMQP 2.7.9]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::error::Error;
use crate::fields::Fields;

/// [AMQP 2.7.9]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Close {
    pub error: Option<Error>,
}

impl Close {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "close", 1)?;
        let close = Self {
            error: Error::field(&mut fields)?,
        };
        fields.finish()?;
        Ok(close)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::CLOSE, 1);
        encode::option(out, self.error.as_ref(), |out, error| error.encode(out));
        encode::list_finish(out, start);
    }
}
