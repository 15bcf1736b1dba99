//! Performatives: what decodes, encodes in full and decodes to the same, and the payload is left.
//!
//! Our form of a value may be the smaller one, and then pay for fewer array elements.

#![no_main]

use amqp::DecodeError;
use amqp::performative::Performative;
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| round_trip(&Bytes::copy_from_slice(input)));

fn round_trip(input: &Bytes) {
    let mut payload = input.clone();
    let Ok(performative) = Performative::decode(&mut payload) else {
        assert_eq!(payload, input);
        return;
    };
    assert!(input.ends_with(&payload));
    let once = encoded(&performative);
    let mut rest = once.clone();
    match Performative::decode(&mut rest) {
        // Compared as bytes, because NaN is not equal to itself.
        Ok(again) => assert!(rest.is_empty() && encoded(&again) == once),
        Err(error) => assert!(matches!(error, DecodeError::TooMany { .. }), "{error}"),
    }
}

fn encoded(performative: &Performative) -> Bytes {
    let mut out = BytesMut::new();
    performative.encode(&mut out);
    out.freeze()
}
