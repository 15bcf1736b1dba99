//! Map sections: annotations, application properties and footer. [AMQP 3.2.2, 3.2.3, 3.2.5, 3.2.9]
//!
//! By the standard, keys are text in application properties and symbols (or numbers) in the others;
//! since clients mix texts and symbols up, either is accepted for the other. Values of every type
//! are accepted.

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::{self, DecodeError};
use crate::descriptor;
use crate::encode;
use crate::value::{Map, Value};

/// Reads a section that holds a map (annotations, application properties, footer), descriptor
/// included.
///
/// # Errors
/// When it is not a described map, or a key is of a type that no such section may have.
pub fn decode_map_section(section: &Bytes) -> Result<Map, DecodeError> {
    let mut cursor = Cursor::sharing(section, "section");
    let descriptor = cursor.descriptor()?;
    let numbers = match descriptor {
        descriptor::APPLICATION_PROPERTIES => false,
        descriptor::DELIVERY_ANNOTATIONS | descriptor::MESSAGE_ANNOTATIONS | descriptor::FOOTER => {
            true
        }
        other => return Err(DecodeError::UnexpectedDescriptor(other)),
    };
    let Value::Map(map) = decode::validated(&mut cursor)? else {
        return Err(DecodeError::WrongType("section"));
    };
    cursor.finish()?;
    if map.iter().all(|(key, _)| is_key(key, numbers)) {
        Ok(map)
    } else {
        Err(DecodeError::WrongType("key"))
    }
}

fn is_key(key: &Value, numbers: bool) -> bool {
    match key {
        Value::String(_) | Value::Symbol(_) => true,
        Value::Ulong(_) => numbers,
        _ => false,
    }
}

/// Appends a section that holds a map, descriptor included.
pub fn encode_map_section(out: &mut BytesMut, descriptor: u64, map: &[(Value, Value)]) {
    encode::numeric_descriptor(out, descriptor);
    encode::map(out, map);
}
