//! Telemetry: traces and metrics for a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! Off unless an endpoint is configured. Spans are made where commands leave a connection or a
//! request over HTTP and where outputs come back to it, and only for messages whose sender was
//! sampled. The core knows nothing of them, but reports the ends of their locks. Metrics are those
//! of `/metrics`. What a collector does not take in time is dropped and counted: telemetry never
//! holds up a message. (docs/telemetry.md)

mod attribute;
mod connection_tracer;
mod endpoints;
mod exporter;
mod lock_reports;
mod locked_messages;
mod metric_points;
mod sampler;
mod span;
mod trace_context;
mod traced_message;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use connection_tracer::ConnectionTracer;
pub use endpoints::Endpoints;
pub use exporter::{Spans, Tracer};
pub use sampler::Sampler;

use rustls::pki_types::CertificateDer;

use crate::server::server_state::ServerState;

/// How what is sent is encoded. [OTLP: OTLP/HTTP]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OtlpProtocol {
    /// `http/protobuf`.
    #[default]
    Protobuf,
    /// `http/json`.
    Json,
}

/// What takes spans or metrics.
#[derive(Clone, Eq, PartialEq)]
pub struct Collector {
    /// Where they are sent to.
    pub url: String,
    /// How they are encoded.
    pub protocol: OtlpProtocol,
    /// Whether bodies are compressed with gzip.
    pub is_compressed: bool,
    /// Further headers of requests, which may hold secrets.
    pub headers: Vec<(String, String)>,
    /// How long a request may take.
    pub time_out: Duration,
    /// The authorities that it is trusted by, instead of those of the system.
    pub authorities: Option<Arc<[CertificateDer<'static>]>>,
}

// Written by hand, so that no header can be printed by mistake.
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collector").field(&self.url).finish()
    }
}

/// Where telemetry goes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TelemetryOptions {
    /// What takes spans; none are made without it.
    pub traces: Option<Collector>,
    /// What takes metrics; they are not sent without it.
    pub metrics: Option<Collector>,
    /// Which messages have spans.
    pub sampler: Sampler,
    /// What all of it comes from: keys and values.
    pub resource: Vec<(String, String)>,
    /// The longest time that a span waits for others.
    pub schedule_delay: Duration,
    /// The time between two exports of metrics.
    pub metric_interval: Duration,
}

/// Exports until the server stops.
pub fn start(server: &Arc<ServerState>, options: TelemetryOptions, spans: Spans) {
    let options = Arc::new(options);
    if options.traces.is_some() {
        tokio::spawn(exporter::export_spans(
            Arc::clone(server),
            Arc::clone(&options),
            spans,
        ));
    }
    if options.metrics.is_some() {
        tokio::spawn(exporter::export_metrics(Arc::clone(server), options));
    }
}
