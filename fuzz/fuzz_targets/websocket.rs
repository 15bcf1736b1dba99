//! WebSocket frames of a client: never a panic, never more out than in, and the same payload and
//! the same end however the input is cut into reads.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/server/src/transport/websocket/decoder.rs"]
mod decoder;

use decoder::Decoder;

const LIMIT: u64 = 1 << 20;

fn decode(input: &[u8], size: usize) -> (BytesMut, Option<u16>, Option<Vec<u8>>) {
    let mut decoder = Decoder::new(LIMIT);
    let mut buffer = BytesMut::new();
    for piece in input.chunks(size.max(1)) {
        let start = buffer.len();
        buffer.extend_from_slice(piece);
        decoder.decode(&mut buffer, start);
    }
    let end = decoder.is_over().then(|| decoder.close_code().into());
    (buffer, end, decoder.take_pong())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = decode(bytes, bytes.len());
    assert!(whole.0.len() <= bytes.len());
    assert_eq!(decode(bytes, size.into()), whole);
});
