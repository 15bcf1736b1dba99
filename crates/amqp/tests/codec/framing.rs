//! Cutting the byte stream into frames. [AMQP 2.3]

use amqp::frame::{self, Frame, FrameType, FramingError};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

const LIMIT: u32 = 512;

fn check(input: &[u8], expected: &Result<Option<Frame>, FramingError>) {
    let split = frame::split(&mut BytesMut::from(input), LIMIT);
    assert_eq!(split, *expected, "{input:02x?}");
}

fn frame(frame_type: FrameType, channel: u16, body: &'static [u8]) -> Frame {
    Frame {
        frame_type,
        channel,
        body: Bytes::from_static(body),
    }
}

#[test]
fn a_frame_carries_type_channel_and_body() {
    check(
        b"\0\0\0\x0b\x02\0\x01\x02abc",
        &Ok(Some(frame(FrameType::Amqp, 0x0102, b"abc"))),
    );
    check(
        b"\0\0\0\x09\x02\x01\0\0s",
        &Ok(Some(frame(FrameType::Sasl, 0, b"s"))),
    );
}

#[test]
fn a_frame_without_a_body_is_a_heartbeat() {
    check(
        b"\0\0\0\x08\x02\0\0\x07",
        &Ok(Some(frame(FrameType::Amqp, 7, b""))),
    );
}

#[test]
fn an_extended_header_is_skipped() {
    check(
        b"\0\0\0\x0e\x03\0\0\0\x01\x02\x03\x04ab",
        &Ok(Some(frame(FrameType::Amqp, 0, b"ab"))),
    );
    check(
        b"\0\0\0\x0c\x03\0\0\0\x01\x02\x03\x04",
        &Ok(Some(frame(FrameType::Amqp, 0, b""))),
    );
}

#[test]
fn a_frame_is_waited_for_until_it_is_whole() {
    for end in 0..11 {
        let whole = b"\0\0\0\x0b\x02\0\x01\x02abc";
        let mut input = BytesMut::from(&whole[..end]);
        assert_eq!(frame::split(&mut input, LIMIT), Ok(None));
        assert_eq!(
            input.len(),
            end,
            "nothing is taken before the frame is whole"
        );
    }
}

#[test]
fn a_wrong_header_is_refused_before_the_rest_arrives() {
    check(
        b"\0\0\0\x07\x02\0\0\0",
        &Err(FramingError::TooSmall { size: 7 }),
    );
    check(
        b"\0\0\0\0\x02\0\0\0",
        &Err(FramingError::TooSmall { size: 0 }),
    );
    check(
        b"\0\0\x02\x01\x02\0\0\0",
        &Err(FramingError::TooLarge {
            size: 513,
            limit: 512,
        }),
    );
    let size = u32::MAX;
    check(
        b"\xff\xff\xff\xff\x02\0\0\0",
        &Err(FramingError::TooLarge { size, limit: 512 }),
    );
    check(
        b"\0\0\0\x20\x01\0\0\0",
        &Err(FramingError::DataOffset { doff: 1, size: 32 }),
    );
    check(
        b"\0\0\0\x0b\x03\0\0\0",
        &Err(FramingError::DataOffset { doff: 3, size: 11 }),
    );
    check(
        b"\0\0\0\x20\xff\0\0\0",
        &Err(FramingError::DataOffset {
            doff: 255,
            size: 32,
        }),
    );
    check(
        b"\0\0\0\x20\x02\x02\0\0",
        &Err(FramingError::UnknownType(2)),
    );
}

#[test]
fn a_frame_of_just_the_limit_is_accepted() {
    let mut input = BytesMut::from(&b"\0\0\x02\0\x02\0\0\0"[..]);
    input.resize(512, 0);
    let frame = frame::split(&mut input, LIMIT).unwrap().unwrap();
    assert_eq!(frame.body.len(), 504);
}

#[test]
fn a_body_is_not_copied() {
    let mut input = BytesMut::from(&b"\0\0\0\x0b\x02\0\0\0abc"[..]);
    let place = input[8..].as_ptr();
    let frame = frame::split(&mut input, LIMIT).unwrap().unwrap();
    assert_eq!(frame.body.as_ptr(), place);
}

proptest! {
    #[test]
    fn what_is_framed_is_split_again_however_it_arrives(
        bodies in prop::collection::vec(
            (any::<u16>(), prop::collection::vec(any::<u8>(), 0..50)),
            0..6,
        ),
        chunk in 1..64usize,
    ) {
        let mut stream = BytesMut::new();
        for (channel, body) in &bodies {
            let start = frame::begin(&mut stream, FrameType::Amqp, *channel);
            stream.extend_from_slice(body);
            frame::finish(&mut stream, start);
        }
        let mut input = BytesMut::new();
        let mut split = Vec::new();
        for part in stream.chunks(chunk) {
            input.extend_from_slice(part);
            while let Some(frame) = frame::split(&mut input, LIMIT).unwrap() {
                split.push((frame.channel, frame.body.to_vec()));
            }
        }
        prop_assert_eq!(split, bodies);
        prop_assert!(input.is_empty());
    }

    #[test]
    fn no_bytes_make_it_panic(input in prop::collection::vec(any::<u8>(), 0..64)) {
        let before = input.len();
        let mut input = BytesMut::from(&input[..]);
        if let Ok(Some(frame)) = frame::split(&mut input, LIMIT) {
            prop_assert!(frame.body.len() + frame::HEADER_SIZE + input.len() <= before);
        }
    }
}
