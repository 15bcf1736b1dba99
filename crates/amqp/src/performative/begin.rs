//! Begin: starts a session, in either direction. [AMQP 2.7.2]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::symbol::Symbol;
use crate::value::Map;

/// [AMQP 2.7.2]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Begin {
    pub remote_channel: Option<u16>,
    pub next_outgoing_id: u32,
    pub incoming_window: u32,
    pub outgoing_window: u32,
    pub handle_max: u32,
    pub offered_capabilities: Vec<Symbol>,
    pub desired_capabilities: Vec<Symbol>,
    pub properties: Option<Map>,
}

impl Begin {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "begin", 8)?;
        let begin = Self {
            remote_channel: fields.ushort("remote-channel")?,
            next_outgoing_id: mandatory(fields.uint("next-outgoing-id")?, "next-outgoing-id")?,
            incoming_window: mandatory(fields.uint("incoming-window")?, "incoming-window")?,
            outgoing_window: mandatory(fields.uint("outgoing-window")?, "outgoing-window")?,
            handle_max: fields.uint("handle-max")?.unwrap_or(u32::MAX),
            offered_capabilities: fields.symbols("offered-capabilities")?,
            desired_capabilities: fields.symbols("desired-capabilities")?,
            properties: fields.map("properties")?,
        };
        fields.finish()?;
        Ok(begin)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::BEGIN, 8);
        encode::option(out, self.remote_channel, encode::ushort);
        encode::uint(out, self.next_outgoing_id);
        encode::uint(out, self.incoming_window);
        encode::uint(out, self.outgoing_window);
        encode::uint(out, self.handle_max);
        encode::symbols(out, &self.offered_capabilities);
        encode::symbols(out, &self.desired_capabilities);
        encode::option(out, self.properties.as_deref(), encode::map);
        encode::list_finish(out, start);
    }
}
