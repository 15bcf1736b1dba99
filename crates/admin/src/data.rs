//! The data plane over REST: messages sent, received and settled by requests. (docs/spec/admin.md#11)
//!
//! A [`Call`] is what a request asks for. What is sent becomes encoded AMQP messages, so that it is
//! checked, stored and delivered as anything else that is sent; what is received is shown as headers
//! and a body. Whoever drives this looks at rights, asks the broker and waits.

mod batch;
mod broker_properties;
mod call;
mod errors;
mod new_message;
mod property;
mod received_message;

use broker::Wall;
use bytes::Bytes;
use http::{HeaderMap, Request, header};

use crate::error::Error;

pub use call::{Action, Call};
pub use errors::{dead_letter_only, evicted, gone, invalid, lock, request, send, too_large};
pub use received_message::{Lock, received};

/// The content type of a batch.
const BATCH: &str = "application/vnd.microsoft.servicebus.json";

/// The encoded messages of a request that sends.
///
/// # Errors
/// When the request can not be understood.
pub fn messages(request: &Request<Bytes>, now: Wall) -> Result<Vec<Bytes>, Error> {
    if is_batch(request.headers()) {
        return batch::read(request.body(), |message| message.encode(now));
    }
    let message = new_message::NewMessage::of(request)?;
    Ok(vec![message.encode(now)?])
}

fn is_batch(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(BATCH)
}
