//! Decoder: takes the payload of a client's frames out of the input. [RFC 6455 5]
//!
//! It works in place and keeps only an unfinished header and an unfinished control frame, so a
//! connection costs some hundred bytes whatever frame sizes its peer announces. After a close
//! frame or a protocol violation it takes nothing more.

use std::io::Cursor;

use bytes::BytesMut;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

/// The longest header of a frame.
const MAX_HEADER: usize = 14;
/// The longest payload of a control frame. [RFC 6455 5.5]
const MAX_CONTROL: u64 = 125;

/// How a peer breaks the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Violation {
    #[error("the header of a frame is not valid")]
    Header,
    #[error("a frame has reserved bits, and no extension was agreed on")]
    ReservedBits,
    #[error("a frame of the client is not masked")]
    Unmasked,
    #[error("a text message was received, but AMQP requires binary messages")]
    Text,
    #[error("a frame is out of order, or of an unknown kind")]
    Order,
    #[error("a control frame is fragmented or has more than {MAX_CONTROL} bytes")]
    Control,
    #[error("a close frame ends within its code")]
    Close,
    #[error("a frame of {size} bytes is above the maximum of {limit}")]
    Size { size: u64, limit: u64 },
}

impl Violation {
    /// The code of the close frame that answers it. [RFC 6455 7.4.1]
    pub fn code(self) -> CloseCode {
        match self {
            Self::Text => CloseCode::Unsupported,
            Self::Size { .. } => CloseCode::Size,
            _ => CloseCode::Protocol,
        }
    }
}

/// What a frame's payload is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FrameKind {
    Data,
    Ping,
    Pong,
    Close,
}

/// A frame whose payload is not all there yet.
#[derive(Debug)]
struct Frame {
    kind: FrameKind,
    is_final: bool,
    remaining: u64,
    mask: [u8; 4],
}

/// The state between two reads.
#[derive(Debug)]
pub struct Decoder {
    max_frame_size: u64,
    /// The beginning of a header.
    header: Vec<u8>,
    frame: Option<Frame>,
    /// The beginning of a control frame's payload.
    control: Vec<u8>,
    /// The last data frame was not the last one of its message.
    is_within_message: bool,
    pong: Option<Vec<u8>>,
    /// The peer has closed (`Ok`), or has broken the protocol.
    over: Option<Result<(), Violation>>,
}

impl Decoder {
    /// A decoder that refuses frames of more than `max_frame_size` bytes.
    pub fn new(max_frame_size: u64) -> Self {
        Self {
            max_frame_size,
            header: Vec::new(),
            frame: None,
            control: Vec::new(),
            is_within_message: false,
            pong: None,
            over: None,
        }
    }

    /// Whether the peer has closed, or has broken the rules.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// How the peer has broken the protocol, if it has.
    pub fn violation(&self) -> Option<Violation> {
        self.over?.err()
    }

    /// The code of our own close frame.
    pub fn close_code(&self) -> CloseCode {
        self.violation().map_or(CloseCode::Normal, Violation::code)
    }

    /// What the latest ping wants to have back; earlier ones need no answer. [RFC 6455 5.5.3]
    pub fn take_pong(&mut self) -> Option<Vec<u8>> {
        self.pong.take()
    }

    /// Replaces the frames in `buffer` behind the first `start` bytes by the payload of data
    /// frames.
    pub fn decode(&mut self, buffer: &mut BytesMut, start: usize) {
        let (mut from, mut to) = (start, start);
        while self.over.is_none() {
            let Some(mut frame) = self.frame.take() else {
                match self.take_header(&buffer[from..]) {
                    Some(count) => from += count,
                    None => break,
                }
                continue;
            };
            let available = buffer.len() - from;
            let count =
                usize::try_from(frame.remaining).map_or(available, |left| left.min(available));
            unmask(&mut buffer[from..from + count], &mut frame.mask);
            frame.remaining -= count as u64;
            if frame.kind == FrameKind::Data {
                buffer.copy_within(from..from + count, to);
                to += count;
            } else {
                self.control.extend_from_slice(&buffer[from..from + count]);
            }
            from += count;
            if frame.remaining > 0 {
                self.frame = Some(frame);
                break;
            }
            self.finish(&frame);
        }
        buffer.truncate(to);
    }

    /// Takes a header off the front of `bytes` and says how many bytes of it were there. `None`
    /// when it is not whole, or not allowed.
    fn take_header(&mut self, bytes: &[u8]) -> Option<usize> {
        let kept = self.header.len();
        let taken = bytes.len().min(MAX_HEADER - kept);
        self.header.extend_from_slice(&bytes[..taken]);
        let mut cursor = Cursor::new(&self.header);
        let parsed = FrameHeader::parse(&mut cursor);
        let length = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        let started = match parsed {
            Ok(None) => return None,
            Ok(Some((header, size))) => self.start(&header, size),
            Err(_) => Err(Violation::Header),
        };
        match started {
            Ok(frame) => {
                self.header.clear();
                self.frame = Some(frame);
                Some(length - kept)
            }
            Err(violation) => {
                self.over = Some(Err(violation));
                None
            }
        }
    }

    /// Checks a header against what came before it.
    fn start(&self, header: &FrameHeader, size: u64) -> Result<Frame, Violation> {
        // No extension was agreed on, and a client masks. [RFC 6455 5.1, 5.2]
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(Violation::ReservedBits);
        }
        let mask = header.mask.ok_or(Violation::Unmasked)?;
        let kind = match header.opcode {
            OpCode::Data(Data::Binary) if !self.is_within_message => FrameKind::Data,
            OpCode::Data(Data::Continue) if self.is_within_message => FrameKind::Data,
            OpCode::Data(Data::Text) if !self.is_within_message => return Err(Violation::Text),
            OpCode::Control(Control::Ping) => FrameKind::Ping,
            OpCode::Control(Control::Pong) => FrameKind::Pong,
            OpCode::Control(Control::Close) => FrameKind::Close,
            _ => return Err(Violation::Order),
        };
        if kind != FrameKind::Data && (size > MAX_CONTROL || !header.is_final) {
            return Err(Violation::Control);
        }
        let limit = self.max_frame_size;
        if size > limit {
            return Err(Violation::Size { size, limit });
        }
        Ok(Frame {
            kind,
            is_final: header.is_final,
            remaining: size,
            mask,
        })
    }

    fn finish(&mut self, frame: &Frame) {
        match frame.kind {
            FrameKind::Data => self.is_within_message = !frame.is_final,
            FrameKind::Ping => self.pong = Some(std::mem::take(&mut self.control)),
            FrameKind::Pong => self.control.clear(),
            FrameKind::Close => {
                // One byte cannot be a code. [RFC 6455 5.5.1]
                let is_cut = self.control.len() == 1;
                self.over = Some(if is_cut {
                    Err(Violation::Close)
                } else {
                    Ok(())
                });
            }
        }
    }
}

/// Unmasks `bytes` and turns `mask` to what goes on behind them.
fn unmask(bytes: &mut [u8], mask: &mut [u8; 4]) {
    let key = *mask;
    let mut chunks = bytes.chunks_exact_mut(4);
    for chunk in &mut chunks {
        for (byte, key) in chunk.iter_mut().zip(key) {
            *byte ^= key;
        }
    }
    let rest = chunks.into_remainder();
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
    mask.rotate_left(rest.len());
}

#[cfg(test)]
#[path = "decoder/tests.rs"]
mod tests;
