//! Spans of what a connection asks for: in transactions, to exchanges, and of deferred messages.

use std::net::SocketAddr;

use amqp::Value;
use amqp::message::{Properties, descriptor, encode_map_section};
use broker::{
    self as core, DeadLettering, EntityKind, Incoming, Publication, QueueSettings, RefusalReport,
    Subqueue, TransactionError,
};
use bytes::BytesMut;
use store::{NamespaceId, SequenceNumber};
use tokio::sync::watch;

use super::super::exporter::Spans;
use super::super::sampler::Sampler;
use super::*;

const TRANSACTION: TransactionId = TransactionId(7);
const TOKEN: LockToken = LockToken(9);
const ORDERS: EntityId = EntityId(5);

struct Setup {
    tracer: ConnectionTracer,
    spans: Spans,
    _directory: watch::Sender<Arc<access::Directory>>,
}

impl Setup {
    fn new() -> Self {
        Self::with(Sampler::Parent)
    }

    /// With a queue `orders`.
    fn with(sampler: Sampler) -> Self {
        let (tracer, spans) = Tracer::new(sampler);
        let mut directory = access::Directory::default();
        directory.insert(access::Entity {
            id: ORDERS,
            path: "orders".to_owned(),
            kind: EntityKind::Queue,
            settings: QueueSettings::default(),
            replaces: None,
        });
        let (sender, directory) = watch::channel(Arc::new(directory));
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        Self {
            tracer: ConnectionTracer::new(
                Arc::new(tracer),
                ConnectionId(1),
                Endpoints::new(peer, None),
                directory,
            ),
            spans,
            _directory: sender,
        }
    }

    /// The operation, path and error of each span that has ended since.
    fn ended(&mut self) -> Vec<(Operation, Arc<str>, Option<String>)> {
        let spans = std::iter::from_fn(|| self.spans.try_recv().ok());
        spans
            .map(|span| (span.operation, span.entity, span.error))
            .collect()
    }

    /// A message is in hand, and a span tells so.
    fn lock(&mut self) {
        let message = TracedMessage::of(&message().payload, Sampler::Parent);
        self.tracer.locked.insert(TOKEN, message.expect("sampled"));
    }

    /// Settles the message in hand. Returns the outcome that the broker is given.
    fn settle(&mut self, request: Option<RequestId>, outcome: Outcome) -> Outcome {
        let mut commands = [Command::Settle {
            request,
            subqueue: SubqueueId {
                entity: ORDERS,
                subqueue: Subqueue::Main,
            },
            session: None,
            token: TOKEN,
            outcome,
        }];
        self.tracer.begin(&mut commands);
        match commands {
            [Command::Settle { outcome, .. }] => outcome,
            other => panic!("it is another command now: {other:?}"),
        }
    }

    fn report(&mut self, result: LockReport) {
        self.tracer.end(&Output::LockEnded {
            connection: ConnectionId(1),
            token: TOKEN,
            result,
        });
    }

    fn enlist(&mut self, token: u64, operation: core::Operation) {
        self.tracer.begin(&mut [Command::Enlist {
            request: request(token),
            transaction: TRANSACTION,
            operation: Box::new(operation),
            scope: None,
            refusal: RefusalReport::Reported,
        }]);
    }

    fn discharge(&mut self, fail: bool, result: Result<(), TransactionError>) {
        let request = request(99);
        self.tracer.begin(&mut [Command::Discharge {
            request,
            transaction: TRANSACTION,
            fail,
        }]);
        assert_eq!(self.ended(), [], "the broker has not answered");
        self.tracer.end(&Output::Discharged { request, result });
    }
}

fn request(token: u64) -> RequestId {
    RequestId {
        connection: ConnectionId(1),
        token,
    }
}

fn message() -> Incoming {
    message_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
}

