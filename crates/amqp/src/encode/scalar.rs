//! Scalar: values without items, each in its smallest encoding.

use bytes::BytesMut;

use crate::encode::compound::size32;
use crate::format;
use crate::value::Value;

/// Appends what `write` writes for a value that is there, and null for one that is not.
#[inline]
pub fn option<T>(out: &mut BytesMut, value: Option<T>, write: impl FnOnce(&mut BytesMut, T)) {
    match value {
        Some(value) => write(out, value),
        None => null(out),
    }
}

/// Appends a null.
#[inline]
pub fn null(out: &mut BytesMut) {
    out.extend_from_slice(&[format::NULL]);
}

/// Appends a boolean, as a single byte.
#[inline]
pub fn boolean(out: &mut BytesMut, value: bool) {
    out.extend_from_slice(&[if value { format::TRUE } else { format::FALSE }]);
}

/// Appends a ubyte.
#[inline]
pub fn ubyte(out: &mut BytesMut, value: u8) {
    out.extend_from_slice(&[format::UBYTE, value]);
}

/// Appends a ushort.
#[inline]
pub fn ushort(out: &mut BytesMut, value: u16) {
    fixed(out, format::USHORT, value.to_be_bytes());
}

/// Appends a uint.
#[inline]
pub fn uint(out: &mut BytesMut, value: u32) {
    match u8::try_from(value) {
        Ok(0) => out.extend_from_slice(&[format::UINT_0]),
        Ok(small) => out.extend_from_slice(&[format::SMALL_UINT, small]),
        Err(_) => fixed(out, format::UINT, value.to_be_bytes()),
    }
}

/// Appends a ulong.
#[inline]
pub fn ulong(out: &mut BytesMut, value: u64) {
    match u8::try_from(value) {
        Ok(0) => out.extend_from_slice(&[format::ULONG_0]),
        Ok(small) => out.extend_from_slice(&[format::SMALL_ULONG, small]),
        Err(_) => fixed(out, format::ULONG, value.to_be_bytes()),
    }
}

/// Appends a byte.
#[inline]
pub fn byte(out: &mut BytesMut, value: i8) {
    fixed(out, format::BYTE, value.to_be_bytes());
}

/// Appends a short.
#[inline]
pub fn short(out: &mut BytesMut, value: i16) {
    fixed(out, format::SHORT, value.to_be_bytes());
}

/// Appends an int.
#[inline]
pub fn int(out: &mut BytesMut, value: i32) {
    match i8::try_from(value) {
        Ok(small) => fixed(out, format::SMALL_INT, small.to_be_bytes()),
        Err(_) => fixed(out, format::INT, value.to_be_bytes()),
    }
}

/// Appends a long.
#[inline]
pub fn long(out: &mut BytesMut, value: i64) {
    match i8::try_from(value) {
        Ok(small) => fixed(out, format::SMALL_LONG, small.to_be_bytes()),
        Err(_) => fixed(out, format::LONG, value.to_be_bytes()),
    }
}

/// Appends a float.
#[inline]
pub fn float(out: &mut BytesMut, value: f32) {
    fixed(out, format::FLOAT, value.to_be_bytes());
}

/// Appends a double.
#[inline]
pub fn double(out: &mut BytesMut, value: f64) {
    fixed(out, format::DOUBLE, value.to_be_bytes());
}

/// Appends a char.
#[inline]
pub fn character(out: &mut BytesMut, value: char) {
    fixed(out, format::CHAR, u32::from(value).to_be_bytes());
}

/// Appends a timestamp, in milliseconds since the Unix epoch.
#[inline]
pub fn timestamp(out: &mut BytesMut, value: i64) {
    fixed(out, format::TIMESTAMP, value.to_be_bytes());
}

/// Appends a uuid, given in RFC 4122 byte order.
#[inline]
pub fn uuid(out: &mut BytesMut, value: &[u8; 16]) {
    fixed(out, format::UUID, *value);
}

/// Appends a binary.
#[inline]
pub fn binary(out: &mut BytesMut, value: &[u8]) {
    variable(out, format::BINARY_8, format::BINARY_32, value);
}

/// Appends a string.
#[inline]
pub fn string(out: &mut BytesMut, value: &str) {
    variable(out, format::STRING_8, format::STRING_32, value.as_bytes());
}

/// Appends a symbol.
#[inline]
pub fn symbol(out: &mut BytesMut, value: &str) {
    variable(out, format::SYMBOL_8, format::SYMBOL_32, value.as_bytes());
}

/// A value without items; lists, maps, arrays and described values are written elsewhere.
pub(super) fn scalar(out: &mut BytesMut, value: &Value) {
    match value {
        Value::Bool(value) => boolean(out, *value),
        Value::Ubyte(value) => ubyte(out, *value),
        Value::Ushort(value) => ushort(out, *value),
        Value::Uint(value) => uint(out, *value),
        Value::Ulong(value) => ulong(out, *value),
        Value::Byte(value) => byte(out, *value),
        Value::Short(value) => short(out, *value),
        Value::Int(value) => int(out, *value),
        Value::Long(value) => long(out, *value),
        Value::Float(value) => float(out, *value),
        Value::Double(value) => double(out, *value),
        Value::Decimal32(value) => fixed(out, format::DECIMAL_32, *value),
        Value::Decimal64(value) => fixed(out, format::DECIMAL_64, *value),
        Value::Decimal128(value) => fixed(out, format::DECIMAL_128, *value),
        Value::Char(value) => character(out, *value),
        Value::Timestamp(value) => timestamp(out, *value),
        Value::Uuid(value) => uuid(out, value),
        Value::Binary(value) => binary(out, value),
        Value::String(value) => string(out, value),
        Value::Symbol(value) => symbol(out, value.as_str()),
        Value::Null | Value::List(_) | Value::Map(_) | Value::Array(_) | Value::Described(_) => {
            null(out);
        }
    }
}

#[inline]
fn fixed<const N: usize>(out: &mut BytesMut, code: u8, content: [u8; N]) {
    out.reserve(1 + N);
    out.extend_from_slice(&[code]);
    out.extend_from_slice(&content);
}

#[inline]
fn variable(out: &mut BytesMut, compact: u8, full: u8, content: &[u8]) {
    match u8::try_from(content.len()) {
        Ok(size) => out.extend_from_slice(&[compact, size]),
        Err(_) => fixed(out, full, size32(content.len())),
    }
    out.extend_from_slice(content);
}
