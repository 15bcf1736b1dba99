//! Open: the parameters of a connection. [AMQP 2.7.1]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::symbol::Symbol;
use crate::value::Map;

/// [AMQP 2.7.1]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Open {
    pub container_id: String,
    pub hostname: Option<String>,
    pub max_frame_size: u32,
    pub channel_max: u16,
    /// Milliseconds.
    pub idle_time_out: Option<u32>,
    pub outgoing_locales: Vec<Symbol>,
    pub incoming_locales: Vec<Symbol>,
    pub offered_capabilities: Vec<Symbol>,
    pub desired_capabilities: Vec<Symbol>,
    pub properties: Option<Map>,
}

impl Open {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "open", 10)?;
        let open = Self {
            container_id: mandatory(fields.text("container-id")?, "container-id")?,
            hostname: fields.text("hostname")?,
            max_frame_size: fields.uint("max-frame-size")?.unwrap_or(u32::MAX),
            channel_max: fields.ushort("channel-max")?.unwrap_or(u16::MAX),
            idle_time_out: fields.uint("idle-time-out")?,
            outgoing_locales: fields.symbols("outgoing-locales")?,
            incoming_locales: fields.symbols("incoming-locales")?,
            offered_capabilities: fields.symbols("offered-capabilities")?,
            desired_capabilities: fields.symbols("desired-capabilities")?,
            properties: fields.map("properties")?,
        };
        fields.finish()?;
        Ok(open)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::OPEN, 10);
        encode::string(out, &self.container_id);
        encode::option(out, self.hostname.as_deref(), encode::string);
        encode::uint(out, self.max_frame_size);
        encode::ushort(out, self.channel_max);
        encode::option(out, self.idle_time_out, encode::uint);
        encode::symbols(out, &self.outgoing_locales);
        encode::symbols(out, &self.incoming_locales);
        encode::symbols(out, &self.offered_capabilities);
        encode::symbols(out, &self.desired_capabilities);
        encode::option(out, self.properties.as_deref(), encode::map);
        encode::list_finish(out, start);
    }
}
