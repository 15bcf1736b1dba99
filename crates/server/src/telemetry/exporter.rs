//! Exporter: sends spans and metrics to a collector, in batches.
//!
//! Connections put spans into a queue of fixed length and never wait for room in it. A batch that
//! the collector does not take is dropped; the log says so once until a batch is taken again.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::CONTENT_ENCODING;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::attribute::text;
use super::connection_tracer::now;
use super::locked_messages::LockedMessages;
use super::metric_points;
use super::sampler::Sampler;
use super::span::Span;
use super::{Collector, OtlpProtocol, TelemetryOptions};
use crate::fetch::{self, FetchError};
use crate::http::metrics;
use crate::random::random;
use crate::server::server_state::ServerState;

/// Spans that wait for the exporter, as other SDKs have it.
const QUEUE: usize = 2_048;
/// Most spans of one request.
const BATCH: usize = 512;

/// How long the last request may take.
const LAST: Duration = Duration::from_secs(1);

/// The receiving end of the queue of spans.
pub type Spans = mpsc::Receiver<Span>;

/// The way of spans to the exporter.
#[derive(Debug)]
pub struct Tracer {
    /// Of messages that requests over HTTP have locked.
    pub locked_over_http: Arc<LockedMessages>,
    pub sampler: Sampler,
    queue: mpsc::Sender<Span>,
    ids: AtomicU64,
    dropped: AtomicU64,
}

impl Tracer {
    /// A tracer, and the queue that it fills.
    pub fn new(sampler: Sampler) -> (Self, Spans) {
        let (queue, spans) = mpsc::channel(QUEUE);
        let tracer = Self {
            locked_over_http: Arc::default(),
            sampler,
            queue,
            ids: AtomicU64::new(u64::from_be_bytes(random())),
            dropped: AtomicU64::new(0),
        };
        (tracer, spans)
    }

    /// Gives a span to the exporter, or drops it if the exporter is behind.
    pub fn send(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!("{dropped} spans were dropped: the collector is too slow");
        }
    }

    /// The id of a further span: not 0, and different from all others of this process.
    pub fn next_id(&self) -> u64 {
        // An odd factor maps different numbers to different ones.
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1)
    }
}

/// Sends spans until the server stops, and those that are there then.
pub async fn export_spans(
    server: Arc<ServerState>,
    options: Arc<TelemetryOptions>,
    mut spans: Spans,
) {
    let mut stopping = server.stopping.clone();
    let mut log = ExportLog::new("spans");
    let mut batch = Vec::new();
    loop {
        let is_last = tokio::select! {
            _ = spans.recv_many(&mut batch, BATCH) => false,
            _ = stopping.wait_for(|stopping| *stopping) => true,
        };
        if is_last {
            batch.extend(std::iter::from_fn(|| spans.try_recv().ok()));
        } else {
            tokio::select! {
                () = fill(&mut batch, &mut spans) => {}
                () = tokio::time::sleep(options.schedule_delay) => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        }
        if !batch.is_empty() {
            let spans = ScopeSpans {
                scope: Some(scope()),
                spans: batch.drain(..).map(|span| span.encode()).collect(),
                ..ScopeSpans::default()
            };
            let request = ExportTraceServiceRequest {
                resource_spans: vec![ResourceSpans {
                    resource: Some(resource(&options)),
                    scope_spans: vec![spans],
                    ..ResourceSpans::default()
                }],
            };
            let post = post(options.traces.as_ref(), &request);
            // The end of the server does not wait long for a collector.
            if is_last {
                drop(tokio::time::timeout(LAST, post).await);
            } else {
                tokio::select! {
                    result = post => log.note(&result),
                    _ = stopping.wait_for(|stopping| *stopping) => {}
                }
            }
        }
        if let Some(tracer) = &server.tracer {
            tracer.report_dropped();
        }
        if is_last {
            return;
        }
    }
}

/// Waits until a batch is full.
async fn fill(batch: &mut Vec<Span>, spans: &mut Spans) {
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        if spans.recv_many(batch, room).await == 0 {
            return;
        }
    }
}

/// Sends metrics at each interval until the server stops.
pub async fn export_metrics(server: Arc<ServerState>, options: Arc<TelemetryOptions>) {
    let start = now();
    let mut stopping = server.stopping.clone();
    let mut log = ExportLog::new("metrics");
    let mut interval = tokio::time::interval(options.metric_interval);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        let Ok(page) = metrics::page(&server).await else {
            continue;
        };
        let metrics = ScopeMetrics {
            scope: Some(scope()),
            metrics: metric_points::of(&page, start, now()),
            ..ScopeMetrics::default()
        };
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(resource(&options)),
                scope_metrics: vec![metrics],
                ..ResourceMetrics::default()
            }],
        };
        tokio::select! {
            result = post(options.metrics.as_ref(), &request) => log.note(&result),
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

async fn post(
    collector: Option<&Collector>,
    request: &(impl Message + Serialize),
) -> Result<(), FetchError> {
    let collector = collector.ok_or(FetchError::Url)?;
    let (media_type, body) = match collector.protocol {
        OtlpProtocol::Protobuf => ("application/x-protobuf", request.encode_to_vec()),
        OtlpProtocol::Json => {
            let body = serde_json::to_vec(request);
            ("application/json", body.expect("its keys are strings"))
        }
    };
    let Collector {
        url,
        headers,
        time_out,
        authorities,
        ..
    } = collector;
    let mut headers = Cow::from(headers);
    let body = if collector.is_compressed {
        let encoding = (CONTENT_ENCODING.as_str().to_owned(), "gzip".to_owned());
        headers.to_mut().push(encoding);
        gzip(&body)
    } else {
        body
    };
    let (body, authorities) = (Bytes::from(body), authorities.as_ref());
    fetch::post(url, &headers, media_type, body, *time_out, authorities).await
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(body).and_then(|()| encoder.finish());
    compressed.expect("memory takes what is written to it")
}

fn resource(options: &TelemetryOptions) -> Resource {
    let attributes = options.resource.iter();
    Resource {
        attributes: attributes.map(|(key, value)| text(key, value)).collect(),
        ..Resource::default()
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "railbus".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Logs the first failure after a success, and the first success after a failure.
struct ExportLog {
    what: &'static str,
    fails: bool,
}

impl ExportLog {
    fn new(what: &'static str) -> Self {
        Self { what, fails: false }
    }

    fn note(&mut self, result: &Result<(), impl fmt::Display>) {
        let what = self.what;
        match result {
            Err(error) if !self.fails => {
                tracing::warn!("the collector does not take {what}, which are dropped: {error}");
            }
            Ok(()) if self.fails => tracing::info!("the collector takes {what} again"),
            _ => {}
        }
        self.fails = result.is_err();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_spans_differ_and_are_not_zero() {
        let (tracer, _spans) = Tracer::new(Sampler::Parent);
        tracer.ids.store(u64::MAX - 10, Ordering::Relaxed);
        let ids: HashSet<_> = (0..100).map(|_| tracer.next_id()).collect();
        assert_eq!(ids.len(), 100);
        assert!(!ids.contains(&0));
    }
}
