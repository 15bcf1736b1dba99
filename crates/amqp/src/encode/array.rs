//! Array: elements that share one constructor, descriptors included. [AMQP 1.6.24]

use std::mem::discriminant;

use bytes::BytesMut;

use crate::encode::compound::{self, size32};
use crate::encode::{self, scalar};
use crate::format;
use crate::value::Value;

/// Appends an array; a list, if the elements do not share one constructor.
pub(super) fn array(out: &mut BytesMut, elements: &[Value]) {
    let elements: Vec<&Value> = elements.iter().collect();
    if !uniform(&elements) {
        return mixed(out, &elements);
    }
    let start = compound::begin(out, format::ARRAY_8, elements.len());
    constructor_and_bodies(out, &elements);
    compound::finish(out, start);
}

fn mixed(out: &mut BytesMut, elements: &[&Value]) {
    let start = compound::list_begin(out, elements.len());
    for element in elements {
        encode::value(out, element);
    }
    compound::list_finish(out, start);
}

/// Whether all elements are of one variant and, if described, of one descriptor all the way down.
fn uniform(elements: &[&Value]) -> bool {
    let Some(first) = elements.first() else {
        return true;
    };
    if let Value::Described(pair) = first {
        return match described_by(elements, &pair.0) {
            Some(inner) => uniform(&inner),
            None => false,
        };
    }
    let same_variant = elements
        .iter()
        .all(|other| discriminant(*other) == discriminant(*first));
    // Arrays inside are written without a chance to become lists.
    let arrays = elements.iter().filter_map(|element| match element {
        Value::Array(inner) => Some(inner),
        _ => None,
    });
    same_variant
        && arrays
            .into_iter()
            .all(|inner| uniform(&inner.iter().collect::<Vec<_>>()))
}

/// The described value of each element, if `descriptor` is the descriptor of all.
fn described_by<'a>(elements: &[&'a Value], descriptor: &Value) -> Option<Vec<&'a Value>> {
    let inner = |element: &&'a Value| match *element {
        Value::Described(pair) if pair.0 == *descriptor => Some(&pair.1),
        _ => None,
    };
    elements.iter().map(inner).collect()
}

fn constructor_and_bodies(out: &mut BytesMut, elements: &[&Value]) {
    let Some(first) = elements.first() else {
        return encode::null(out);
    };
    if let Value::Described(pair) = first {
        encode::described(out, &pair.0);
        let inner = described_by(elements, &pair.0).unwrap_or_default();
        return constructor_and_bodies(out, &inner);
    }
    let code = shared_code(elements, first);
    out.extend_from_slice(&[code]);
    for element in elements {
        body(out, code, element);
    }
}

/// The format code that every element fits: the full form, but for texts that are all short.
fn shared_code(elements: &[&Value], first: &Value) -> u8 {
    let compact = elements
        .iter()
        .all(|element| content(element).len() <= usize::from(u8::MAX));
    match first {
        Value::Null | Value::Described(_) => format::NULL,
        Value::Bool(_) => format::BOOLEAN,
        Value::Ubyte(_) => format::UBYTE,
        Value::Ushort(_) => format::USHORT,
        Value::Uint(_) => format::UINT,
        Value::Ulong(_) => format::ULONG,
        Value::Byte(_) => format::BYTE,
        Value::Short(_) => format::SHORT,
        Value::Int(_) => format::INT,
        Value::Long(_) => format::LONG,
        Value::Float(_) => format::FLOAT,
        Value::Double(_) => format::DOUBLE,
        Value::Decimal32(_) => format::DECIMAL_32,
        Value::Decimal64(_) => format::DECIMAL_64,
        Value::Decimal128(_) => format::DECIMAL_128,
        Value::Char(_) => format::CHAR,
        Value::Timestamp(_) => format::TIMESTAMP,
        Value::Uuid(_) => format::UUID,
        Value::Binary(_) if compact => format::BINARY_8,
        Value::String(_) if compact => format::STRING_8,
        Value::Symbol(_) if compact => format::SYMBOL_8,
        Value::Binary(_) => format::BINARY_32,
        Value::String(_) => format::STRING_32,
        Value::Symbol(_) => format::SYMBOL_32,
        Value::List(_) => format::LIST_32,
        Value::Map(_) => format::MAP_32,
        Value::Array(_) => format::ARRAY_32,
    }
}

/// The bytes of a binary, string or symbol.
fn content(value: &Value) -> &[u8] {
    match value {
        Value::Binary(content) => content,
        Value::String(content) => content.as_bytes(),
        Value::Symbol(content) => content.as_str().as_bytes(),
        _ => &[],
    }
}

/// Appends an element without its constructor, in the form that `code` announces.
fn body(out: &mut BytesMut, code: u8, element: &Value) {
    match element {
        Value::Null | Value::Described(_) => {}
        Value::Bool(value) => out.extend_from_slice(&[u8::from(*value)]),
        Value::Uint(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Ulong(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Int(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Long(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Binary(_) | Value::String(_) | Value::Symbol(_) => {
            text(out, code, content(element));
        }
        Value::List(items) => sized(out, items.len(), |out| {
            items.iter().for_each(|item| encode::value(out, item));
        }),
        Value::Map(entries) => sized(out, 2 * entries.len(), |out| {
            for (key, value) in entries {
                encode::value(out, key);
                encode::value(out, value);
            }
        }),
        Value::Array(inner) => sized(out, inner.len(), |out| {
            constructor_and_bodies(out, &inner.iter().collect::<Vec<_>>());
        }),
        // The other types have one encoding only, which is this after its code.
        _ => {
            let mut whole = BytesMut::with_capacity(17);
            scalar::scalar(&mut whole, element);
            out.extend_from_slice(&whole[1..]);
        }
    }
}

fn text(out: &mut BytesMut, code: u8, content: &[u8]) {
    let size = size32(content.len());
    let compact = matches!(code, format::BINARY_8 | format::STRING_8 | format::SYMBOL_8);
    out.extend_from_slice(if compact { &size[3..] } else { &size });
    out.extend_from_slice(content);
}

/// Appends size and count in four bytes each, and the items that `write` writes.
fn sized(out: &mut BytesMut, count: usize, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&size32(count));
    write(out);
    let size = size32(out.len() - start - 4);
    out[start..start + 4].copy_from_slice(&size);
}
