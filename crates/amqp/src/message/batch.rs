//! Batch: several messages in one delivery, each encoded in a data section of its own.
//! (docs/spec/amqp.md#4.5)

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::format::{self, Width};
use crate::message::{BodyKind, Sections};

/// Descriptor, format code and size of an empty part.
const SMALLEST_PART: usize = 5;

/// The parts of a batch (message format 0x80013700): one encoded message per data section.
///
/// `sections` are those of `message`; a batch without a body has no parts.
///
/// # Errors
/// When the body is not data sections only, or there are more than `max`. (docs/spec/amqp.md#4.5)
pub fn batch_parts(
    message: &Bytes,
    sections: &Sections,
    max: usize,
) -> Result<Vec<Bytes>, DecodeError> {
    if !matches!(sections.body_kind, BodyKind::None | BodyKind::Data) {
        return Err(DecodeError::WrongType("body"));
    }
    let count = sections.body_sections;
    if count > max {
        return Err(DecodeError::TooMany { count, limit: max });
    }
    let body = message
        .get(sections.body.clone())
        .ok_or(DecodeError::CutShort("message"))?;
    let body = message.slice_ref(body);
    let mut cursor = Cursor::sharing(&body, "message");
    // `sections` may be another message's, so its count is no more than a hint.
    let mut parts = Vec::with_capacity(count.min(body.len() / SMALLEST_PART));
    while cursor.remaining() > 0 {
        parts.push(part(&mut cursor)?);
    }
    Ok(parts)
}

/// The content of the next data section.
fn part(cursor: &mut Cursor<'_>) -> Result<Bytes, DecodeError> {
    match cursor.descriptor()? {
        descriptor::DATA => {}
        other => return Err(DecodeError::UnexpectedDescriptor(other)),
    }
    let content = match cursor.byte()? {
        format::BINARY_8 => cursor.variable(Width::One)?,
        format::BINARY_32 => cursor.variable(Width::Four)?,
        _ => return Err(DecodeError::WrongType("body")),
    };
    Ok(cursor.share(content))
}
