//! SASL: the five frame bodies before a connection opens. [AMQP 5.3.3]
//!
//! A frame body is one of them and nothing else; the data of the mechanisms inside is opaque here.

#![allow(missing_docs, reason = "the variants and fields are the standard's")]

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::symbol::Symbol;

/// How a SASL exchange ended. [AMQP 5.3.3.6]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    Ok,
    Auth,
    Sys,
    SysPerm,
    SysTemp,
}

/// Any SASL frame body. `Debug` shows what it is, not what a mechanism says: that may be a
/// password.
#[derive(Clone, PartialEq)]
pub enum SaslFrame {
    /// Always encoded as an array, also for one (docs/spec/amqp.md#1.3).
    Mechanisms(Vec<Symbol>),
    Init {
        mechanism: Symbol,
        initial_response: Option<Bytes>,
        hostname: Option<String>,
    },
    Challenge(Bytes),
    Response(Bytes),
    Outcome {
        code: Code,
        additional_data: Option<Bytes>,
    },
}

impl fmt::Debug for SaslFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mechanisms(mechanisms) => f.debug_tuple("Mechanisms").field(mechanisms).finish(),
            Self::Init {
                mechanism,
                hostname,
                ..
            } => f
                .debug_struct("Init")
                .field("mechanism", mechanism)
                .field("hostname", hostname)
                .finish_non_exhaustive(),
            Self::Challenge(octets) => write!(f, "Challenge({} bytes)", octets.len()),
            Self::Response(octets) => write!(f, "Response({} bytes)", octets.len()),
            Self::Outcome { code, .. } => f.debug_tuple("Outcome").field(code).finish(),
        }
    }
}

impl SaslFrame {
    /// Reads a SASL frame's body, all of it.
    ///
    /// # Errors
    /// When the bytes are no SASL frame body, or something follows it.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::sharing(body, "frame");
        let frame = Self::read(&mut cursor)?;
        cursor.finish()?;
        Ok(frame)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.descriptor()? {
            descriptor::SASL_MECHANISMS => mechanisms(cursor),
            descriptor::SASL_INIT => init(cursor),
            descriptor::SASL_CHALLENGE => octets(cursor, "challenge").map(Self::Challenge),
            descriptor::SASL_RESPONSE => octets(cursor, "response").map(Self::Response),
            descriptor::SASL_OUTCOME => outcome(cursor),
            other => Err(DecodeError::UnexpectedDescriptor(other)),
        }
    }

    /// Appends the body, without a frame header.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Mechanisms(mechanisms) => encode_mechanisms(out, mechanisms),
            Self::Init {
                mechanism,
                initial_response,
                hostname,
            } => {
                let response = initial_response.as_deref();
                encode_init(out, mechanism, response, hostname.as_deref());
            }
            Self::Challenge(octets) => encode_octets(out, descriptor::SASL_CHALLENGE, octets),
            Self::Response(octets) => encode_octets(out, descriptor::SASL_RESPONSE, octets),
            Self::Outcome {
                code,
                additional_data,
            } => {
                encode_outcome(out, *code, additional_data.as_deref());
            }
        }
    }
}

fn mechanisms(cursor: &mut Cursor<'_>) -> Result<SaslFrame, DecodeError> {
    let mut fields = Fields::open(cursor, "sasl-mechanisms", 1)?;
    let mechanisms = fields.symbols("sasl-server-mechanisms")?;
    fields.finish()?;
    if mechanisms.is_empty() {
        return Err(DecodeError::Missing("sasl-server-mechanisms"));
    }
    Ok(SaslFrame::Mechanisms(mechanisms))
}

fn init(cursor: &mut Cursor<'_>) -> Result<SaslFrame, DecodeError> {
    let mut fields = Fields::open(cursor, "sasl-init", 3)?;
    let init = SaslFrame::Init {
        mechanism: mandatory(fields.symbol("mechanism")?, "mechanism")?,
        initial_response: fields.binary("initial-response")?,
        hostname: fields.text("hostname")?,
    };
    fields.finish()?;
    Ok(init)
}

/// A challenge or a response: one binary each.
fn octets(cursor: &mut Cursor<'_>, name: &'static str) -> Result<Bytes, DecodeError> {
    let mut fields = Fields::open(cursor, name, 1)?;
    let octets = mandatory(fields.binary(name)?, name)?;
    fields.finish()?;
    Ok(octets)
}

fn outcome(cursor: &mut Cursor<'_>) -> Result<SaslFrame, DecodeError> {
    let mut fields = Fields::open(cursor, "sasl-outcome", 2)?;
    let outcome = SaslFrame::Outcome {
        code: code(mandatory(fields.ubyte("code")?, "code")?)?,
        additional_data: fields.binary("additional-data")?,
    };
    fields.finish()?;
    Ok(outcome)
}

fn code(code: u8) -> Result<Code, DecodeError> {
    match code {
        0 => Ok(Code::Ok),
        1 => Ok(Code::Auth),
        2 => Ok(Code::Sys),
        3 => Ok(Code::SysPerm),
        4 => Ok(Code::SysTemp),
        _ => Err(DecodeError::OutOfRange("code")),
    }
}

/// Not even without any mechanism is this null, so that clients may index into it.
fn encode_mechanisms(out: &mut BytesMut, mechanisms: &[Symbol]) {
    let start = encode::described_list(out, descriptor::SASL_MECHANISMS, 1);
    encode::symbol_array(out, mechanisms);
    encode::list_finish(out, start);
}

fn encode_init(
    out: &mut BytesMut,
    mechanism: &Symbol,
    initial_response: Option<&[u8]>,
    hostname: Option<&str>,
) {
    let start = encode::described_list(out, descriptor::SASL_INIT, 3);
    encode::symbol(out, mechanism.as_str());
    encode::option(out, initial_response, encode::binary);
    encode::option(out, hostname, encode::string);
    encode::list_finish(out, start);
}

fn encode_octets(out: &mut BytesMut, descriptor: u64, octets: &[u8]) {
    let start = encode::described_list(out, descriptor, 1);
    encode::binary(out, octets);
    encode::list_finish(out, start);
}

fn encode_outcome(out: &mut BytesMut, code: Code, additional_data: Option<&[u8]>) {
    let start = encode::described_list(out, descriptor::SASL_OUTCOME, 2);
    encode::ubyte(
        out,
        match code {
            Code::Ok => 0,
            Code::Auth => 1,
            Code::Sys => 2,
            Code::SysPerm => 3,
            Code::SysTemp => 4,
        },
    );
    encode::option(out, additional_data, encode::binary);
    encode::list_finish(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_what_a_mechanism_says() {
        let frames = [
            SaslFrame::Init {
                mechanism: Symbol::new("PLAIN"),
                initial_response: Some(Bytes::from_static(b"\0user\0secret")),
                hostname: None,
            },
            SaslFrame::Response(Bytes::from_static(b"secret")),
            SaslFrame::Challenge(Bytes::from_static(b"secret")),
        ];
        for frame in frames {
            let bytes = format!("{:?}", Bytes::from_static(b"secret"));
            let shown = format!("{frame:?}");
            assert!(!shown.contains(bytes.trim_matches(['b', '"'])), "{shown}");
        }
    }
}