fn message_of(context: &str) -> Incoming {
    let properties = [(Value::from("Diagnostic-Id"), Value::from(context))];
    let mut payload = BytesMut::new();
    let id = Some(Value::Ulong(71));
    Properties {
        message_id: id,
        ..Properties::default()
    }
    .encode(&mut payload);
    encode_map_section(
        &mut payload,
        descriptor::APPLICATION_PROPERTIES,
        &properties,
    );
    Incoming {
        payload: payload.freeze(),
        ttl_ms: None,
        priority: None,
        message_id: None,
        session_id: None,
        scheduled: None,
        distribution: None,
        transfer_to: None,
        only_in: None,
    }
}

fn send() -> core::Operation {
    core::Operation::Send {
        entity: EntityId(1),
        messages: vec![message(), message()],
    }
}

fn complete() -> core::Operation {
    core::Operation::Settle {
        subqueue: SubqueueId {
            entity: EntityId(1),
            subqueue: Subqueue::Main,
        },
        session: None,
        tokens: vec![TOKEN],
        outcome: Outcome::Complete,
        on_rollback: None,
    }
}

fn sent(token: u64, result: Result<SequenceNumber, core::SendError>) -> Output {
    Output::Sent {
        request: request(token),
        result,
        duplicates: Vec::new(),
    }
}

fn settled(token: u64) -> Output {
    Output::Settled {
        request: request(token),
        result: Ok(()),
    }
}

#[test]
fn spans_of_a_transaction_end_with_it() {
    let rolled_back = TransactionError::RolledBack("a lock was lost".to_owned());
    let ends = [
        (false, Ok(()), None),
        (true, Ok(()), Some("rolled back".to_owned())),
        (
            false,
            Err(rolled_back.clone()),
            Some(rolled_back.to_string()),
        ),
    ];
    for (fail, result, error) in ends {
        let mut setup = Setup::new();
        setup.lock();
        setup.enlist(1, send());
        setup.enlist(2, complete());
        setup.tracer.end(&sent(1, Ok(SequenceNumber(1))));
        setup.tracer.end(&settled(2));
        assert_eq!(setup.ended(), [], "the transaction is open");
        setup.discharge(fail, result);
        let path: Arc<str> = "".into();
        let expected = [
            Operation::Send,
            Operation::Send,
            Operation::Settle("complete"),
        ];
        let expected = expected.map(|operation| (operation, Arc::clone(&path), error.clone()));
        assert_eq!(setup.ended(), expected);
    }
}

#[test]
fn what_a_transaction_refuses_has_failed_at_once_and_is_no_part_of_it() {
    let mut setup = Setup::new();
    setup.enlist(1, send());
    setup.tracer.end(&sent(1, Err(core::SendError::Disabled)));
    let disabled = core::SendError::Disabled.to_string();
    let errors: Vec<_> = setup.ended().into_iter().map(|span| span.2).collect();
    assert_eq!(errors, [Some(disabled.clone()), Some(disabled)]);
    setup.discharge(false, Ok(()));
    assert_eq!(setup.ended(), []);
}

#[test]
fn a_transaction_that_took_too_long_has_failed() {
    let mut setup = Setup::new();
    setup.lock();
    setup.enlist(1, complete());
    setup.tracer.end(&settled(1));
    setup.tracer.end(&Output::TimedOut {
        connection: ConnectionId(1),
        transaction: TRANSACTION,
    });
    let errors: Vec<_> = setup.ended().into_iter().map(|span| span.2).collect();
    let expected = "the transaction took too long".to_owned();
    assert_eq!(errors, [Some(expected)]);
}

#[test]
fn a_publication_has_a_span_with_the_name_of_its_exchange() {
    let unmatched = "no binding matched".to_owned();
    let stored = Routed::Stored { destinations: 2 };
    for (routed, error) in [(stored, None), (Routed::Unmatched, Some(unmatched))] {
        let mut setup = Setup::new();
        setup.tracer.begin(&mut [Command::Publish {
            request: request(1),
            publication: Box::new(Publication {
                namespace: NamespaceId::default(),
                router: "events".to_owned(),
                keys: vec!["a.b".to_owned()],
                message: message(),
            }),
        }]);
        setup.tracer.end(&Output::Published {
            request: request(1),
            result: Ok(routed),
        });
        assert_eq!(setup.ended(), [(Operation::Send, "events".into(), error)]);
    }
}

