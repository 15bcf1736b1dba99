//! Fields: a composite type's list, read field by field straight from the bytes. [AMQP 1.4]
//!
//! Fields that the list omits at its end are null. An unknown field is an error, and so is one of
//! another type; texts and symbols are accepted for each other, since client libraries mix them up.
//! The code that reads the fields of transfer, disposition and flow is always inlined: it saves a
//! quarter of their decoding time.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::decode::{self, DecodeError};
use crate::format::{self, Width};
use crate::symbol::Symbol;
use crate::value::{Map, Value};

/// The fields of one composite value that are still to be read.
pub(crate) struct Fields<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Fields<'a> {
    /// Reads the head of the list of the composite `name`, which has at most `known` fields.
    #[inline]
    pub(crate) fn open(
        cursor: &mut Cursor<'a>,
        name: &'static str,
        known: usize,
    ) -> Result<Self, DecodeError> {
        let (inner, count) = match cursor.byte()? {
            format::LIST_8 => cursor.compound(Width::One, name)?,
            format::LIST_32 => cursor.compound(Width::Four, name)?,
            format::LIST_0 => (Cursor::new(&[], name), 0),
            _ => return Err(DecodeError::WrongType(name)),
        };
        if count > known {
            return Err(DecodeError::TooMany {
                count,
                limit: known,
            });
        }
        Ok(Self {
            cursor: inner,
            left: count,
        })
    }

    /// Ends the reading; nothing may be left over.
    #[inline]
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        self.cursor.finish()
    }

    /// The next field's format code; that of null if the list is at its end.
    #[inline(always)]
    fn code(&mut self) -> Result<u8, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(format::NULL);
        };
        self.left = left;
        self.cursor.byte()
    }

    #[inline(always)]
    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            code @ (format::TRUE | format::FALSE | format::BOOLEAN) => {
                decode::boolean(&mut self.cursor, code).map(Some)
            }
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    #[inline]
    pub(crate) fn ubyte(&mut self, name: &'static str) -> Result<Option<u8>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            format::UBYTE => self.cursor.byte().map(Some),
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    #[inline]
    pub(crate) fn ushort(&mut self, name: &'static str) -> Result<Option<u16>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            format::USHORT => self.cursor.array().map(u16::from_be_bytes).map(Some),
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    #[inline(always)]
    pub(crate) fn uint(&mut self, name: &'static str) -> Result<Option<u32>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            code @ (format::UINT_0 | format::SMALL_UINT | format::UINT) => {
                decode::uint(&mut self.cursor, code).map(Some)
            }
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    #[inline]
    pub(crate) fn ulong(&mut self, name: &'static str) -> Result<Option<u64>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            code @ (format::ULONG_0 | format::SMALL_ULONG | format::ULONG) => {
                decode::ulong(&mut self.cursor, code).map(Some)
            }
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    pub(crate) fn timestamp(&mut self, name: &'static str) -> Result<Option<i64>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            format::TIMESTAMP => self.cursor.array().map(i64::from_be_bytes).map(Some),
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    #[inline]
    pub(crate) fn binary(&mut self, name: &'static str) -> Result<Option<Bytes>, DecodeError> {
        let content = match self.code()? {
            format::NULL => return Ok(None),
            format::BINARY_8 => self.cursor.variable(Width::One)?,
            format::BINARY_32 => self.cursor.variable(Width::Four)?,
            _ => return Err(DecodeError::WrongType(name)),
        };
        Ok(Some(self.cursor.share(content)))
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, DecodeError> {
        let Some(content) = self.characters(name)? else {
            return Ok(None);
        };
        decode::utf8(content).map(|text| Some(text.to_owned()))
    }

    pub(crate) fn symbol(&mut self, name: &'static str) -> Result<Option<Symbol>, DecodeError> {
        self.characters(name)?.map(decode::symbol).transpose()
    }

    /// The bytes of a string or symbol.
    fn characters(&mut self, name: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            format::STRING_8 | format::SYMBOL_8 => self.cursor.variable(Width::One).map(Some),
            format::STRING_32 | format::SYMBOL_32 => self.cursor.variable(Width::Four).map(Some),
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    /// A field that may hold several symbols: none, one alone, or an array. [AMQP 1.4]
    pub(crate) fn symbols(&mut self, name: &'static str) -> Result<Vec<Symbol>, DecodeError> {
        let content = match self.code()? {
            format::NULL => return Ok(Vec::new()),
            format::SYMBOL_8 => self.cursor.variable(Width::One)?,
            format::SYMBOL_32 => self.cursor.variable(Width::Four)?,
            format::ARRAY_8 => return self.symbol_array(Width::One, name),
            format::ARRAY_32 => return self.symbol_array(Width::Four, name),
            _ => return Err(DecodeError::WrongType(name)),
        };
        Ok(vec![decode::symbol(content)?])
    }

    fn symbol_array(
        &mut self,
        width: Width,
        name: &'static str,
    ) -> Result<Vec<Symbol>, DecodeError> {
        let (mut array, count) = self.cursor.compound(width, "array")?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let width = match array.byte()? {
            format::SYMBOL_8 => Width::One,
            format::SYMBOL_32 => Width::Four,
            _ => return Err(DecodeError::WrongType(name)),
        };
        // A symbol takes its size at least, so this bounds what a count can make us reserve.
        if count > array.remaining() / width.bytes() {
            return Err(DecodeError::CutShort("array"));
        }
        let mut symbols = Vec::with_capacity(count);
        for _ in 0..count {
            symbols.push(decode::symbol(array.variable(width)?)?);
        }
        array.finish()?;
        Ok(symbols)
    }

    pub(crate) fn map(&mut self, name: &'static str) -> Result<Option<Map>, DecodeError> {
        match self.value()? {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map)),
            Some(_) => Err(DecodeError::WrongType(name)),
        }
    }

    /// A value of any type, validated.
    pub(crate) fn value(&mut self) -> Result<Option<Value>, DecodeError> {
        match self.present()? {
            None => Ok(None),
            Some(cursor) => decode::validated(cursor).map(Some),
        }
    }

    /// A value without items whose format code `is_allowed`.
    pub(crate) fn scalar(
        &mut self,
        name: &'static str,
        is_allowed: fn(u8) -> bool,
    ) -> Result<Option<Value>, DecodeError> {
        match self.code()? {
            format::NULL => Ok(None),
            code if is_allowed(code) => decode::scalar(&mut self.cursor, code).map(Some),
            _ => Err(DecodeError::WrongType(name)),
        }
    }

    /// The cursor in front of the next field, unless that is null. The caller reads exactly one
    /// value.
    #[inline]
    pub(crate) fn present(&mut self) -> Result<Option<&mut Cursor<'a>>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        if self.cursor.peek() == Some(format::NULL) {
            self.cursor.byte()?;
            return Ok(None);
        }
        Ok(Some(&mut self.cursor))
    }
}

/// `field`, which the standard calls mandatory.
#[inline]
pub(crate) fn mandatory<T>(field: Option<T>, name: &'static str) -> Result<T, DecodeError> {
    field.ok_or(DecodeError::Missing(name))
}
