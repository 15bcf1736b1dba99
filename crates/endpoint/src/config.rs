//! Config: what an endpoint offers its peer, and the limits of what the peer can make it keep.

use amqp::{Attach, Map, Open, Symbol};

/// The side that opened the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Side {
    Client,
    Server,
}

/// An endpoint's settings; durations are milliseconds, sizes bytes.
// `Debug` is written by hand, in `shown`: it hides secrets.
#[derive(Clone)]
#[allow(missing_docs, reason = "most fields are those of open, by its names")]
pub struct Config {
    pub container_id: String,
    /// A client's `open.hostname`.
    pub hostname: Option<String>,
    /// Largest frame we accept once open; before that it is 64 KiB at most, and 512 is the floor.
    pub max_frame_size: u32,
    pub channel_max: u16,
    pub handle_max: u32,
    /// What we announce; silence for this long ends the connection.
    pub idle_time_out: Option<u32>,
    pub properties: Option<Map>,
    /// What is offered to every peer.
    pub offered_capabilities: Vec<Symbol>,
    /// What a server offers to peers that desire it.
    pub available_capabilities: Vec<Symbol>,
    /// Tells of a peer's open whether a capability is withheld from it.
    pub withholds: fn(&Open, &Symbol) -> bool,
    pub desired_capabilities: Vec<Symbol>,
    /// Tells of a peer's attach whether its name does not count: it steals no link, and none steals
    /// it.
    pub shares_name: fn(&Attach) -> bool,
    /// Transfers a session takes before we refresh its window.
    pub incoming_window: u32,
    /// A server's offer. A client's choice is `client_sasl`.
    pub sasl_mechanisms: Vec<Symbol>,
    /// A client's mechanism and initial response; `None` skips SASL.
    pub client_sasl: Option<(Symbol, Vec<u8>)>,
    /// Whether a server accepts a peer that skips SASL.
    pub sasl_required: bool,
    pub max_sessions: usize,
    pub max_links_per_session: usize,
    /// Links of all sessions together.
    pub max_links: usize,
    /// Deliveries either way that wait for settlement, per session.
    pub max_unsettled: usize,
    /// All unfinished multi-frame deliveries of the connection together.
    pub max_partial_bytes: usize,
    /// From the first byte until open is done.
    pub handshake_time_out: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_id: "railbus".to_owned(),
            hostname: None,
            max_frame_size: 65_536,
            channel_max: 4_999,
            handle_max: 4_095,
            idle_time_out: Some(120_000),
            properties: None,
            offered_capabilities: Vec::new(),
            available_capabilities: Vec::new(),
            withholds: |_, _| false,
            shares_name: |_| false,
            desired_capabilities: Vec::new(),
            incoming_window: 5_000,
            sasl_mechanisms: ["MSSBCBS", "PLAIN", "ANONYMOUS"].map(Symbol::new).to_vec(),
            client_sasl: None,
            sasl_required: false,
            max_sessions: 5_000,
            max_links_per_session: 4_096,
            max_links: 10_000,
            max_unsettled: 65_536,
            max_partial_bytes: 128 << 20,
            handshake_time_out: 30_000,
        }
    }
}
