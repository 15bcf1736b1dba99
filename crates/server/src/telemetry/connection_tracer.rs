//! Connection tracer: the spans of one AMQP connection, or of one request over HTTP.
//!
//! It looks at the commands that leave for the shard and at the outputs that come back. Only
//! messages that are sampled have spans. A span of a transaction ends with the transaction. Of each
//! settlement that may make a dead letter the core is asked for a report. What the tracer
//! remembers is bounded.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::{
    self as core, Command, ConnectionId, Delivery, LockToken, Outcome, Output, RequestId,
    Requester, Routed, SubqueueId, TransactionId,
};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use store::EntityId;

use super::endpoints::Endpoints;
use super::exporter::Tracer;
use super::lock_reports::{LockReport, LockReports};
use super::locked_messages::LockedMessages;
use super::span::{Operation, Span};
use super::traced_message::TracedMessage;
use crate::shard::DirectoryReceiver;

/// Entities whose paths are remembered.
const MOST_PATHS: usize = 1_024;
/// Spans that wait for the end of their transactions. Further ones are left out.
const MOST_ENLISTED: usize = 4_096;
/// Why the operations of a transaction failed that its client has ended so.
const ROLLED_BACK: &str = "rolled back";

/// The spans of one connection.
#[derive(Debug)]
pub struct ConnectionTracer {
    tracer: Arc<Tracer>,
    connection: ConnectionId,
    endpoints: Option<Endpoints>,
    directory: DirectoryReceiver,
    /// Spans that end with the answer to a request.
    pending: FxHashMap<RequestId, Vec<Span>>,
    /// The transaction that a request's spans become a part of.
    enlisting: FxHashMap<RequestId, TransactionId>,
    /// Spans of operations in a transaction that is open.
    enlisted: FxHashMap<TransactionId, Vec<Span>>,
    /// Transactions that end, and whether they are rolled back.
    discharges: FxHashMap<RequestId, (TransactionId, bool)>,
    locked: Arc<LockedMessages>,
    reports: LockReports,
    paths: FxHashMap<EntityId, Arc<str>>,
}

impl ConnectionTracer {
    /// A tracer for a connection.
    pub fn new(
        tracer: Arc<Tracer>,
        connection: ConnectionId,
        endpoints: Endpoints,
        directory: DirectoryReceiver,
    ) -> Self {
        let endpoints = Some(endpoints);
        Self::with(tracer, connection, endpoints, directory, Arc::default())
    }

    /// A tracer for one request over HTTP. The next one may settle what this one has locked.
    pub fn of_request(
        tracer: &Arc<Tracer>,
        connection: ConnectionId,
        endpoints: Option<Endpoints>,
        directory: DirectoryReceiver,
    ) -> Self {
        let locked = Arc::clone(&tracer.locked_over_http);
        let tracer = Arc::clone(tracer);
        Self::with(tracer, connection, endpoints, directory, locked)
    }

    fn with(
        tracer: Arc<Tracer>,
        connection: ConnectionId,
        endpoints: Option<Endpoints>,
        directory: DirectoryReceiver,
        locked: Arc<LockedMessages>,
    ) -> Self {
        Self {
            tracer,
            connection,
            endpoints,
            directory,
            pending: FxHashMap::default(),
            enlisting: FxHashMap::default(),
            enlisted: FxHashMap::default(),
            discharges: FxHashMap::default(),
            locked,
            reports: LockReports::default(),
            paths: FxHashMap::default(),
        }
    }

    /// From now on its entities are those of this directory.
    pub fn follow(&mut self, directory: DirectoryReceiver) {
        self.directory = directory;
        self.paths.clear();
    }

