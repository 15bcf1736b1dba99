//! Items: walks the encoded items of a section's list or map without decoding them. [AMQP 3.2]
//!
//! Sections are checked and rewritten with it item by item; each item is the bytes that were
//! received. Nothing is trusted: an item that does not end within its section ends the walk with an
//! error.

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::{self, DecodeError};
use crate::format::{self, Shape, Width};
use crate::validate;
use crate::value::Value;

/// An encoded null.
pub const NULL: u8 = format::NULL;

/// An item that is read as far as it costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// A string or a symbol.
    Text(&'a str),
    /// The content of a binary.
    Binary(&'a [u8]),
    /// Any other value without items.
    Scalar(Value),
    /// A descriptor and the value it describes, both encoded.
    Described(&'a [u8], &'a [u8]),
    /// A list, map or array.
    Compound,
}

/// A map's key and value, both encoded.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// The items of a list, or the keys and values of a map in turn.
#[derive(Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Items<'a> {
    /// No items.
    pub const NONE: Self = Self { rest: &[], left: 0 };

    /// The items of a section, which starts with its descriptor. An empty section has none.
    ///
    /// # Errors
    /// When it is neither a described list nor a described map, or cut short.
    pub fn of(section: &'a [u8]) -> Result<Self, DecodeError> {
        if section.is_empty() {
            return Ok(Self::NONE);
        }
        let value = undescribed(section)?;
        let (start, left) = match *value {
            [0x45] => (1, 0),
            [0xc0 | 0xc1, _, count, ..] => (3, usize::from(count)),
            [0xd0 | 0xd1, _, _, _, _, a, b, c, d, ..] => {
                (9, u32::from_be_bytes([a, b, c, d]) as usize)
            }
            _ => return Err(DecodeError::WrongType("section")),
        };
        if extent(value)? != value.len() {
            return Err(DecodeError::CutShort("section"));
        }
        Ok(Self {
            rest: &value[start..],
            left,
        })
    }

    /// The next item.
    ///
    /// # Errors
    /// When the next item does not end within the section, or bytes follow the last.
    #[allow(
        clippy::should_implement_trait,
        reason = "a walk ends at its first error, which an iterator does not say"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        if self.left == 0 {
            return match self.rest.len() {
                0 => Ok(None),
                rest => Err(DecodeError::Trailing(rest)),
            };
        }
        let size = match self.rest {
            // Most of a list of properties.
            [NULL, ..] => 1,
            rest => extent(rest)?,
        };
        let (item, rest) = self
            .rest
            .split_at_checked(size)
            .ok_or(DecodeError::CutShort("section"))?;
        self.rest = rest;
        self.left -= 1;
        Ok(Some(item))
    }

    /// The next key and value of a map.
    ///
    /// # Errors
    /// As for [`Items::next`]; and when the last key has no value.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        match self.next()? {
            None => Ok(None),
            Some(key) => {
                let value = self.next()?.ok_or(DecodeError::OddMap)?;
                Ok(Some((key, value)))
            }
        }
    }
}

/// Copies the entries of a section's map to `out` and counts them, but for those that `is_left_out`
/// says of their key and value. A key that is no text is copied. A section that is no sound map is
/// copied up to its fault.
pub fn copy_entries<'a>(
    out: &mut BytesMut,
    section: &'a [u8],
    mut is_left_out: impl FnMut(&'a str, &'a [u8]) -> bool,
) -> usize {
    let mut count = 0;
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = items.next_entry() {
        if !text(key).is_some_and(|key| is_left_out(key, value)) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 1;
        }
    }
    count
}

/// A described value without its descriptor.
///
/// # Errors
/// When it is not a described value.
pub fn undescribed(section: &[u8]) -> Result<&[u8], DecodeError> {
    match section {
        [format::DESCRIBED, 0x53, _, value @ ..] => Ok(value),
        [format::DESCRIBED, rest @ ..] => {
            let descriptor = extent(rest)?;
            rest.get(descriptor..)
                .ok_or(DecodeError::CutShort("section"))
        }
        _ => Err(DecodeError::WrongType("section")),
    }
}