fn spoilt() -> DeadLettering {
    DeadLettering {
        reason: Some("spoilt".to_owned()),
        description: None,
    }
}

#[test]
fn a_settlement_has_made_a_dead_letter_if_the_broker_says_so() {
    for dead_letter in [None, Some(spoilt())] {
        let mut setup = Setup::new();
        setup.lock();
        let request = request(1);
        let outcome = setup.settle(Some(request), Outcome::abandon(Vec::new()));
        let reported = Outcome::Reported {
            to: ConnectionId(1),
            outcome: Box::new(Outcome::abandon(Vec::new())),
        };
        assert_eq!(outcome, reported);
        setup.report(Ok(dead_letter.clone().map(Box::new)));
        assert_eq!(setup.ended(), [], "the broker has not answered");
        let result = Ok(());
        setup.tracer.end(&Output::Settled { request, result });
        let span = setup.spans.try_recv().expect("it has ended");
        assert_eq!(span.dead_letter, dead_letter);
    }
}

#[test]
fn a_completion_and_what_is_not_sampled_is_settled_as_it_was() {
    let mut setup = Setup::new();
    let outcome = Outcome::abandon(Vec::new());
    assert_eq!(setup.settle(None, outcome.clone()), outcome);
    setup.lock();
    assert_eq!(setup.settle(None, Outcome::Complete), Outcome::Complete);
    assert_eq!(setup.ended().len(), 1, "of the completion");
}

#[test]
fn a_settlement_without_an_answer_ends_with_its_report() {
    let lost = core::SettleError::LockLost;
    for (report, dead_letter, error) in [
        (Ok(Some(Box::new(spoilt()))), Some(spoilt()), None),
        (Err(lost.clone()), None, Some(lost.to_string())),
    ] {
        let mut setup = Setup::new();
        setup.lock();
        setup.settle(None, Outcome::abandon(Vec::new()));
        assert_eq!(setup.ended(), [], "the broker has not reported");
        setup.report(report);
        let span = setup.spans.try_recv().expect("it has ended");
        assert_eq!((span.dead_letter, span.error), (dead_letter, error));
    }
}

#[test]
fn a_settlement_whose_connection_ends_before_the_report_has_a_span() {
    let mut setup = Setup::new();
    setup.lock();
    setup.settle(None, Outcome::Release);
    let Setup {
        tracer, mut spans, ..
    } = setup;
    drop(tracer);
    let span = spans.try_recv().expect("it has ended");
    assert_eq!(span.operation, Operation::Settle("release"));
}

#[test]
fn a_sampler_may_take_what_its_sender_did_not() {
    let unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    for (sampler, expected) in [
        (Sampler::Parent, 0),
        (Sampler::ALWAYS, 1),
        (Sampler::of_ratio(0.0), 0),
    ] {
        let mut setup = Setup::with(sampler);
        setup.tracer.begin(&mut [Command::Send {
            request: request(1),
            entity: ORDERS,
            messages: vec![message_of(unsampled)],
        }]);
        setup.tracer.end(&sent(1, Ok(SequenceNumber(1))));
        assert_eq!(setup.ended().len(), expected, "{sampler:?}");
    }
}

#[test]
fn a_span_has_the_id_of_its_message() {
    let mut setup = Setup::new();
    setup.tracer.begin(&mut [Command::Send {
        request: request(1),
        entity: ORDERS,
        messages: vec![message()],
    }]);
    setup.tracer.end(&sent(1, Ok(SequenceNumber(1))));
    let span = setup.spans.try_recv().expect("it has ended");
    assert_eq!(span.message.id.as_deref(), Some("71"));
}
