//! Header: the part of a message that intermediaries may read and change. [AMQP 3.2.1]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::Fields;

/// [AMQP 3.2.1]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Header {
    pub durable: Option<bool>,
    pub priority: Option<u8>,
    /// Milliseconds.
    pub ttl: Option<u32>,
    pub first_acquirer: Option<bool>,
    pub delivery_count: Option<u32>,
}

impl Header {
    /// Reads a header section, descriptor included.
    ///
    /// # Errors
    /// When it is not a header or a field has the wrong type.
    pub fn decode(section: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(section, "header");
        match cursor.descriptor()? {
            descriptor::HEADER => {}
            other => return Err(DecodeError::UnexpectedDescriptor(other)),
        }
        let mut fields = Fields::open(&mut cursor, "header", 5)?;
        let header = Self {
            durable: fields.boolean("durable")?,
            priority: fields.ubyte("priority")?,
            ttl: fields.uint("ttl")?,
            first_acquirer: fields.boolean("first-acquirer")?,
            delivery_count: fields.uint("delivery-count")?,
        };
        fields.finish()?;
        cursor.finish()?;
        Ok(header)
    }

    /// Appends the section in full: five fields, descriptor included.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::HEADER, 5);
        encode::option(out, self.durable, encode::boolean);
        encode::option(out, self.priority, encode::ubyte);
        encode::option(out, self.ttl, encode::uint);
        encode::option(out, self.first_acquirer, encode::boolean);
        encode::option(out, self.delivery_count, encode::uint);
        encode::list_finish(out, start);
    }
}
