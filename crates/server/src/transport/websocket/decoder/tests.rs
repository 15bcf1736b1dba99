//! Frames decoded however they are cut.

use super::*;

const LIMIT: u64 = 1 << 20;
const MASK: [u8; 4] = [1, 2, 3, 4];

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;

/// A masked frame by hand.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(
        payload
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    frame
}

fn binary(payload: &[u8]) -> Vec<u8> {
    frame(FINAL | BINARY, payload)
}

/// Decodes `input` in pieces of `size` bytes, behind bytes that are none of its business.
fn decode(decoder: &mut Decoder, input: &[u8], size: usize) -> Vec<u8> {
    let mut buffer = BytesMut::from(&b"old"[..]);
    for piece in input.chunks(size) {
        let start = buffer.len();
        buffer.extend_from_slice(piece);
        decoder.decode(&mut buffer, start);
    }
    assert_eq!(&buffer[..3], b"old");
    buffer[3..].to_vec()
}

/// What comes out of `frames`, however they are cut, and how it ends.
fn check(frames: &[Vec<u8>], payload: &[u8], over: Option<CloseCode>) {
    let input = frames.concat();
    for size in [1, 2, 3, 5, 14, 100, input.len()] {
        let mut decoder = Decoder::new(LIMIT);
        assert!(
            decode(&mut decoder, &input, size) == payload,
            "pieces of {size}"
        );
        assert_eq!(decoder.is_over(), over.is_some(), "pieces of {size}");
        let code = decoder.close_code();
        assert_eq!(code, over.unwrap_or(CloseCode::Normal), "pieces of {size}");
    }
}

#[test]
fn payloads_come_out_however_they_are_cut_into_messages_and_reads() {
    let long: Vec<u8> = (0..70_000u32).map(|number| number as u8).collect();
    let whole = [b"AMQP", &long[..], &long[..200]].concat();
    let frames = [
        binary(b"AM"),
        binary(b""),
        frame(BINARY, b"Q"),
        frame(CONTINUATION, b""),
        frame(FINAL | CONTINUATION, b"P"),
        binary(&long),
        binary(&long[..200]),
    ];
    check(&frames, &whole, None);
}

#[test]
fn control_frames_may_stand_within_a_message() {
    let frames = [
        frame(BINARY, b"one "),
        frame(FINAL | PONG, b"unasked"),
        frame(FINAL | PING, b"first"),
        frame(FINAL | PING, b"second"),
        frame(FINAL | CONTINUATION, b"message"),
    ];
    check(&frames, b"one message", None);
    let mut decoder = Decoder::new(LIMIT);
    decode(&mut decoder, &frames.concat(), 7);
    assert_eq!(decoder.take_pong().as_deref(), Some(&b"second"[..]));
    assert_eq!(decoder.take_pong(), None);
}

#[test]
fn text_is_not_accepted() {
    check(
        &[binary(b"x"), frame(FINAL | TEXT, b"hello")],
        b"x",
        Some(CloseCode::Unsupported),
    );
}

#[test]
fn frames_out_of_order_are_a_breach_of_the_protocol() {
    let breach = Some(CloseCode::Protocol);
    check(&[frame(FINAL | CONTINUATION, b"y")], b"", breach);
    check(&[frame(BINARY, b"x"), binary(b"y")], b"x", breach);
    check(&[frame(BINARY, b"x"), frame(TEXT, b"y")], b"x", breach);
}

#[test]
fn frames_that_are_none_are_a_breach_of_the_protocol() {
    let breach = Some(CloseCode::Protocol);
    let unmasked = vec![FINAL | BINARY, 1, b'x'];
    check(&[binary(b"x"), unmasked], b"x", breach);
    for reserved in [0x40, 0x20, 0x10] {
        check(&[frame(FINAL | reserved | BINARY, b"y")], b"", breach);
    }
    for unknown in [3, 7, 11, 15] {
        check(&[frame(FINAL | unknown, b"y")], b"", breach);
    }
    check(&[frame(PING, b"cut")], b"", breach);
    check(&[frame(FINAL | PING, &[0; 126])], b"", breach);
    check(&[frame(FINAL | CLOSE, b"x")], b"", breach);
}

#[test]
fn a_frame_that_is_too_large_is_refused_by_its_header() {
    for length in [LIMIT + 1, u64::MAX] {
        let mut header = vec![FINAL | BINARY, 0x80 | 127];
        header.extend(length.to_be_bytes());
        header.extend(MASK);
        check(&[header], b"", Some(CloseCode::Size));
    }
}

#[test]
fn nothing_is_taken_behind_a_close_frame() {
    let close = frame(FINAL | CLOSE, &1000u16.to_be_bytes());
    check(
        &[binary(b"x"), close, binary(b"y")],
        b"x",
        Some(CloseCode::Normal),
    );
    check(
        &[frame(FINAL | CLOSE, b""), binary(b"y")],
        b"",
        Some(CloseCode::Normal),
    );
}

#[test]
fn a_decoder_keeps_nothing_of_a_large_frame() {
    let mut decoder = Decoder::new(LIMIT);
    let frame = binary(&vec![7; 1 << 20]);
    let mut buffer = BytesMut::from(&frame[..frame.len() - 1]);
    decoder.decode(&mut buffer, 0);
    assert_eq!(buffer.len(), (1 << 20) - 1);
    assert!(decoder.header.capacity() + decoder.control.capacity() < 200);
}
