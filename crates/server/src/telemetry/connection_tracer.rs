//! Connection tracer: the spans of one AMQP connection, or of one request over HTTP.
//!
//! It looks at the commands that leave for the shard and at the outputs that come back. Only
//! messages that are sampled have spans. A span of a transaction ends with the transaction.
//! What it remembers is bounded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::{
    self as core, Command, Delivery, LockToken, Outcome, Output, RequestId, Requester, Routed,
    Subqueue, SubqueueId, TransactionId,
};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use store::EntityId;

use super::exporter::Tracer;
use super::locked_messages::{LockedMessage, LockedMessages};
use super::span::{Operation, Span};
use super::trace_context;
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
    peer: Option<SocketAddr>,
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
    paths: FxHashMap<EntityId, Arc<str>>,
}

impl ConnectionTracer {
    /// A tracer for a connection from `peer`.
    pub fn new(tracer: Arc<Tracer>, peer: SocketAddr, directory: DirectoryReceiver) -> Self {
        Self::with(tracer, Some(peer), directory, Arc::default())
    }

    /// A tracer for one request over HTTP. The next one may settle what this one has locked.
    pub fn of_request(
        tracer: &Arc<Tracer>,
        peer: Option<SocketAddr>,
        directory: DirectoryReceiver,
    ) -> Self {
        let locked = Arc::clone(&tracer.locked_over_http);
        Self::with(Arc::clone(tracer), peer, directory, locked)
    }

    fn with(
        tracer: Arc<Tracer>,
        peer: Option<SocketAddr>,
        directory: DirectoryReceiver,
        locked: Arc<LockedMessages>,
    ) -> Self {
        Self {
            tracer,
            peer,
            directory,
            pending: FxHashMap::default(),
            enlisting: FxHashMap::default(),
            enlisted: FxHashMap::default(),
            discharges: FxHashMap::default(),
            locked,
            paths: FxHashMap::default(),
        }
    }

    /// From now on its entities are those of this directory.
    pub fn follow(&mut self, directory: DirectoryReceiver) {
        self.directory = directory;
        self.paths.clear();
    }

    /// Begins the spans of `commands`.
    pub fn begin(&mut self, commands: &[Command]) {
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
                None => self.finish(spans, None),
            }
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

    fn operation(&mut self, operation: &core::Operation) -> Vec<Span> {
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
        outcome: &Outcome,
    ) -> Vec<Span> {
        let mut spans = Vec::new();
        for locked in self.locked.take(tokens) {
            let Some(name) = name_of(outcome) else {
                continue;
            };
            let operation = Operation::Settle(name);
            let mut span = self.span(locked.message, subqueue.entity, operation);
            span.dead_letter = match inner(outcome) {
                Outcome::DeadLetter { changes } => Some(reasons(changes)),
                Outcome::Abandon { .. } if subqueue.subqueue == Subqueue::Main => {
                    self.gives_up(&span.entity, locked.delivery_count)
                }
                _ => None,
            };
            spans.push(span);
        }
        spans
    }

    /// The reason with which the entity dead-letters a message that is abandoned, if it does.
    fn gives_up(&self, path: &str, delivery_count: u32) -> Option<[Option<String>; 2]> {
        let directory = self.directory.borrow();
        let settings = &directory.get(path)?.settings;
        let is_last = delivery_count.saturating_add(1) >= settings.max_delivery_count.max(1);
        let reason = || Some("MaxDeliveryCountExceeded".to_owned());
        (is_last && !settings.drops_dead_letters()).then(|| [reason(), None])
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
        let delivery_count = message.delivery_count;
        if message.lock.is_some() {
            let locked = LockedMessage {
                message: traced.clone(),
                delivery_count,
            };
            self.locked.insert(delivery.token, locked);
        }
        let operation = Operation::Receive {
            delivery_count,
            enqueued_ms: message.enqueued.0,
        };
        let mut span = self.span(traced, delivery.message.entity, operation);
        // A virtual clock may be ahead of the real one.
        span.start = span.start.min(message.enqueued.0.saturating_mul(1_000_000));
        self.tracer.send(span);
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
    fn finish(&self, spans: Vec<Span>, error: Option<&str>) {
        for mut span in spans {
            span.end = now();
            span.error = error.map(str::to_owned);
            span.dead_letter = span.dead_letter.filter(|_| error.is_none());
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
            peer: self.peer,
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

/// The outcome without its annotations.
fn inner(outcome: &Outcome) -> &Outcome {
    match outcome {
        Outcome::Annotated { outcome, .. } => inner(outcome),
        outcome => outcome,
    }
}

/// The reason and description that a receiver gives for a dead letter.
fn reasons(changes: &[(String, Bytes)]) -> [Option<String>; 2] {
    ["DeadLetterReason", "DeadLetterErrorDescription"].map(|key| {
        let value = changes.iter().find(|(name, _)| name == key);
        let value = trace_context::text(&value?.1)?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Nanoseconds of the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
