//! Limits of `railbus.toml`, as the parts of the broker take them.

use std::time::Duration;

use broker::{ForwardRetry, TransactionSettings};
use server::Limits;

use crate::config::LimitsConfig;

/// Of the AMQP engine.
pub fn endpoint(limits: &LimitsConfig) -> endpoint::Config {
    let default = endpoint::Config::default();
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let millis = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    endpoint::Config {
        max_frame_size: limits
            .frame_size
            .map_or(default.max_frame_size, |value| millis(value.0)),
        idle_time_out: limits
            .idle_time_out
            .map(|value| millis(value.0))
            .or(default.idle_time_out),
        handshake_time_out: limits
            .handshake_time_out
            .map_or(default.handshake_time_out, |value| millis(value.0)),
        max_sessions: limits
            .sessions_per_connection
            .map_or(default.max_sessions, |value| size(value.0)),
        max_links_per_session: limits
            .links_per_session
            .map_or(default.max_links_per_session, |value| size(value.0)),
        max_links: limits
            .links_per_connection
            .map_or(default.max_links, |value| size(value.0)),
        max_unsettled: limits
            .unsettled_per_session
            .map_or(default.max_unsettled, |value| size(value.0)),
        max_partial_bytes: limits
            .partial_bytes_per_connection
            .map_or(default.max_partial_bytes, |value| size(value.0)),
        ..default
    }
}

/// Of the server.
pub fn limits(limits: &LimitsConfig) -> Limits {
    let default = Limits::default();
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    Limits {
        connections: limits
            .connections
            .map_or(default.connections, |value| size(value.0)),
        connections_per_address: limits
            .connections_per_address
            .map_or(default.connections_per_address, |value| size(value.0)),
        wrong_credentials_per_address: limits
            .wrong_credentials_per_address
            .map_or(default.wrong_credentials_per_address, |value| {
                u32::try_from(value.0).unwrap_or(u32::MAX)
            }),
        handshake: limits
            .handshake_time_out
            .map_or(default.handshake, |value| Duration::from_millis(value.0)),
        unanswered_bytes_per_connection: limits
            .unanswered_bytes_per_connection
            .map_or(default.unanswered_bytes_per_connection, |value| {
                size(value.0)
            }),
        unwritten_bytes_per_connection: limits
            .unwritten_bytes_per_connection
            .map_or(default.unwritten_bytes_per_connection, |value| {
                size(value.0)
            }),
        http_header_bytes: limits
            .http_header_size
            .map_or(default.http_header_bytes, |value| size(value.0)),
        http_body_bytes: limits
            .http_body_size
            .map_or(default.http_body_bytes, |value| size(value.0)),
        unanswered_bytes: limits
            .unanswered_bytes
            .map_or(default.unanswered_bytes, |value| size(value.0)),
        ..default
    }
}

/// Of forwarding to a full destination.
pub fn forward_retry(limits: &LimitsConfig) -> ForwardRetry {
    let default = ForwardRetry::default();
    ForwardRetry {
        interval: limits
            .forward_retry_interval
            .map_or(default.interval, |value| value.0),
        time_out: limits
            .forward_retry_time_out
            .map_or(default.time_out, |value| value.0),
    }
}

/// Of transactions.
pub fn transactions(limits: &LimitsConfig) -> TransactionSettings {
    let default = TransactionSettings::default();
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    TransactionSettings {
        life: limits
            .transaction_time_out
            .map_or(default.life, |value| value.0),
        operations: limits
            .operations_per_transaction
            .map_or(default.operations, |value| size(value.0)),
        open: limits
            .transactions_per_connection
            .map_or(default.open, |value| size(value.0)),
        bytes: limits
            .bytes_per_transaction
            .map_or(default.bytes, |value| size(value.0)),
        all_bytes: limits
            .transaction_bytes
            .map_or(default.all_bytes, |value| size(value.0)),
    }
}
