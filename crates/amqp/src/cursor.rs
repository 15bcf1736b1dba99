//! Cursor: reads forward through the bytes of a peer.
//!
//! Every read is checked against the remaining bytes, so no input makes it panic or read past its
//! end. A compound value is read through a cursor of its own that ends at the value's size.

use bytes::Bytes;

use crate::decode::DecodeError;
use crate::descriptor;
use crate::format::{self, Width};

/// The unread rest of some input.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// The buffer that `rest` lies in, so that binaries can share it.
    owner: Option<&'a Bytes>,
    /// The name of the value that is read, for error texts.
    within: &'static str,
}

impl<'a> Cursor<'a> {
    /// Over plain bytes; binaries taken from it are copies.
    pub(crate) const fn new(input: &'a [u8], within: &'static str) -> Self {
        Self {
            rest: input,
            owner: None,
            within,
        }
    }

    /// Over a shared buffer; binaries taken from it are slices of it.
    pub(crate) fn sharing(input: &'a Bytes, within: &'static str) -> Self {
        Self {
            rest: input,
            owner: Some(input),
            within,
        }
    }

    /// How many bytes are unread.
    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that are not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Ends the reading; nothing may be left over.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            rest => Err(DecodeError::Trailing(rest)),
        }
    }

    /// The next byte, left unread.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self
            .rest
            .split_first()
            .ok_or(DecodeError::CutShort(self.within))?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(DecodeError::CutShort(self.within))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (&taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::CutShort(self.within))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Passes over `prefix`, if that is what comes next.
    #[inline]
    pub(crate) fn skip(&mut self, prefix: &[u8; 4]) -> bool {
        match self.rest.split_first_chunk::<4>() {
            Some((next, rest)) if next == prefix => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// A size or a count.
    #[inline]
    pub(crate) fn size(&mut self, width: Width) -> Result<usize, DecodeError> {
        Ok(match width {
            Width::One => usize::from(self.byte()?),
            Width::Four => u32::from_be_bytes(self.array()?) as usize,
        })
    }

    /// A size, and as many bytes.
    #[inline]
    pub(crate) fn variable(&mut self, width: Width) -> Result<&'a [u8], DecodeError> {
        let size = self.size(width)?;
        self.take(size)
    }

    /// A size, a count, and a cursor over the bytes that the size leaves for the items.
    #[inline]
    pub(crate) fn compound(
        &mut self,
        width: Width,
        within: &'static str,
    ) -> Result<(Self, usize), DecodeError> {
        let body = self.variable(width)?;
        let mut inner = Self {
            rest: body,
            owner: self.owner,
            within,
        };
        let count = inner.size(width)?;
        Ok((inner, count))
    }

    /// A descriptor as its number, in any of the forms it may take.
    #[inline]
    pub(crate) fn descriptor(&mut self) -> Result<u64, DecodeError> {
        match self.rest {
            [format::DESCRIBED, format::SMALL_ULONG, code, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*code))
            }
            _ => self.unusual_descriptor(),
        }
    }

    #[cold]
    fn unusual_descriptor(&mut self) -> Result<u64, DecodeError> {
        if self.byte()? != format::DESCRIBED {
            return Err(DecodeError::WrongType("descriptor"));
        }
        match self.byte()? {
            format::ULONG => Ok(u64::from_be_bytes(self.array()?)),
            format::SMALL_ULONG => self.byte().map(u64::from),
            format::ULONG_0 => Ok(0),
            format::SYMBOL_8 => named(self.variable(Width::One)?),
            format::SYMBOL_32 => named(self.variable(Width::Four)?),
            code => Err(DecodeError::BadDescriptor(code)),
        }
    }

    /// `part`, which this cursor gave out, as a binary.
    pub(crate) fn share(&self, part: &'a [u8]) -> Bytes {
        match self.owner {
            Some(owner) => owner.slice_ref(part),
            None => Bytes::copy_from_slice(part),
        }
    }
}

fn named(name: &[u8]) -> Result<u64, DecodeError> {
    descriptor::by_name(name).ok_or(DecodeError::UnknownDescriptor)
}
