//! Properties: a message's immutable properties, set by its sender. [AMQP 3.2.4]
//!
//! Ids and addresses keep the type that was received, since a reply must repeat it
//! (docs/spec/amqp.md#rule-11). [`check_field`] says which types each field may have.

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::Fields;
use crate::format;
use crate::symbol::Symbol;
use crate::value::Value;

/// The names of the fields, in the order of the list. [AMQP 3.2.4]
const NAMES: [&str; 13] = [
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
];

/// Checks the type of the encoded field `item` at `position` of the list. Texts and symbols are
/// accepted for each other, as in all composite types.
///
/// # Errors
/// When the standard does not allow the type there.
#[inline]
pub fn check_field(position: usize, item: &[u8]) -> Result<(), DecodeError> {
    let code = item.first().copied().unwrap_or(format::NULL);
    let is_allowed = match position {
        0 | 5 => is_id(code),
        1 => matches!(code, format::BINARY_8 | format::BINARY_32),
        8 | 9 => code == format::TIMESTAMP,
        11 => matches!(code, format::UINT_0 | format::SMALL_UINT | format::UINT),
        _ => is_text(code),
    };
    if is_allowed || code == format::NULL {
        return Ok(());
    }
    let name = NAMES.get(position).copied();
    Err(DecodeError::WrongType(name.unwrap_or("properties")))
}

/// Whether a message id may have the type. [AMQP 3.2.11 to 3.2.14]
fn is_id(code: u8) -> bool {
    is_text(code)
        || matches!(
            code,
            format::ULONG_0
                | format::SMALL_ULONG
                | format::ULONG
                | format::UUID
                | format::BINARY_8
                | format::BINARY_32
        )
}

fn is_text(code: u8) -> bool {
    matches!(
        code,
        format::STRING_8 | format::STRING_32 | format::SYMBOL_8 | format::SYMBOL_32
    )
}

/// [AMQP 3.2.4]. Ids keep the type they came in.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Properties {
    pub message_id: Option<Value>,
    pub user_id: Option<Bytes>,
    pub to: Option<Value>,
    pub subject: Option<String>,
    pub reply_to: Option<Value>,
    pub correlation_id: Option<Value>,
    pub content_type: Option<Symbol>,
    pub content_encoding: Option<Symbol>,
    /// Milliseconds since the Unix epoch.
    pub absolute_expiry_time: Option<i64>,
    /// Milliseconds since the Unix epoch.
    pub creation_time: Option<i64>,
    pub group_id: Option<String>,
    pub group_sequence: Option<u32>,
    pub reply_to_group_id: Option<String>,
}

impl Properties {
    /// Reads a properties section, descriptor included.
    ///
    /// # Errors
    /// When it is not a properties section or a field has the wrong type.
    pub fn decode(section: &Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::sharing(section, "properties");
        match cursor.descriptor()? {
            descriptor::PROPERTIES => {}
            other => return Err(DecodeError::UnexpectedDescriptor(other)),
        }
        let mut fields = Fields::open(&mut cursor, "properties", 13)?;
        let properties = Self::fields(&mut fields)?;
        fields.finish()?;
        cursor.finish()?;
        Ok(properties)
    }

    fn fields(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            message_id: fields.scalar("message-id", is_id)?,
            user_id: fields.binary("user-id")?,
            to: fields.scalar("to", is_text)?,
            subject: fields.text("subject")?,
            reply_to: fields.scalar("reply-to", is_text)?,
            correlation_id: fields.scalar("correlation-id", is_id)?,
            content_type: fields.symbol("content-type")?,
            content_encoding: fields.symbol("content-encoding")?,
            absolute_expiry_time: fields.timestamp("absolute-expiry-time")?,
            creation_time: fields.timestamp("creation-time")?,
            group_id: fields.text("group-id")?,
            group_sequence: fields.uint("group-sequence")?,
            reply_to_group_id: fields.text("reply-to-group-id")?,
        })
    }

    /// Appends the section in full: thirteen fields, descriptor included.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::PROPERTIES, 13);
        encode::option(out, self.message_id.as_ref(), encode::value);
        encode::option(out, self.user_id.as_deref(), encode::binary);
        encode::option(out, self.to.as_ref(), encode::value);
        encode::option(out, self.subject.as_deref(), encode::string);
        encode::option(out, self.reply_to.as_ref(), encode::value);
        encode::option(out, self.correlation_id.as_ref(), encode::value);
        encode::option(out, self.content_type.as_ref(), symbol);
        encode::option(out, self.content_encoding.as_ref(), symbol);
        encode::option(out, self.absolute_expiry_time, encode::timestamp);
        encode::option(out, self.creation_time, encode::timestamp);
        encode::option(out, self.group_id.as_deref(), encode::string);
        encode::option(out, self.group_sequence, encode::uint);
        encode::option(out, self.reply_to_group_id.as_deref(), encode::string);
        encode::list_finish(out, start);
    }
}

fn symbol(out: &mut BytesMut, symbol: &Symbol) {
    encode::symbol(out, symbol.as_str());
}
