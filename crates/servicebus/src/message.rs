//! Messages: reads them as they come from a client, and encodes them for one.
//!
//! Nothing here knows a connection: bytes and broker messages go in, broker messages and bytes come
//! out. HTTP reads and shows messages by the same functions.

pub(crate) mod delivery;
pub(crate) mod incoming;
pub(crate) mod message_list;