    /// The client has named the host that it has come to.
    pub fn name_server(&mut self, host: &str) {
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.name_server(host);
        }
    }

    /// Begins the spans of `commands`, and asks for the reports that they need.
    pub fn begin(&mut self, commands: &mut [Command]) {
        for command in commands {
            let (request, spans) = match command {
                Command::Send {
                    request,
                    entity,
                    messages,
                } => {
                    let payloads = messages.iter().map(|message| &message.payload);
                    (Some(*request), self.sends(*entity, payloads))
                }
                Command::Publish {
                    request,
                    publication,
                } => (Some(*request), self.publication(publication)),
                Command::Settle {
                    request,
                    subqueue,
                    token,
                    outcome,
                    ..
                } => {
                    let spans = self.settlements(*subqueue, &[*token], outcome);
                    (*request, spans)
                }
                Command::SettleMany {
                    request,
                    subqueue,
                    tokens,
                    outcome,
                    ..
                } => {
                    let spans = self.settlements(*subqueue, tokens, outcome);
                    (Some(*request), spans)
                }
                Command::Enlist {
                    request,
                    transaction,
                    operation,
                    ..
                } => {
                    let spans = self.operation(operation);
                    if !spans.is_empty() {
                        self.enlisting.insert(*request, *transaction);
                    }
                    (Some(*request), spans)
                }
                Command::Discharge {
                    request,
                    transaction,
                    fail,
                } => {
                    self.discharges.insert(*request, (*transaction, *fail));
                    continue;
                }
                _ => continue,
            };
            match request {
                _ if spans.is_empty() => {}
                Some(request) => self.pending.entry(request).or_default().extend(spans),
                None => self.finish_unanswered(spans),
            }
        }
    }

    /// Ends spans that no answer ends: by their reports, if there is one to come.
    fn finish_unanswered(&mut self, spans: Vec<Span>) {
        for span in spans {
            let ended = match span.lock {
                Some(lock) => self.reports.wait_for(lock, span),
                None => vec![span],
            };
            self.finish(ended, None);
        }
    }

    fn sends<'a>(
        &mut self,
        entity: EntityId,
        payloads: impl Iterator<Item = &'a Bytes>,
    ) -> Vec<Span> {
        let sampler = self.tracer.sampler;
        let messages: Vec<_> = payloads
            .filter_map(|payload| TracedMessage::of(payload, sampler))
            .collect();
        let spans = messages.into_iter();
        spans
            .map(|message| self.span(message, entity, Operation::Send))
            .collect()
    }

    fn publication(&mut self, publication: &core::Publication) -> Vec<Span> {
        let message = TracedMessage::of(&publication.message.payload, self.tracer.sampler);
        let spans = message.into_iter();
        spans
            .map(|message| {
                let router = publication.router.as_str().into();
                self.span_at(message, router, Operation::Send)
            })
            .collect()
    }

    fn operation(&mut self, operation: &mut core::Operation) -> Vec<Span> {
        match operation {
            core::Operation::Send { entity, messages } => {
                let payloads = messages.iter().map(|message| &message.payload);
                self.sends(*entity, payloads)
            }
            core::Operation::Settle {
                subqueue,
                tokens,
                outcome,
                ..
            } => self.settlements(*subqueue, tokens, outcome),
            core::Operation::Cancel { .. } | core::Operation::SetSessionState { .. } => Vec::new(),
        }
    }

    fn settlements(
        &mut self,
        subqueue: SubqueueId,
        tokens: &[LockToken],
        outcome: &mut Outcome,
    ) -> Vec<Span> {
        let locked = self.locked.take(tokens);
        let Some(name) = name_of(outcome).filter(|_| !locked.is_empty()) else {
            return Vec::new();
        };
        // What is completed is gone.
        let is_reported = *outcome != Outcome::Complete;
        if is_reported {
            let inner = std::mem::replace(outcome, Outcome::Complete);
            *outcome = Outcome::Reported {
                to: self.connection,
                outcome: Box::new(inner),
            };
        }
        let span = |(token, message)| {
            let mut span = self.span(message, subqueue.entity, Operation::Settle(name));
            span.lock = is_reported.then_some(token);
            span
        };
        locked.into_iter().map(span).collect()
    }

    /// Ends the spans that `output` ends.
    pub fn end(&mut self, output: &Output) {
        match output {
            Output::Deliver { delivery, .. } => self.deliver(delivery),
            Output::Deferred {
                result: Ok(deliveries),
                ..
            } => {
                for delivery in deliveries {
                    self.deliver(delivery);
                }
            }
            Output::Sent {
                request, result, ..
            } => self.answer(request, result.as_ref().err()),
            Output::Published { request, result } => match result {
                Ok(Routed::Unmatched) => self.answer(request, Some(&"no binding matched")),
                result => self.answer(request, result.as_ref().err()),
            },
            Output::LockEnded { token, result, .. } => self.report(*token, result),
            Output::Settled { request, result } => self.answer(request, result.as_ref().err()),
            Output::Discharged { request, result } => {
                let Some((transaction, is_rollback)) = self.discharges.remove(request) else {
                    return;
                };
                let error = match result {
                    Ok(()) => is_rollback.then(|| ROLLED_BACK.to_owned()),
                    Err(error) => Some(error.to_string()),
                };
                self.end_transaction(transaction, error.as_deref());
            }
            Output::TimedOut { transaction, .. } => {
                self.end_transaction(*transaction, Some("the transaction took too long"));
            }
            Output::Ended {
                requester: Requester::Request(request),
                ..
            } => self.answer(request, Some(&"ended by a fault rule")),
            _ => {}
        }
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let message = &delivery.message;
        let sampler = self.tracer.sampler;
        let Some(traced) = TracedMessage::of(&message.payload, sampler) else {
            return;
        };
        if message.lock.is_some() {
            self.locked.insert(delivery.token, traced.clone());
        }
        let operation = Operation::Receive {
            delivery_count: message.delivery_count,
            enqueued_ms: message.enqueued.0,
        };
        let mut span = self.span(traced, delivery.message.entity, operation);
        // A virtual clock may be ahead of the real one.
        span.start = span.start.min(message.enqueued.0.saturating_mul(1_000_000));
        self.tracer.send(span);
    }

    fn report(&mut self, lock: LockToken, report: &LockReport) {
        let span = self.reports.handle(lock, report);
        let error = report.as_ref().err().map(ToString::to_string);
        self.finish(Vec::from_iter(span), error.as_deref());
    }

    fn answer(&mut self, request: &RequestId, error: Option<&impl std::fmt::Display>) {
        if self.pending.is_empty() {
            return;
        }
        let error = error.map(ToString::to_string);
        let spans = self.pending.remove(request).unwrap_or_default();
        match self.enlisting.remove(request) {
            Some(transaction) if error.is_none() => {
                let waiting: usize = self.enlisted.values().map(Vec::len).sum();
                let room = MOST_ENLISTED.saturating_sub(waiting);
                let enlisted = self.enlisted.entry(transaction).or_default();
                enlisted.extend(spans.into_iter().take(room));
            }
            _ => self.finish(spans, error.as_deref()),
        }
    }

    fn end_transaction(&mut self, transaction: TransactionId, error: Option<&str>) {
        let spans = self.enlisted.remove(&transaction).unwrap_or_default();
        self.finish(spans, error);
    }

    /// Ends spans now.
    fn finish(&mut self, spans: Vec<Span>, error: Option<&str>) {
        for mut span in spans {
            span.end = now();
            span.error = error.map(str::to_owned);
            span.dead_letter = span.lock.and_then(|lock| self.reports.take(lock));
            self.tracer.send(span);
        }
    }

    fn span(&mut self, message: TracedMessage, entity: EntityId, operation: Operation) -> Span {
        let path = self.path(entity);
        self.span_at(message, path, operation)
    }

    fn span_at(&self, message: TracedMessage, path: Arc<str>, operation: Operation) -> Span {
        let now = now();
        Span {
            message,
            id: self.tracer.next_id(),
            operation,
            entity: path,
            endpoints: self.endpoints.clone(),
            lock: None,
            start: now,
            end: now,
            dead_letter: None,
            error: None,
        }
    }

    fn path(&mut self, entity: EntityId) -> Arc<str> {
        if self.paths.len() >= MOST_PATHS {
            self.paths.clear();
        }
        let directory = &self.directory;
        let path = self.paths.entry(entity).or_insert_with(|| {
            let directory = directory.borrow();
            directory.path_of(entity).unwrap_or_default().into()
        });
        Arc::clone(path)
    }
}

impl Drop for ConnectionTracer {
    /// What the core still had to report ends without.
    fn drop(&mut self) {
        let spans = self.reports.forget_waiting();
        self.finish(spans, None);
    }
}

/// What a settlement is called; one that its receiver did not ask for has no name.
fn name_of(outcome: &Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Complete => "complete",
        Outcome::Abandon { .. } => "abandon",
        Outcome::Defer { .. } => "defer",
        Outcome::DeadLetter { .. } => "dead_letter",
        Outcome::Release | Outcome::ReleaseLater(_) => "release",
        Outcome::Annotated { outcome, .. } | Outcome::Reported { outcome, .. } => {
            return name_of(outcome);
        }
        Outcome::Undelivered => return None,
    })
}

/// Nanoseconds of the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
