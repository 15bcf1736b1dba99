//! The data plane over REST: requests that send, receive and settle messages.
//! (docs/spec/admin.md#11)
//!
//! A [`Call`] is a parsed request. Sent messages become encoded AMQP messages, so they are checked,
//! stored and delivered like any other; a received message becomes headers and a body. The caller
//! checks rights, asks the broker and waits.

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
pub use errors::{
    dead_letter_only, evicted, gone, injected, invalid, lock, no_lock, request, send, too_large,
};
pub use received_message::{Lock, received};

/// The content type of a batch.
const BATCH: &str = "application/vnd.microsoft.servicebus.json";

/// The encoded messages of a request that sends.
///
/// # Errors
/// When the request cannot be parsed.
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
