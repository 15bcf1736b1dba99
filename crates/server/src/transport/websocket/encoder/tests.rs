//! Frames encoded however little the stream takes.

use std::collections::VecDeque;

use bytes::BytesMut;
use tokio::net::TcpStream;

use super::*;

/// A stream that takes a number of bytes each time, then nothing for once.
#[derive(Default)]
struct Sink {
    room: VecDeque<usize>,
    taken: Vec<u8>,
}

impl Stream for Sink {
    fn is_tls(&self) -> bool {
        false
    }

    fn socket(&mut self) -> &mut TcpStream {
        unreachable!("nobody waits here")
    }

    fn try_read(&mut self, _: &mut BytesMut, _: usize) -> io::Result<usize> {
        unreachable!("nobody reads here")
    }

    fn try_write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        match self.room.pop_front() {
            Some(0) => Err(io::ErrorKind::WouldBlock.into()),
            room => {
                let count = room.unwrap_or(usize::MAX).min(all.len());
                self.taken.extend_from_slice(&all[..count]);
                Ok(count)
            }
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn try_close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A payload in two parts.
fn parts(payload: &[u8]) -> [IoSlice<'_>; 2] {
    let (one, other) = payload.split_at(payload.len() / 3 + 1);
    [IoSlice::new(one), IoSlice::new(other)]
}

/// Writes all of `payload`, trying again whenever the sink has taken nothing.
fn write(encoder: &mut Encoder, sink: &mut Sink, mut payload: &[u8]) {
    while !payload.is_empty() {
        if let Ok(count) = encoder.write(sink, &parts(payload)) {
            payload = &payload[count..];
        }
    }
}

fn flush(encoder: &mut Encoder, sink: &mut Sink) {
    while encoder.flush(sink).is_err() {}
}

const BINARY: u8 = 0x82;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;

#[test]
fn a_payload_goes_into_frames_that_cautious_clients_take() {
    let payload: Vec<u8> = (0..40_000u32).map(|number| number as u8).collect();
    let (mut encoder, mut sink) = (Encoder::default(), Sink::default());
    write(&mut encoder, &mut sink, &payload);
    let mut expected = vec![BINARY, 126, 0x80, 0];
    expected.extend(&payload[..MAX_FRAME]);
    expected.extend([BINARY, 126]);
    expected.extend(((payload.len() - MAX_FRAME) as u16).to_be_bytes());
    expected.extend(&payload[MAX_FRAME..]);
    assert!(sink.taken == expected);
}

#[test]
fn frames_are_the_same_however_little_the_stream_takes() {
    let (mut encoder, mut sink) = (Encoder::default(), Sink::default());
    sink.room = (0..40).map(|number| number % 3).collect();
    write(&mut encoder, &mut sink, b"one");
    write(&mut encoder, &mut sink, b"three");
    encoder.close(CloseCode::Normal);
    flush(&mut encoder, &mut sink);
    let expected = [
        &[BINARY, 3][..],
        b"one",
        &[BINARY, 5],
        b"three",
        &[CLOSE, 2, 0x03, 0xe8],
    ];
    assert_eq!(sink.taken, expected.concat());
}

#[test]
fn control_frames_wait_for_the_end_of_a_frame() {
    let (mut encoder, mut sink) = (Encoder::default(), Sink::default());
    sink.room = VecDeque::from([4, 0]);
    assert_eq!(encoder.write(&mut sink, &parts(b"hello")).unwrap(), 2);
    encoder.pong(b"ping");
    assert!(!encoder.has_unsent());
    flush(&mut encoder, &mut sink);
    assert_eq!(sink.taken, [&[BINARY, 5][..], b"he"].concat());
    write(&mut encoder, &mut sink, b"llo");
    assert!(encoder.has_unsent());
    flush(&mut encoder, &mut sink);
    let expected = [&[BINARY, 5][..], b"hello", &[PONG, 4], b"ping"];
    assert_eq!(sink.taken, expected.concat());
    assert!(!encoder.has_unsent());
}

#[test]
fn only_the_latest_ping_is_answered() {
    let (mut encoder, mut sink) = (Encoder::default(), Sink::default());
    sink.room = VecDeque::from([1, 0]);
    encoder.pong(b"a");
    assert!(encoder.flush(&mut sink).is_err());
    for ping in [b"b", b"c", b"d"] {
        encoder.pong(ping);
    }
    flush(&mut encoder, &mut sink);
    assert_eq!(sink.taken, [PONG, 1, b'a', PONG, 1, b'd']);
}

#[test]
fn nothing_is_closed_twice() {
    let (mut encoder, mut sink) = (Encoder::default(), Sink::default());
    encoder.close(CloseCode::Size);
    encoder.close(CloseCode::Normal);
    flush(&mut encoder, &mut sink);
    assert_eq!(sink.taken, [CLOSE, 2, 0x03, 0xf1]);
}
