//! Metrics of the server: connections, refusals, bytes, memory, and the limits that apply to them.
//!
//! They are computed at each request, from counters that connections raise. (docs/metrics.md)

use std::fs;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::registry::Unit;

use super::page::{Page, measure};
use crate::server::server_state::ServerState;
use crate::shard::report::Report;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct VersionLabel {
    version: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ProtocolLabel {
    protocol: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ErrorLabels {
    scope: &'static str,
    condition: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LimitLabel {
    limit: &'static str,
}

pub fn add(page: &mut Page, report: &Report, server: &ServerState) {
    let version = env!("CARGO_PKG_VERSION");
    page.gauges(
        "build",
        "The program",
        None,
        [(VersionLabel { version }, 1_u64)],
    );
    add_connections(page, report, server);
    add_refusals(page, server);
    add_memory(page, server);
    let limits = limits(server).into_iter();
    page.gauges(
        "limit",
        "Limits of the configuration, by name; times in seconds",
        None,
        limits.map(|(limit, value)| (LimitLabel { limit }, value)),
    );
}

fn add_connections(page: &mut Page, report: &Report, server: &ServerState) {
    let counts = &server.counts;
    let inside = server.connection_limiter.open_connections() as u64;
    page.gauge(
        "connections",
        "Open connections of all protocols",
        None,
        inside,
    );
    let listeners = report.connections as u64;
    page.gauge("amqp_connections", "Open AMQP connections", None, listeners);
    page.counters(
        "connections_opened",
        "Connections opened, by protocol; AMQP within WebSocket within TLS counts in each",
        counts
            .served
            .iter()
            .map(|(protocol, count)| (ProtocolLabel { protocol }, count)),
    );
    let bytes = || Some(Unit::Bytes);
    let (received, sent) = (counts.received_bytes.get(), counts.sent_bytes.get());
    page.counter(
        "amqp_received",
        "Bytes received from AMQP connections",
        bytes(),
        received,
    );
    page.counter(
        "amqp_sent",
        "Bytes written to AMQP connections",
        bytes(),
        sent,
    );
    page.counters(
        "http_responses",
        "Responses to HTTP requests, by class of status",
        counts
            .responses
            .iter()
            .map(|(status, count)| (StatusLabel { status }, count)),
    );
}

fn add_refusals(page: &mut Page, server: &ServerState) {
    let counts = &server.counts;
    page.counters(
        "connections_refused",
        "Connections refused before AMQP or HTTP began, by reason",
        counts
            .refused
            .iter()
            .map(|(reason, count)| (ReasonLabel { reason }, count)),
    );
    page.counters(
        "amqp_errors",
        "Connections, sessions and links that the broker refused or ended with an error",
        counts
            .error_counters
            .iter()
            .map(|(scope, condition, count)| (ErrorLabels { scope, condition }, count)),
    );
    let refused = [
        ("amqp", counts.refused_credentials.get()),
        ("http", counts.unauthorized.get()),
    ];
    page.counters(
        "credentials_refused",
        "Keys and tokens refused, and HTTP requests refused for lack of a right",
        refused.map(|(protocol, count)| (ProtocolLabel { protocol }, count)),
    );
    page.counter(
        "refusals_delayed",
        "Responses to wrong keys and tokens that were delayed because their address had shown too many",
        None,
        counts.delayed_refusals.get(),
    );
    page.counter(
        "read_pauses",
        "Times that reading a connection paused because its unanswered or unwritten bytes were at their limit",
        None,
        counts.pauses.get(),
    );
    page.counter(
        "partial_messages_shed",
        "Times that a connection lost unfinished messages because all connections together had too many",
        None,
        counts.shed.get(),
    );
}

fn add_memory(page: &mut Page, server: &ServerState) {
    let (total, partial) = (server.budget.total(), server.budget.partial());
    let kinds = [
        ("unanswered", total.saturating_sub(partial) as u64),
        ("partial", partial as u64),
    ];
    page.gauges(
        "incoming_message",
        "Bytes of incoming messages that are not answered, or not complete",
        Some(Unit::Bytes),
        kinds.map(|(kind, value)| (KindLabel { kind }, value)),
    );
    if let Some(resident) = resident_bytes() {
        page.gauge(
            "resident_memory",
            "Resident memory of the process",
            Some(Unit::Bytes),
            resident,
        );
    }
}

/// The resident memory as the system counts it; `None` if it does not.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1_024))
}

/// By the names that they have under `[limits]`.
fn limits(server: &ServerState) -> [(&'static str, f64); 17] {
    let (limits, dialect) = (server.limits(), server.settings());
    let endpoint = &dialect.endpoint;
    let count = |count: usize| measure(count as u64);
    let seconds = |ms: u32| f64::from(ms) / 1e3;
    [
        ("connections", count(limits.connections)),
        (
            "connections-per-address",
            count(limits.connections_per_address),
        ),
        (
            "wrong-credentials-per-address",
            f64::from(limits.wrong_credentials_per_address),
        ),
        ("handshake-time-out", limits.handshake.as_secs_f64()),
        (
            "authentication-time-out",
            seconds(dialect.authentication_time_out),
        ),
        (
            "idle-time-out",
            seconds(endpoint.idle_time_out.unwrap_or(0)),
        ),
        ("frame-size", f64::from(endpoint.max_frame_size)),
        ("sessions-per-connection", count(endpoint.max_sessions)),
        ("links-per-session", count(endpoint.max_links_per_session)),
        ("links-per-connection", count(endpoint.max_links)),
        ("unsettled-per-session", count(endpoint.max_unsettled)),
        (
            "partial-bytes-per-connection",
            count(endpoint.max_partial_bytes),
        ),
        (
            "unanswered-bytes-per-connection",
            count(limits.unanswered_bytes_per_connection),
        ),
        ("unanswered-bytes", count(limits.unanswered_bytes)),
        (
            "unwritten-bytes-per-connection",
            count(limits.unwritten_bytes_per_connection),
        ),
        ("http-header-size", count(limits.http_header_bytes)),
        ("http-body-size", count(limits.http_body_bytes)),
    ]
}
