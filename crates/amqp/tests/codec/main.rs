//! The codec against the standard's bytes, against itself, against another implementation, and
//! against input that means harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differential;
mod framing;
mod generate;
mod hostile;
mod leniency;
mod message;
mod round_trip;
mod rules;
mod standard;

use amqp::performative::Performative;
use amqp::{DecodeError, Value};
use bytes::{Bytes, BytesMut};

/// What `write` appends, in one buffer.
fn written(write: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out);
    out.freeze()
}

fn encoded(value: &Value) -> Bytes {
    written(|out| amqp::encode::value(out, value))
}

fn decoded(bytes: &[u8]) -> Result<Value, DecodeError> {
    amqp::decode::value(&Bytes::copy_from_slice(bytes))
}

/// The performative that takes up all of `bytes`.
fn performative(bytes: &[u8]) -> Result<Performative, DecodeError> {
    let mut body = Bytes::copy_from_slice(bytes);
    let performative = Performative::decode(&mut body)?;
    assert!(body.is_empty(), "{} bytes were left", body.len());
    Ok(performative)
}
