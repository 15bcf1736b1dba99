//! Any value: what decodes, encodes and decodes to the same; the validator decides alone what is
//! sound.
//!
//! Our form of a value may be the smaller one, and then pay for fewer array elements.

#![no_main]

use amqp::{DecodeError, decode, encode, validate};
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| round_trip(&Bytes::copy_from_slice(input)));

fn round_trip(input: &Bytes) {
    let size = validate::value(input, decode::MAX_ELEMENTS);
    let Ok(value) = decode::take_value(&mut input.clone()) else {
        return;
    };
    assert_eq!(size, validate::extent(input));
    let once = encoded(&value);
    match decode::value(&once) {
        // Compared as bytes, because NaN is not equal to itself.
        Ok(again) => assert_eq!(encoded(&again), once),
        Err(error) => assert!(matches!(error, DecodeError::TooMany { .. }), "{error}"),
    }
}

fn encoded(value: &amqp::Value) -> Bytes {
    let mut out = BytesMut::new();
    encode::value(&mut out, value);
    out.freeze()
}
