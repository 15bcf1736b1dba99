//! Encode: turns values into bytes, in the smallest encoding of each type except lists. [AMQP 1.6]
//!
//! Descriptors up to 255 are always `smallulong` and lists are `list8` or `list32`, never `list0`,
//! for clients that decode by fixed offsets (docs/spec/amqp.md#rule-2 and #rule-3).

use bytes::BytesMut;

use crate::format;
use crate::value::Value;

mod array;
mod compound;
mod scalar;

pub(crate) use compound::{described_list, symbol_array, symbols};
pub use compound::{
    list_begin, list_finish, list32_begin, list32_finish, map, map_begin, map_finish, map32_begin,
    map32_finish,
};
pub use scalar::{
    binary, boolean, byte, character, double, float, int, long, null, option, short, string,
    symbol, timestamp, ubyte, uint, ulong, ushort, uuid,
};

/// Appends any value.
///
/// An [`Array`](Value::Array) whose elements do not share one constructor cannot be written as
/// one, and becomes a list.
pub fn value(out: &mut BytesMut, value: &Value) {
    match value {
        Value::List(items) => compound::list(out, items),
        Value::Map(entries) => compound::map(out, entries),
        Value::Array(elements) => array::array(out, elements),
        Value::Described(pair) => {
            described(out, &pair.0);
            self::value(out, &pair.1);
        }
        _ => scalar::scalar(out, value),
    }
}

/// Appends the descriptor that goes before a described value: `0x00 0x53 code`.
pub fn descriptor(out: &mut BytesMut, code: u8) {
    out.extend_from_slice(&[format::DESCRIBED, format::SMALL_ULONG, code]);
}

/// Appends a descriptor of any kind, with the byte that announces it.
fn described(out: &mut BytesMut, descriptor: &Value) {
    match descriptor {
        Value::Ulong(code) => numeric_descriptor(out, *code),
        other => {
            out.extend_from_slice(&[format::DESCRIBED]);
            value(out, other);
        }
    }
}

/// Appends a numeric descriptor of any size, with the byte that announces it.
pub(crate) fn numeric_descriptor(out: &mut BytesMut, code: u64) {
    match u8::try_from(code) {
        Ok(code) => descriptor(out, code),
        Err(_) => {
            out.extend_from_slice(&[format::DESCRIBED]);
            ulong(out, code);
        }
    }
}
