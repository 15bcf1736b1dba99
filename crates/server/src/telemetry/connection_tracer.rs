//! Connection tracer: the spans of one AMQP connection.
//!
//! It looks at the commands that leave the connection and at the outputs that come back. Only
//! messages whose sender was sampled have spans. Messages sent in a transaction, published to an
//! exchange or handled over HTTP have none. What it remembers is bounded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::{Command, Delivery, LockToken, Outcome, Output, RequestId, Requester};
use rustc_hash::FxHashMap;
use store::EntityId;

use super::exporter::Tracer;
use super::span::{Operation, Span};
use super::trace_context::{self, TraceContext};
use crate::shard::DirectoryReceiver;

/// Deliveries that are remembered until they are settled. Beyond it the settlements of those before
/// have no spans.
const MOST_DELIVERED: usize = 4_096;
/// Entities whose paths are remembered.
const MOST_PATHS: usize = 1_024;

/// The spans of one connection.
#[derive(Debug)]
pub struct ConnectionTracer {
    tracer: Arc<Tracer>,
    peer: SocketAddr,
    directory: DirectoryReceiver,
    /// Spans that end with the answer to a request.
    pending: FxHashMap<RequestId, Vec<Span>>,
    /// Of messages that are locked.
    delivered: FxHashMap<LockToken, TraceContext>,
    paths: FxHashMap<EntityId, Arc<str>>,
}

impl ConnectionTracer {
    /// A tracer for a connection from `peer`.
    pub fn new(tracer: Arc<Tracer>, peer: SocketAddr, directory: DirectoryReceiver) -> Self {
        Self {
            tracer,
            peer,
            directory,
            pending: FxHashMap::default(),
            delivered: FxHashMap::default(),
            paths: FxHashMap::default(),
        }
    }

    /// Begins the spans of `commands`.
    pub fn begin(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Send {
                    request,
                    entity,
                    messages,
                } => {
                    for message in messages {
                        if let Some(context) = TraceContext::of_message(&message.payload) {
                            let span = self.span(context, *entity, Operation::Send);
                            self.pending.entry(*request).or_default().push(span);
                        }
                    }
                }
                Command::Settle {
                    request,
                    subqueue,
                    token,
                    outcome,
                    ..
                } => self.settle(*request, subqueue.entity, &[*token], outcome),
                Command::SettleMany {
                    request,
                    subqueue,
                    tokens,
                    outcome,
                    ..
                } => self.settle(Some(*request), subqueue.entity, tokens, outcome),
                _ => {}
            }
        }
    }

    fn settle(
        &mut self,
        request: Option<RequestId>,
        entity: EntityId,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) {
        for token in tokens {
            let Some(context) = self.delivered.remove(token) else {
                continue;
            };
            let Some(name) = name_of(outcome) else {
                continue;
            };
            let mut span = self.span(context, entity, Operation::Settle(name));
            if let Outcome::DeadLetter { changes } = outcome {
                let keys = ["DeadLetterReason", "DeadLetterErrorDescription"];
                span.dead_letter = Some(keys.map(|key| {
                    let value = changes.iter().find(|(name, _)| name == key);
                    let value = trace_context::text(&value?.1)?;
                    Some(String::from_utf8_lossy(value).into_owned())
                }));
            }
            match request {
                Some(request) => self.pending.entry(request).or_default().push(span),
                None => self.tracer.send(span),
            }
        }
    }

    /// Ends the spans that `output` ends.
    pub fn end(&mut self, output: &Output) {
        match output {
            Output::Deliver { delivery, .. } => self.deliver(delivery),
            Output::Sent {
                request, result, ..
            } => self.answer(request, result.as_ref().err()),
            Output::Settled { request, result } => self.answer(request, result.as_ref().err()),
            Output::Ended {
                requester: Requester::Request(request),
                ..
            } => self.answer(request, Some(&"ended by a fault rule")),
            _ => {}
        }
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let message = &delivery.message;
        let Some(context) = TraceContext::of_message(&message.payload) else {
            return;
        };
        if message.lock.is_some() {
            if self.delivered.len() >= MOST_DELIVERED {
                self.delivered.clear();
            }
            self.delivered.insert(delivery.token, context);
        }
        let operation = Operation::Receive {
            delivery_count: message.delivery_count,
        };
        let mut span = self.span(context, delivery.entity, operation);
        // A virtual clock may be ahead of the real one.
        span.start = span.start.min(message.enqueued.0.saturating_mul(1_000_000));
        self.tracer.send(span);
    }

    fn answer(&mut self, request: &RequestId, error: Option<&impl std::fmt::Display>) {
        if self.pending.is_empty() {
            return;
        }
        let error = error.map(ToString::to_string);
        for mut span in self.pending.remove(request).into_iter().flatten() {
            span.end = now();
            span.error.clone_from(&error);
            self.tracer.send(span);
        }
    }

    fn span(&mut self, context: TraceContext, entity: EntityId, operation: Operation) -> Span {
        let now = now();
        Span {
            context,
            id: self.tracer.next_id(),
            operation,
            entity: self.path(entity),
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
        Outcome::Annotated { outcome, .. } => return name_of(outcome),
        Outcome::Undelivered => return None,
    })
}

/// Nanoseconds of the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