/// How many bytes the value at the start of `input` takes.
///
/// # Errors
/// When it does not end within `input`.
#[inline]
pub fn extent(input: &[u8]) -> Result<usize, DecodeError> {
    let size = match *input {
        [code @ 0x40..=0x9f, ..] => match code >> 4 {
            4 => 1,
            5 => 2,
            6 => 3,
            7 => 5,
            8 => 9,
            _ => 17,
        },
        [0xa0..=0xaf | 0xc0..=0xcf | 0xe0..=0xef, size, ..] => 2 + usize::from(size),
        [0xb0..=0xbf | 0xd0..=0xdf | 0xf0..=0xff, a, b, c, d, ..] => {
            (u32::from_be_bytes([a, b, c, d]) as usize).saturating_add(5)
        }
        _ => return validate::extent(input),
    };
    if size > input.len() {
        return Err(DecodeError::CutShort("section"));
    }
    Ok(size)
}

/// Checks an item all the way down. Plain values and texts cost next to nothing.
///
/// # Errors
/// When it could not be decoded.
pub fn check(item: &[u8]) -> Result<(), DecodeError> {
    match *item {
        [0xa1 | 0xb1, ..] => text(item).map(|_| ()).ok_or(DecodeError::NotUtf8),
        [0xa3 | 0xb3, ..] => match text(item) {
            Some(name) if name.is_ascii() => Ok(()),
            _ => Err(DecodeError::NotAscii),
        },
        [code, ..] if is_plain(code) => Ok(()),
        // The rest is rare, so it may be decoded to see whether it can be.
        _ => decode::value(&Bytes::copy_from_slice(item)).map(drop),
    }
}

/// Checks the encoded key of an entry of annotations all the way down. [AMQP 3.2.10]
///
/// # Errors
/// When it is no symbol and no ulong. A string is accepted for a symbol.
pub fn check_annotation_key(key: &[u8]) -> Result<(), DecodeError> {
    match key.first() {
        Some(0x44 | 0x53 | 0x80 | 0xa1 | 0xa3 | 0xb1 | 0xb3) => check(key),
        _ => Err(DecodeError::WrongType("annotations")),
    }
}

/// Whether every content is valid for a value of this format code. [AMQP 1.6]
const fn is_plain(code: u8) -> bool {
    matches!(
        code,
        0x40..=0x45 | 0x50..=0x55 | 0x60 | 0x61 | 0x70..=0x72
            | 0x74 | 0x80..=0x84 | 0x94 | 0x98 | 0xa0 | 0xb0
    )
}

/// Reads an item without allocating.
///
/// # Errors
/// When it is not exactly one sound value. Lists, maps and arrays are not looked into.
pub fn read(item: &[u8]) -> Result<Item<'_>, DecodeError> {
    let code = *item.first().ok_or(DecodeError::CutShort("item"))?;
    match format::shape(code) {
        _ if code == format::DESCRIBED => described(item),
        Some(Shape::Compound(_) | Shape::Array(_)) => Ok(Item::Compound),
        _ if code == format::LIST_0 => Ok(Item::Compound),
        Some(Shape::Variable(width)) => variable(item, code, width),
        _ => {
            let mut cursor = Cursor::new(item, "item");
            let code = cursor.byte()?;
            let value = decode::scalar(&mut cursor, code)?;
            cursor.finish()?;
            Ok(Item::Scalar(value))
        }
    }
}

fn variable(item: &[u8], code: u8, width: Width) -> Result<Item<'_>, DecodeError> {
    let mut cursor = Cursor::new(item, "item");
    cursor.byte()?;
    let content = cursor.variable(width)?;
    cursor.finish()?;
    match code {
        format::BINARY_8 | format::BINARY_32 => Ok(Item::Binary(content)),
        _ => decode::utf8(content).map(Item::Text),
    }
}

fn described(item: &[u8]) -> Result<Item<'_>, DecodeError> {
    let value = undescribed(item)?;
    let descriptor = &item[1..item.len() - value.len()];
    Ok(Item::Described(descriptor, value))
}

/// The content of an encoded string or symbol.
#[must_use]
pub fn text(item: &[u8]) -> Option<&str> {
    let content = match *item {
        [0xa1 | 0xa3, _, ..] => &item[2..],
        [0xb1 | 0xb3, _, _, _, _, ..] => &item[5..],
        _ => return None,
    };
    std::str::from_utf8(content).ok()
}

/// The content of an encoded long or timestamp.
#[must_use]
pub fn integer(item: &[u8]) -> Option<i64> {
    match *item {
        [0x55, small] => Some(i64::from(i8::from_be_bytes([small]))),
        [0x81 | 0x83, a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}
