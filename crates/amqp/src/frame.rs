//! Frame: the units of the transport's byte stream, and the protocol header before all frames.
//! [AMQP 2.2, 2.3]
//!
//! An invalid frame is refused by its first eight bytes, before the rest of it arrives.

#![allow(missing_docs, reason = "the variants and fields are the standard's")]

use bytes::{Buf, Bytes, BytesMut};

/// Bytes before a frame's body: size, data offset, type and channel.
pub const HEADER_SIZE: usize = 8;
/// The smallest largest frame a peer may agree to. [AMQP 2.3.1]
pub const MIN_MAX_FRAME_SIZE: u32 = 512;

/// The 8 bytes each layer starts with. [AMQP 2.2]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProtocolHeader {
    /// `AMQP 0 1 0 0`
    Amqp,
    /// `AMQP 3 1 0 0`
    Sasl,
}

impl ProtocolHeader {
    /// The header as it stands on the wire.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        match self {
            Self::Amqp => *b"AMQP\x00\x01\x00\x00",
            Self::Sasl => *b"AMQP\x03\x01\x00\x00",
        }
    }
}

/// The type of a frame. [AMQP 2.3.1]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameType {
    Amqp,
    Sasl,
}

/// One frame: `body` is empty for a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub frame_type: FrameType,
    pub channel: u16,
    pub body: Bytes,
}

/// Why the byte stream cannot be split into frames; always ends the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FramingError {
    #[error("frame of {size} bytes is larger than the {limit} agreed")]
    TooLarge { size: u32, limit: u32 },
    #[error("frame of {size} bytes is smaller than its header")]
    TooSmall { size: u32 },
    #[error("data offset {doff} does not fit a frame of {size} bytes")]
    DataOffset { doff: u8, size: u32 },
    #[error("frame type {0} is unknown")]
    UnknownType(u8),
}

/// The first eight bytes of a frame.
struct Header {
    size: u32,
    doff: u8,
    frame_type: u8,
    channel: u16,
}

/// Splits the next whole frame off `input`, without copying; `None` when more bytes are needed.
///
/// # Errors
/// As soon as the 8 header bytes are there and wrong, however many bytes are still to come.
pub fn split(input: &mut BytesMut, max_frame_size: u32) -> Result<Option<Frame>, FramingError> {
    let Some(header) = Header::read(input) else {
        return Ok(None);
    };
    let frame_type = header.check(max_frame_size)?;
    let size = header.size as usize;
    if input.len() < size {
        return Ok(None);
    }
    let mut body = input.split_to(size).freeze();
    // An extended header, which no layer defines, is skipped with the header. [AMQP 2.3.1]
    body.advance(header.data_offset());
    Ok(Some(Frame {
        frame_type,
        channel: header.channel,
        body,
    }))
}

impl Header {
    fn read(input: &[u8]) -> Option<Self> {
        let &[s0, s1, s2, s3, doff, frame_type, c0, c1] = input.first_chunk::<HEADER_SIZE>()?;
        Some(Self {
            size: u32::from_be_bytes([s0, s1, s2, s3]),
            doff,
            frame_type,
            channel: u16::from_be_bytes([c0, c1]),
        })
    }

    /// Where the body starts.
    fn data_offset(&self) -> usize {
        usize::from(self.doff) * 4
    }

    fn check(&self, limit: u32) -> Result<FrameType, FramingError> {
        let Self { size, doff, .. } = *self;
        if (size as usize) < HEADER_SIZE {
            return Err(FramingError::TooSmall { size });
        }
        if size > limit {
            return Err(FramingError::TooLarge { size, limit });
        }
        if self.data_offset() < HEADER_SIZE || self.data_offset() > size as usize {
            return Err(FramingError::DataOffset { doff, size });
        }
        match self.frame_type {
            0 => Ok(FrameType::Amqp),
            1 => Ok(FrameType::Sasl),
            other => Err(FramingError::UnknownType(other)),
        }
    }
}

/// Starts a frame in `out`; [`finish`] fills in its size. Returns where it starts.
pub fn begin(out: &mut BytesMut, frame_type: FrameType, channel: u16) -> usize {
    let start = out.len();
    let [c0, c1] = channel.to_be_bytes();
    let frame_type = match frame_type {
        FrameType::Amqp => 0,
        FrameType::Sasl => 1,
    };
    out.extend_from_slice(&[0, 0, 0, 0, 2, frame_type, c0, c1]);
    start
}

/// Ends the frame that [`begin`] started at `start`.
///
/// # Panics
/// When `start` is not what [`begin`] returned for `out`.
pub fn finish(out: &mut BytesMut, start: usize) {
    finish_longer(out, start, 0);
}

/// Ends a frame of which `elsewhere` more bytes are not in `out`, but go out with it.
///
/// # Panics
/// When `start` is not what [`begin`] returned for `out`.
pub fn finish_longer(out: &mut BytesMut, start: usize, elsewhere: usize) {
    let size = out.len() - start + elsewhere;
    let size = u32::try_from(size).expect("frames are limited far below 4 GiB");
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}
