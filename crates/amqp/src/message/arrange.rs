//! Arrange: puts the sections of a message into the standard's order. [AMQP 3.2]
//!
//! Some clients write delivery annotations after the body, or the footer before it. As in an
//! ordered message, each section occurs at most once and body sections are adjacent; only the order
//! differs. Content is not read beyond the sizes.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::sections::{PLACES, SectionKind, Sections};
use crate::cursor::Cursor;
use crate::decode::DecodeError;

/// A message with its sections in the standard's order, as nearly all come, and where they are.
///
/// # Errors
/// When a section is unknown, repeated or cut short, or body sections stand apart.
pub fn scan_in_any_order(message: &Bytes) -> Result<(Bytes, Sections), DecodeError> {
    match Sections::scan(message) {
        Ok(sections) => Ok((message.clone(), sections)),
        Err(DecodeError::UnexpectedDescriptor(_)) => {
            let arranged = arrange(message)?;
            let sections = Sections::scan(&arranged)?;
            Ok((arranged, sections))
        }
        Err(error) => Err(error),
    }
}

/// The same sections in the standard's order.
///
/// # Errors
/// When a section is unknown, repeated or cut short, or body sections stand apart.
pub fn arrange(message: &[u8]) -> Result<Bytes, DecodeError> {
    let mut arranged = BytesMut::with_capacity(message.len());
    for range in places(message)? {
        arranged.extend_from_slice(&message[range]);
    }
    Ok(arranged.freeze())
}

/// Where each section lies, in the standard's order. Absent sections are empty.
fn places(message: &[u8]) -> Result<[Range<usize>; PLACES], DecodeError> {
    let mut places: [Range<usize>; PLACES] = Default::default();
    let mut before: Option<SectionKind> = None;
    let mut cursor = Cursor::new(message, "message");
    while cursor.remaining() > 0 {
        let start = message.len() - cursor.remaining();
        let descriptor = cursor.descriptor()?;
        let kind = SectionKind::of(descriptor)?;
        kind.skip(&mut cursor)?;
        let end = message.len() - cursor.remaining();
        let place = &mut places[kind.place];
        if place.end == 0 {
            *place = start..end;
        } else if before.is_some_and(|before| kind.may_follow(&before)) {
            place.end = end;
        } else {
            return Err(DecodeError::UnexpectedDescriptor(descriptor));
        }
        before = Some(kind);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"\x00\x53\x70\x45";
    const DELIVERY_ANNOTATIONS: &[u8] = b"\x00\x53\x71\xc1\x01\x00";
    const PROPERTIES: &[u8] = b"\x00\x53\x73\x45";
    const ONE: &[u8] = b"\x00\x53\x75\xa0\x011";
    const TWO: &[u8] = b"\x00\x53\x75\xa0\x012";
    const VALUE: &[u8] = b"\x00\x53\x77\x40";
    const FOOTER: &[u8] = b"\x00\x53\x78\xc1\x01\x00";

    fn check(sections: &[&[u8]], expected: &[&[u8]]) {
        let arranged = arrange(&sections.concat()).expect("it can be arranged");
        assert_eq!(arranged, expected.concat());
        assert!(Sections::scan(&arranged).is_ok());
    }

    fn refused(sections: &[&[u8]], descriptor: u64) {
        let refusal = arrange(&sections.concat());
        assert_eq!(refusal, Err(DecodeError::UnexpectedDescriptor(descriptor)));
    }

    #[test]
    fn sections_in_any_order_are_put_into_the_standards() {
        let ordered: &[&[u8]] = &[HEADER, DELIVERY_ANNOTATIONS, PROPERTIES, ONE, TWO, FOOTER];
        check(ordered, ordered);
        check(
            &[HEADER, PROPERTIES, ONE, TWO, FOOTER, DELIVERY_ANNOTATIONS],
            ordered,
        );
        check(
            &[FOOTER, ONE, TWO, PROPERTIES, DELIVERY_ANNOTATIONS, HEADER],
            ordered,
        );
        check(&[], &[]);
    }

    #[test]
    fn a_section_that_stands_twice_is_refused() {
        refused(&[HEADER, HEADER], 0x70);
        refused(&[DELIVERY_ANNOTATIONS, ONE, DELIVERY_ANNOTATIONS], 0x71);
        refused(&[VALUE, VALUE], 0x77);
        refused(&[FOOTER, ONE, FOOTER], 0x78);
    }

    #[test]
    fn bodies_that_stand_apart_or_differ_in_kind_are_refused() {
        refused(&[ONE, PROPERTIES, TWO], 0x75);
        refused(&[ONE, VALUE], 0x77);
    }

    #[test]
    fn unknown_sections_and_cut_ones_are_refused() {
        refused(&[ONE, b"\x00\x53\x79\xc1\x01\x00"], 0x79);
        assert!(arrange(&FOOTER[..5]).is_err());
    }
}
