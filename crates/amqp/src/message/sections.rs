//! Sections: the position of each section of an encoded message. [AMQP 3.2]
//!
//! Sections come in the standard's order, each at most once, except data and sequence, which may
//! repeat.
//!
//! Invariant: the ranges adjoin and together cover the message; an absent section is an empty range
//! at its place in the order.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::format::{self, Width};
use crate::validate;

/// Where each section of an encoded message lies, descriptor included. Absent sections are empty
/// ranges.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the sections are the standard's")]
pub struct Sections {
    pub header: Range<usize>,
    pub delivery_annotations: Range<usize>,
    pub message_annotations: Range<usize>,
    pub properties: Range<usize>,
    pub application_properties: Range<usize>,
    /// All body sections together.
    pub body: Range<usize>,
    pub footer: Range<usize>,
    /// The kind of the body sections, and their number.
    pub body_kind: BodyKind,
    pub body_sections: usize,
}

/// The three kinds of body. [AMQP 3.2.6-8]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are the standard's")]
pub enum BodyKind {
    /// No body section at all; some clients omit it.
    #[default]
    None,
    Data,
    Sequence,
    Value,
}

impl Sections {
    /// Finds the sections of `message`.
    ///
    /// # Errors
    /// When a section is unknown, out of order, repeated or cut short.
    pub fn scan(message: &[u8]) -> Result<Self, DecodeError> {
        let mut scan = Scan::default();
        let mut cursor = Cursor::new(message, "message");
        while cursor.remaining() > 0 {
            let descriptor = cursor.descriptor()?;
            let kind = SectionKind::of(descriptor)?;
            kind.skip(&mut cursor)?;
            if !scan.place(&kind, message.len() - cursor.remaining()) {
                return Err(DecodeError::UnexpectedDescriptor(descriptor));
            }
        }
        Ok(scan.finish())
    }

    /// Properties, application properties, body and footer: what no intermediary may change.
    #[must_use]
    pub fn bare(&self) -> Range<usize> {
        self.properties.start..self.footer.end
    }
}

/// The places of the sections in a message, in order: five that stand alone, body and footer.
const BODY: usize = 5;
const FOOTER: usize = 6;
pub(super) const PLACES: usize = 7;

/// The kind of a section, by its descriptor.
pub(super) struct SectionKind {
    pub(super) place: usize,
    body: BodyKind,
    /// The compact format code of its content; `None` for any.
    content: Option<u8>,
}

impl SectionKind {
    #[inline]
    pub(super) fn of(descriptor: u64) -> Result<Self, DecodeError> {
        let (place, body, content) = match descriptor {
            descriptor::HEADER => (0, BodyKind::None, Some(format::LIST_8)),
            descriptor::DELIVERY_ANNOTATIONS => (1, BodyKind::None, Some(format::MAP_8)),
            descriptor::MESSAGE_ANNOTATIONS => (2, BodyKind::None, Some(format::MAP_8)),
            descriptor::PROPERTIES => (3, BodyKind::None, Some(format::LIST_8)),
            descriptor::APPLICATION_PROPERTIES => (4, BodyKind::None, Some(format::MAP_8)),
            descriptor::DATA => (BODY, BodyKind::Data, Some(format::BINARY_8)),
            descriptor::SEQUENCE => (BODY, BodyKind::Sequence, Some(format::LIST_8)),
            descriptor::VALUE => (BODY, BodyKind::Value, None),
            descriptor::FOOTER => (FOOTER, BodyKind::None, Some(format::MAP_8)),
            other => return Err(DecodeError::UnexpectedDescriptor(other)),
        };
        Ok(Self {
            place,
            body,
            content,
        })
    }

    /// Passes over the section's content, if its type is the section's.
    #[inline]
    pub(super) fn skip(&self, cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
        let code = cursor.peek().ok_or(DecodeError::CutShort("message"))?;
        if self.content != Some(format::compact(code)) {
            return self.skip_unusual(cursor, code);
        }
        cursor.byte()?;
        cursor.variable(Width::of(code))?;
        Ok(())
    }

    /// Several data or several sequence sections may follow each other; all others stand alone.
    fn may_repeat(&self) -> bool {
        matches!(self.body, BodyKind::Data | BodyKind::Sequence)
    }

    /// Whether it may follow a section of its own place.
    pub(super) fn may_follow(&self, before: &Self) -> bool {
        self.may_repeat() && before.body == self.body
    }

    /// Only a value section may hold any type, and only a list has a form without a size.
    fn skip_unusual(&self, cursor: &mut Cursor<'_>, code: u8) -> Result<(), DecodeError> {
        let empty_list = self.content == Some(format::LIST_8) && code == format::LIST_0;
        if self.content.is_some() && !empty_list {
            return Err(DecodeError::WrongType("section"));
        }
        let extent = validate::extent(cursor.rest())?;
        cursor.take(extent)?;
        Ok(())
    }
}

#[derive(Default)]
struct Scan {
    /// Where each section ends; zero for one that has not come.
    ends: [usize; PLACES],
    /// The first place that the next section may take.
    next: usize,
    body_kind: BodyKind,
    body_sections: usize,
}

impl Scan {
    /// Takes in the section that ends at `end`.
    #[inline]
    fn place(&mut self, kind: &SectionKind, end: usize) -> bool {
        if kind.place < self.next && !self.repeats(kind) {
            return false;
        }
        self.ends[kind.place] = end;
        self.next = kind.place + 1;
        if kind.place == BODY {
            self.body_kind = kind.body;
            self.body_sections += 1;
        }
        true
    }

    fn repeats(&self, kind: &SectionKind) -> bool {
        kind.may_repeat() && kind.body == self.body_kind && self.next == BODY + 1
    }

    fn finish(mut self) -> Sections {
        for place in 1..PLACES {
            self.ends[place] = self.ends[place].max(self.ends[place - 1]);
        }
        let [
            header,
            delivery,
            annotations,
            properties,
            application,
            body,
            footer,
        ] = self.ends;
        Sections {
            header: 0..header,
            delivery_annotations: header..delivery,
            message_annotations: delivery..annotations,
            properties: annotations..properties,
            application_properties: properties..application,
            body: application..body,
            footer: body..footer,
            body_kind: self.body_kind,
            body_sections: self.body_sections,
        }
    }
}
