//! Encoder: puts output into binary frames, and control frames between them.
//!
//! A payload is never copied: its header goes out in front of it in one write. Control frames wait
//! for the end of the frame under way; there are two of them at most, a pong and a close.

use std::io::{self, IoSlice};

use bytes::{Buf, BytesMut};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use crate::transport::stream::Stream;

/// The longest frame: what the most cautious clients take as one message.
const MAX_FRAME: usize = 32 * 1024;

/// The state between two writes.
#[derive(Debug, Default)]
pub struct Encoder {
    /// What is left of the header of the frame under way.
    header: BytesMut,
    /// What is left of its payload.
    remaining: usize,
    /// Control frames, the first of which may be sent in part.
    control: BytesMut,
    pong: Option<Vec<u8>>,
    is_closed: bool,
}

impl Encoder {
    /// Answers a ping, instead of one that waits for its answer.
    pub fn pong(&mut self, payload: &[u8]) {
        self.pong = Some(payload.to_vec());
    }

    /// Says that nothing more will be sent. Only the first time counts.
    pub fn close(&mut self, code: CloseCode) {
        if !self.is_closed {
            self.is_closed = true;
            self.add_pong();
            let code = u16::from(code).to_be_bytes();
            add_control(&mut self.control, Control::Close, &code);
        }
    }

    /// Whether control frames wait that could be sent now.
    pub fn has_unsent(&self) -> bool {
        !self.is_within_frame() && (!self.control.is_empty() || self.pong.is_some())
    }

    /// Sends control frames, unless a frame is under way.
    pub fn flush(&mut self, stream: &mut impl Stream) -> io::Result<()> {
        if self.is_within_frame() {
            return Ok(());
        }
        loop {
            if self.control.is_empty() {
                self.add_pong();
            }
            if self.control.is_empty() {
                return Ok(());
            }
            let count = stream.try_write(&[IoSlice::new(&self.control)])?;
            self.control.advance(count);
        }
    }

    /// Writes from the front of a payload that is in `parts`, and says how much was taken.
    pub fn write(&mut self, stream: &mut impl Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            if !self.is_within_frame() {
                self.flush(stream)?;
                let length = parts.iter().map(|part| part.len()).sum::<usize>();
                self.begin(length.min(MAX_FRAME));
            }
            let sent = self.write_frame(stream, parts)?;
            let of_header = sent.min(self.header.len());
            self.header.advance(of_header);
            let count = sent - of_header;
            self.remaining -= count;
            if count > 0 || sent == 0 {
                return Ok(count);
            }
        }
    }

    /// Writes what is left of the frame under way, whose payload begins with `parts`.
    fn write_frame(&self, stream: &mut impl Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut frame = Vec::with_capacity(1 + parts.len());
        if !self.header.is_empty() {
            frame.push(IoSlice::new(&self.header));
        }
        let mut remaining = self.remaining;
        for part in parts {
            let part = &part[..part.len().min(remaining)];
            if part.is_empty() {
                break;
            }
            remaining -= part.len();
            frame.push(IoSlice::new(part));
        }
        stream.try_write(&frame)
    }

    fn is_within_frame(&self) -> bool {
        self.remaining > 0
    }

    fn begin(&mut self, length: usize) {
        self.remaining = length;
        self.header.clear();
        let opcode = OpCode::Data(Data::Binary);
        add_header(&mut self.header, opcode, length);
    }

    fn add_pong(&mut self) {
        if let Some(payload) = self.pong.take() {
            add_control(&mut self.control, Control::Pong, &payload);
        }
    }
}

fn add_control(output: &mut BytesMut, control: Control, payload: &[u8]) {
    add_header(output, OpCode::Control(control), payload.len());
    output.extend_from_slice(payload);
}

fn add_header(output: &mut BytesMut, opcode: OpCode, length: usize) {
    let header = FrameHeader {
        opcode,
        ..FrameHeader::default()
    };
    let mut bytes = Vec::with_capacity(10);
    header
        .format(length as u64, &mut bytes)
        .expect("a vector takes all that is written to it");
    output.extend_from_slice(&bytes);
}

#[cfg(test)]
mod tests;
