//! Format: the code in front of every value, and the size of the bytes that follow. [AMQP 1.2]
//!
//! The upper half of a code gives the shape, so a value can be skipped without being decoded; codes
//! that the standard does not assign are refused, because their shape would be a guess.

pub(crate) const DESCRIBED: u8 = 0x00;
pub(crate) const NULL: u8 = 0x40;
pub(crate) const TRUE: u8 = 0x41;
pub(crate) const FALSE: u8 = 0x42;
pub(crate) const UINT_0: u8 = 0x43;
pub(crate) const ULONG_0: u8 = 0x44;
pub(crate) const LIST_0: u8 = 0x45;
pub(crate) const UBYTE: u8 = 0x50;
pub(crate) const BYTE: u8 = 0x51;
pub(crate) const SMALL_UINT: u8 = 0x52;
pub(crate) const SMALL_ULONG: u8 = 0x53;
pub(crate) const SMALL_INT: u8 = 0x54;
pub(crate) const SMALL_LONG: u8 = 0x55;
pub(crate) const BOOLEAN: u8 = 0x56;
pub(crate) const USHORT: u8 = 0x60;
pub(crate) const SHORT: u8 = 0x61;
pub(crate) const UINT: u8 = 0x70;
pub(crate) const INT: u8 = 0x71;
pub(crate) const FLOAT: u8 = 0x72;
pub(crate) const CHAR: u8 = 0x73;
pub(crate) const DECIMAL_32: u8 = 0x74;
pub(crate) const ULONG: u8 = 0x80;
pub(crate) const LONG: u8 = 0x81;
pub(crate) const DOUBLE: u8 = 0x82;
pub(crate) const TIMESTAMP: u8 = 0x83;
pub(crate) const DECIMAL_64: u8 = 0x84;
pub(crate) const DECIMAL_128: u8 = 0x94;
pub(crate) const UUID: u8 = 0x98;
pub(crate) const BINARY_8: u8 = 0xa0;
pub(crate) const STRING_8: u8 = 0xa1;
pub(crate) const SYMBOL_8: u8 = 0xa3;
pub(crate) const BINARY_32: u8 = 0xb0;
pub(crate) const STRING_32: u8 = 0xb1;
pub(crate) const SYMBOL_32: u8 = 0xb3;
pub(crate) const LIST_8: u8 = 0xc0;
pub(crate) const MAP_8: u8 = 0xc1;
pub(crate) const LIST_32: u8 = 0xd0;
pub(crate) const MAP_32: u8 = 0xd1;
pub(crate) const ARRAY_8: u8 = 0xe0;
pub(crate) const ARRAY_32: u8 = 0xf0;

/// The difference between the code of a type's full form, with a size of four bytes, and the
/// compact one's.
const FULL: u8 = 0x10;

/// The code of the form with a size of one byte, for the code of any type that has a size.
#[inline]
pub(crate) const fn compact(code: u8) -> u8 {
    code & !FULL
}

/// The code of the form with a size of four bytes, for the code of any type that has a size.
#[inline]
pub(crate) const fn full(code: u8) -> u8 {
    code | FULL
}

/// How wide the size (and the count, if there is one) of a value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Width {
    One,
    Four,
}

impl Width {
    /// In bytes.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Four => 4,
        }
    }

    /// The width of the size that follows `code`, the code of a type that has a size.
    #[inline]
    pub(crate) const fn of(code: u8) -> Self {
        if code & FULL == 0 {
            Self::One
        } else {
            Self::Four
        }
    }
}

/// The shape of the bytes after a format code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shape {
    /// As many bytes.
    Fixed(usize),
    /// A size, then as many bytes.
    Variable(Width),
    /// A size, a count, then as many values: a list or a map.
    Compound(Width),
    /// A size, a count, one constructor, then as many bodies.
    Array(Width),
}

/// The shape of what follows `code`; `None` for a code that the standard does not assign.
pub(crate) const fn shape(code: u8) -> Option<Shape> {
    Some(match code {
        NULL..=LIST_0 => Shape::Fixed(0),
        UBYTE..=BOOLEAN => Shape::Fixed(1),
        USHORT | SHORT => Shape::Fixed(2),
        UINT..=DECIMAL_32 => Shape::Fixed(4),
        ULONG..=DECIMAL_64 => Shape::Fixed(8),
        DECIMAL_128 | UUID => Shape::Fixed(16),
        BINARY_8 | STRING_8 | SYMBOL_8 | BINARY_32 | STRING_32 | SYMBOL_32 => {
            Shape::Variable(Width::of(code))
        }
        LIST_8 | MAP_8 | LIST_32 | MAP_32 => Shape::Compound(Width::of(code)),
        ARRAY_8 | ARRAY_32 => Shape::Array(Width::of(code)),
        _ => return None,
    })
}
