//! Flow: the state of a session's windows, and with a handle that of a link's credit. [AMQP 2.7.4]

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::value::Map;

/// [AMQP 2.7.4]
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's")]
pub struct Flow {
    pub next_incoming_id: Option<u32>,
    pub incoming_window: u32,
    pub next_outgoing_id: u32,
    pub outgoing_window: u32,
    pub handle: Option<u32>,
    pub delivery_count: Option<u32>,
    pub link_credit: Option<u32>,
    pub available: Option<u32>,
    pub drain: bool,
    pub echo: bool,
    pub properties: Option<Map>,
}

impl Flow {
    #[inline]
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::open(cursor, "flow", 11)?;
        let next_incoming_id = fields.uint("next-incoming-id")?;
        let incoming_window = mandatory(fields.uint("incoming-window")?, "incoming-window")?;
        let next_outgoing_id = mandatory(fields.uint("next-outgoing-id")?, "next-outgoing-id")?;
        let outgoing_window = mandatory(fields.uint("outgoing-window")?, "outgoing-window")?;
        let handle = fields.uint("handle")?;
        let delivery_count = fields.uint("delivery-count")?;
        let link_credit = fields.uint("link-credit")?;
        let available = fields.uint("available")?;
        let drain = fields.boolean("drain")?.unwrap_or(false);
        let echo = fields.boolean("echo")?.unwrap_or(false);
        let properties = fields.map("properties")?;
        fields.finish()?;
        Ok(Self {
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            outgoing_window,
            handle,
            delivery_count,
            link_credit,
            available,
            drain,
            echo,
            properties,
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::FLOW, 11);
        encode::option(out, self.next_incoming_id, encode::uint);
        encode::uint(out, self.incoming_window);
        encode::uint(out, self.next_outgoing_id);
        encode::uint(out, self.outgoing_window);
        encode::option(out, self.handle, encode::uint);
        encode::option(out, self.delivery_count, encode::uint);
        encode::option(out, self.link_credit, encode::uint);
        encode::option(out, self.available, encode::uint);
        encode::boolean(out, self.drain);
        encode::boolean(out, self.echo);
        encode::option(out, self.properties.as_deref(), encode::map);
        encode::list_finish(out, start);
    }
}
