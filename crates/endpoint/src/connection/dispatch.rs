//! Dispatch: passes each frame to the part that handles it, and each fault to the part that it
//! ends.

use amqp::error::condition;
use amqp::{Error, Performative};
use bytes::Bytes;

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::phase::Phase;
use crate::connection::waiting_frame::Effect;
use crate::link::DetachReason;

/// The largest frame body that is decoded, payloads of transfers not counted.
const MAX_COLD_BODY: usize = 65_536;
/// How a transfer starts: its descriptor as smallulong.
const TRANSFER: [u8; 3] = [0x00, 0x53, 0x14];

impl Connection {
    /// Takes one AMQP frame; an empty one is a sign of life only. [AMQP 2.4.5]
    pub(crate) fn handle_frame(&mut self, channel: u16, mut body: Bytes) {
        if body.is_empty() {
            return;
        }
        let taken = match decode(&mut body) {
            Ok(performative) => self.handle_performative(channel, performative, body),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = taken {
            self.handle_fault(channel, fault);
        }
    }

    fn handle_performative(
        &mut self,
        channel: u16,
        performative: Performative,
        payload: Bytes,
    ) -> Result<(), Fault> {
        match (self.phase, performative) {
            (Phase::Opened, Performative::Transfer(transfer)) => {
                match self.holding_link(channel, transfer.handle) {
                    Some(link) => self.hold_transfer(channel, transfer, payload, link),
                    None => return self.handle_transfer(channel, transfer, payload),
                }
                Ok(())
            }
            (Phase::Closing, Performative::Close(close)) => {
                self.handle_close(close);
                Ok(())
            }
            (Phase::Closing | Phase::Finished, _) => Ok(()),
            (_, _) if !payload.is_empty() => Err(Fault::connection(
                condition::DECODE_ERROR,
                format!("{} bytes follow the performative", payload.len()),
            )),
            (Phase::Open, Performative::Open(open)) => self.handle_open(channel, open),
            (Phase::Opened, performative) => match self.hold_ending(channel, performative) {
                Some(performative) => self.handle_when_opened(channel, performative),
                None => Ok(()),
            },
            (_, _) => Err(Fault::connection(
                condition::ILLEGAL_STATE,
                "the connection is not open",
            )),
        }
    }

    /// Takes a frame that has waited behind what came before it.
    pub(crate) fn handle_waiting(&mut self, channel: u16, effect: Effect) {
        let taken = match (self.phase, effect) {
            (Phase::Opened, Effect::Fault(fault)) => return self.end_by_fault(channel, fault),
            (Phase::Opened, Effect::Frame(Performative::Transfer(transfer), payload)) => {
                self.handle_transfer(channel, transfer, payload)
            }
            (Phase::Opened, Effect::Frame(performative, _)) => {
                self.handle_when_opened(channel, performative)
            }
            (Phase::Closing, Effect::Frame(Performative::Close(close), _)) => {
                self.handle_close(close);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(fault) = taken {
            self.handle_fault(channel, fault);
        }
    }

    fn handle_when_opened(
        &mut self,
        channel: u16,
        performative: Performative,
    ) -> Result<(), Fault> {
        match performative {
            Performative::Begin(begin) => self.handle_begin(channel, &begin),
            Performative::Attach(attach) => self.handle_attach(channel, attach),
            Performative::Flow(flow) => self.handle_flow(channel, flow),
            Performative::Disposition(disposition) => {
                self.handle_disposition(channel, &disposition)
            }
            Performative::Detach(detach) => self.handle_detach(channel, detach),
            Performative::End(end) => self.handle_end(channel, end),
            Performative::Close(close) => {
                self.handle_close(close);
                Ok(())
            }
            Performative::Open(_) | Performative::Transfer(_) => Err(Fault::connection(
                condition::ILLEGAL_STATE,
                "the connection is already open",
            )),
        }
    }

    /// Ends what a wrong frame ends, behind all that came before it.
    pub(crate) fn handle_fault(&mut self, channel: u16, fault: Fault) {
        if let Some(fault) = self.hold_fault(channel, fault) {
            self.end_by_fault(channel, fault);
        }
    }

    fn end_by_fault(&mut self, channel: u16, fault: Fault) {
        match fault {
            Fault::Connection(error) => self.fail(error),
            Fault::Session(error) => self.break_session(channel, error),
            Fault::Link(link, error) => self.break_link(link, DetachReason::with(error)),
        }
    }

    fn break_session(&mut self, channel: u16, error: Error) {
        match self.remote_channels.get(channel.into()) {
            Some(session) => self.fail_session(session, error),
            None => self.fail(error),
        }
    }
}

fn decode(body: &mut Bytes) -> Result<Performative, Fault> {
    if body.len() > MAX_COLD_BODY && !body.starts_with(&TRANSFER) {
        let size = body.len();
        let text =
            format!("a performative of {size} bytes is above the maximum of {MAX_COLD_BODY}");
        return Err(Fault::connection(condition::RESOURCE_LIMIT_EXCEEDED, text));
    }
    Performative::decode(body)
        .map_err(|error| Fault::connection(condition::DECODE_ERROR, error.to_string()))
}
