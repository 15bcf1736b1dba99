//! Codec: writes as bytes of a record, one after the other, each with a tag first.
//!
//! A write contains only the length and the checksum of its body; the bodies of a record lie
//! behind all writes in the same order. For a body in a file of its own the write contains its
//! location. A decoded write has the location of its body in the place of the body, as the index
//! takes it.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(crate) use decode::{Decoded, RecordedBody, decode};
pub(crate) use encode::Encoder;

/// What a write is.
mod tag {
    pub const PUT_ENTITY: u8 = 1;
    pub const REMOVE_ENTITY: u8 = 2;
    pub const PUT_HEAD: u8 = 3;
    pub const PUT_MESSAGE: u8 = 4;
    pub const REMOVE_MESSAGE: u8 = 5;
    pub const PUT_BODY: u8 = 6;
    pub const REMOVE_BODY: u8 = 7;
    pub const SHARE_BODY: u8 = 8;
    pub const RELEASE_BODY: u8 = 9;
    pub const PUT_DELIVERY_COUNT: u8 = 10;
    pub const REMOVE_DELIVERY_COUNT: u8 = 11;
    pub const PUT_PATCH: u8 = 12;
    pub const REMOVE_PATCH: u8 = 13;
    pub const PUT_EXPIRY: u8 = 14;
    pub const REMOVE_EXPIRY: u8 = 15;
    pub const PUT_ENTRY: u8 = 16;
    pub const REMOVE_ENTRY: u8 = 17;
    pub const MOVE_BODY: u8 = 18;
    pub const PUT_STAGED_BODY: u8 = 19;
    pub const REMOVE_ENTRIES: u8 = 20;
    pub const COPY: u8 = 21;
}
