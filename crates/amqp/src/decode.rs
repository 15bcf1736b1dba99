//! Decode: turns bytes into values, one constructor at a time. [AMQP 1.2, 1.6]
//!
//! The [validator](crate::validate) runs first and bounds nesting, sizes and counts, so this module
//! may recurse and reserve room for counted elements.

use bytes::{Buf, Bytes};

use crate::cursor::Cursor;
use crate::format::{self, Width};
use crate::symbol::Symbol;
use crate::validate;
use crate::value::{Map, Value};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum DecodeError {
    #[error("the value ends after its enclosing {0}")]
    CutShort(&'static str),
    #[error("format code {0:#04x} is unknown")]
    UnknownFormat(u8),
    #[error("format code {0:#04x} cannot start a descriptor")]
    BadDescriptor(u8),
    #[error("a symbolic descriptor is unknown")]
    UnknownDescriptor,
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    #[error("{count} elements are more than {limit}")]
    TooMany { count: usize, limit: usize },
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("a symbol is not ASCII")]
    NotAscii,
    #[error("{0:#x} is no Unicode character")]
    NotChar(u32),
    #[error("descriptor {0:#x} is not expected here")]
    UnexpectedDescriptor(u64),
    #[error("field {0} has the wrong type")]
    WrongType(&'static str),
    #[error("field {0} is mandatory")]
    Missing(&'static str),
    #[error("field {0} has a value out of range")]
    OutOfRange(&'static str),
    #[error("a map has a key without a value")]
    OddMap,
    #[error("{0} bytes follow the value")]
    Trailing(usize),
}

/// Most elements a cold performative or a management body may hold in all.
pub const MAX_ELEMENTS: usize = 65_536;

/// Decodes exactly one value from all of `input`, validated first.
///
/// # Errors
/// When `input` is not exactly one sound value.
pub fn value(input: &Bytes) -> Result<Value, DecodeError> {
    let mut cursor = Cursor::sharing(input, "input");
    let value = validated(&mut cursor)?;
    cursor.finish()?;
    Ok(value)
}

/// Splits one value off the front of `input`, validated first.
///
/// # Errors
/// When `input` does not start with a sound value. `input` is untouched then.
pub fn take_value(input: &mut Bytes) -> Result<Value, DecodeError> {
    let mut cursor = Cursor::sharing(input, "input");
    let value = validated(&mut cursor)?;
    let taken = input.len() - cursor.remaining();
    input.advance(taken);
    Ok(value)
}

/// The next value of any type, validated first.
pub(crate) fn validated(cursor: &mut Cursor<'_>) -> Result<Value, DecodeError> {
    validate::value(cursor.rest(), MAX_ELEMENTS)?;
    build(cursor)
}

/// The next value, which has passed the validator.
fn build(cursor: &mut Cursor<'_>) -> Result<Value, DecodeError> {
    match cursor.byte()? {
        format::DESCRIBED => {
            let descriptor = build(cursor)?;
            Ok(Value::Described(Box::new((descriptor, build(cursor)?))))
        }
        code => body(cursor, code),
    }
}

/// Decodes the bytes after the format code `code`.
fn body(cursor: &mut Cursor<'_>, code: u8) -> Result<Value, DecodeError> {
    match code {
        format::LIST_0 => Ok(Value::List(Vec::new())),
        format::LIST_8 => list(cursor, Width::One),
        format::LIST_32 => list(cursor, Width::Four),
        format::MAP_8 => Ok(Value::Map(map(cursor, Width::One)?)),
        format::MAP_32 => Ok(Value::Map(map(cursor, Width::Four)?)),
        format::ARRAY_8 => array(cursor, Width::One),
        format::ARRAY_32 => array(cursor, Width::Four),
        _ => scalar(cursor, code),
    }
}

/// Decodes the bytes after the format code of a value without items.
pub(crate) fn scalar(cursor: &mut Cursor<'_>, code: u8) -> Result<Value, DecodeError> {
    Ok(match code {
        format::NULL => Value::Null,
        format::TRUE | format::FALSE | format::BOOLEAN => Value::Bool(boolean(cursor, code)?),
        format::UBYTE => Value::Ubyte(cursor.byte()?),
        format::USHORT => Value::Ushort(u16::from_be_bytes(cursor.array()?)),
        format::UINT_0 | format::SMALL_UINT | format::UINT => Value::Uint(uint(cursor, code)?),
        format::ULONG_0 | format::SMALL_ULONG | format::ULONG => Value::Ulong(ulong(cursor, code)?),
        format::BYTE => Value::Byte(i8::from_be_bytes(cursor.array()?)),
        format::SHORT => Value::Short(i16::from_be_bytes(cursor.array()?)),
        format::SMALL_INT => Value::Int(i8::from_be_bytes(cursor.array()?).into()),
        format::INT => Value::Int(i32::from_be_bytes(cursor.array()?)),
        format::SMALL_LONG => Value::Long(i8::from_be_bytes(cursor.array()?).into()),
        format::LONG => Value::Long(i64::from_be_bytes(cursor.array()?)),
        format::FLOAT => Value::Float(f32::from_be_bytes(cursor.array()?)),
        format::DOUBLE => Value::Double(f64::from_be_bytes(cursor.array()?)),
        format::DECIMAL_32 => Value::Decimal32(cursor.array()?),
        format::DECIMAL_64 => Value::Decimal64(cursor.array()?),
        format::DECIMAL_128 => Value::Decimal128(cursor.array()?),
        format::CHAR => Value::Char(character(u32::from_be_bytes(cursor.array()?))?),
        format::TIMESTAMP => Value::Timestamp(i64::from_be_bytes(cursor.array()?)),
        format::UUID => Value::Uuid(cursor.array()?),
        _ => variable(cursor, code)?,
    })
}

fn variable(cursor: &mut Cursor<'_>, code: u8) -> Result<Value, DecodeError> {
    let Some(format::Shape::Variable(width)) = format::shape(code) else {
        return Err(DecodeError::UnknownFormat(code));
    };
    let content = cursor.variable(width)?;
    match code {
        format::BINARY_8 | format::BINARY_32 => Ok(Value::Binary(cursor.share(content))),
        format::STRING_8 | format::STRING_32 => Ok(Value::String(utf8(content)?.to_owned())),
        _ => Ok(Value::Symbol(symbol(content)?)),
    }
}

fn list(cursor: &mut Cursor<'_>, width: Width) -> Result<Value, DecodeError> {
    let (mut inner, count) = cursor.compound(width, "list")?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(build(&mut inner)?);
    }
    Ok(Value::List(items))
}

fn map(cursor: &mut Cursor<'_>, width: Width) -> Result<Map, DecodeError> {
    let (mut inner, count) = cursor.compound(width, "map")?;
    let mut entries = Vec::with_capacity(count / 2);
    for _ in 0..count / 2 {
        entries.push((build(&mut inner)?, build(&mut inner)?));
    }
    Ok(entries)
}

fn array(cursor: &mut Cursor<'_>, width: Width) -> Result<Value, DecodeError> {
    let (mut inner, count) = cursor.compound(width, "array")?;
    if count == 0 {
        return Ok(Value::Array(Vec::new()));
    }
    let mut descriptors = Vec::new();
    let code = loop {
        match inner.byte()? {
            format::DESCRIBED => descriptors.push(build(&mut inner)?),
            code => break code,
        }
    };
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(describe(&descriptors, body(&mut inner, code)?));
    }
    Ok(Value::Array(elements))
}

/// `value` under all of `descriptors`, the first outermost.
fn describe(descriptors: &[Value], value: Value) -> Value {
    descriptors.iter().rev().fold(value, |value, descriptor| {
        Value::Described(Box::new((descriptor.clone(), value)))
    })
}

#[inline]
pub(crate) fn boolean(cursor: &mut Cursor<'_>, code: u8) -> Result<bool, DecodeError> {
    match code {
        format::TRUE => Ok(true),
        format::FALSE => Ok(false),
        _ => match cursor.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::OutOfRange("boolean")),
        },
    }
}

#[inline]
pub(crate) fn uint(cursor: &mut Cursor<'_>, code: u8) -> Result<u32, DecodeError> {
    match code {
        format::UINT_0 => Ok(0),
        format::SMALL_UINT => cursor.byte().map(u32::from),
        _ => cursor.array().map(u32::from_be_bytes),
    }
}

#[inline]
pub(crate) fn ulong(cursor: &mut Cursor<'_>, code: u8) -> Result<u64, DecodeError> {
    match code {
        format::ULONG_0 => Ok(0),
        format::SMALL_ULONG => cursor.byte().map(u64::from),
        _ => cursor.array().map(u64::from_be_bytes),
    }
}

fn character(code: u32) -> Result<char, DecodeError> {
    char::from_u32(code).ok_or(DecodeError::NotChar(code))
}

pub(crate) fn utf8(content: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(content).map_err(|_| DecodeError::NotUtf8)
}

pub(crate) fn symbol(content: &[u8]) -> Result<Symbol, DecodeError> {
    if !content.is_ascii() {
        return Err(DecodeError::NotAscii);
    }
    utf8(content).map(|name| Symbol::from(name.to_owned()))
}
