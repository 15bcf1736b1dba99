//! Performative: the nine frame bodies of the transport. [AMQP 2.7]
//!
//! Each is read field by field straight from the bytes, and written with every field
//! (docs/spec/amqp.md#rule-3). Transfer, disposition and flow allocate only for rare states; maps,
//! addresses and filters go through [`decode`](crate::decode) after the validator.

use bytes::{Buf, Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;

mod attach;
mod begin;
mod close;
mod detach;
mod disposition;
mod end;
mod flow;
mod mode;
mod open;
mod transfer;

pub use attach::Attach;
pub use begin::Begin;
pub use close::Close;
pub use detach::Detach;
pub use disposition::Disposition;
pub use end::End;
pub use flow::Flow;
pub use mode::{ReceiverSettleMode, Role, SenderSettleMode};
pub use open::Open;
pub use transfer::{MAX_DELIVERY_TAG, Transfer};

/// Any frame body.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "each variant is documented by the type it holds"
)]
pub enum Performative {
    Open(Box<Open>),
    Begin(Box<Begin>),
    Attach(Box<Attach>),
    Flow(Flow),
    Transfer(Transfer),
    Disposition(Disposition),
    Detach(Detach),
    End(End),
    Close(Close),
}

impl Performative {
    /// Reads the performative at the start of `body` (a frame's body) and leaves the payload in it.
    ///
    /// # Errors
    /// When the bytes are no AMQP value or performative, or break a bound. `body` is untouched
    /// then.
    pub fn decode(body: &mut Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::sharing(body, "frame");
        // The result is passed on unopened, because moving it would cost more than reading it.
        let performative = Self::read(&mut cursor);
        if performative.is_ok() {
            let taken = body.len() - cursor.remaining();
            body.advance(taken);
        }
        performative
    }

    #[inline]
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.descriptor()? {
            descriptor::OPEN => Ok(Self::Open(Box::new(Open::decode(cursor)?))),
            descriptor::BEGIN => Ok(Self::Begin(Box::new(Begin::decode(cursor)?))),
            descriptor::ATTACH => Ok(Self::Attach(Box::new(Attach::decode(cursor)?))),
            descriptor::FLOW => Ok(Self::Flow(Flow::decode(cursor)?)),
            descriptor::TRANSFER => Ok(Self::Transfer(Transfer::decode(cursor)?)),
            descriptor::DISPOSITION => Ok(Self::Disposition(Disposition::decode(cursor)?)),
            descriptor::DETACH => Ok(Self::Detach(Detach::decode(cursor)?)),
            descriptor::END => Ok(Self::End(End::decode(cursor)?)),
            descriptor::CLOSE => Ok(Self::Close(Close::decode(cursor)?)),
            other => Err(DecodeError::UnexpectedDescriptor(other)),
        }
    }

    /// Appends the performative in full length, without a frame header.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Open(open) => open.encode(out),
            Self::Begin(begin) => begin.encode(out),
            Self::Attach(attach) => attach.encode(out),
            Self::Flow(flow) => flow.encode(out),
            Self::Transfer(transfer) => transfer.encode(out),
            Self::Disposition(disposition) => disposition.encode(out),
            Self::Detach(detach) => detach.encode(out),
            Self::End(end) => end.encode(out),
            Self::Close(close) => close.encode(out),
        }
    }
}
