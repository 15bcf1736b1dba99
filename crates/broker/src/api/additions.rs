//! Additions: what has become of a message since it was received, beside the message itself.

use bytes::Bytes;

use crate::api::death::Deaths;

/// What has become of a message since it was received.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Additions {
    /// Application properties to add or overwrite: key and encoded AMQP value.
    pub changes: Vec<(String, Bytes)>,
    /// Message annotations to add or overwrite; a null hides one.
    pub annotations: Vec<(String, Bytes)>,
    /// What it has died of before it came here.
    pub deaths: Option<Deaths>,
    /// The entity out of whose dead-letter queue it was forwarded.
    pub dead_letter_source: Option<String>,
}
