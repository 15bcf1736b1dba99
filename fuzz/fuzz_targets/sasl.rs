//! SASL frames: what decodes, encodes in full and decodes to the same.

#![no_main]

use amqp::sasl::SaslFrame;
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(frame) = SaslFrame::decode(&Bytes::copy_from_slice(input)) {
        let mut out = BytesMut::new();
        frame.encode(&mut out);
        assert_eq!(SaslFrame::decode(&out.freeze()), Ok(frame));
    }
});
