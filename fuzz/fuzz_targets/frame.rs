//! Framing: the frames of a stream are the same however it is cut, and hold no more than came.

#![no_main]

use amqp::frame::{self, Frame, FramingError};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

const LIMIT: u32 = 512;

fuzz_target!(|input: &[u8]| {
    let (frames, error) = split(&[input]);
    let held: usize = frames
        .iter()
        .map(|frame| frame.body.len() + frame::HEADER_SIZE)
        .sum();
    assert!(held <= input.len());
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(split(&bytes), (frames, error));
});

fn split(parts: &[&[u8]]) -> (Vec<Frame>, Option<FramingError>) {
    let mut input = BytesMut::new();
    let mut frames = Vec::new();
    for part in parts {
        input.extend_from_slice(part);
        loop {
            match frame::split(&mut input, LIMIT) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}
