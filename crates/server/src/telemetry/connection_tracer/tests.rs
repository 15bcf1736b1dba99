//! Spans of what a connection asks for: in transactions, to exchanges, and of deferred messages.

use amqp::Value;
use amqp::message::{Properties, descriptor, encode_map_section};
use broker::{
    self as core, ConnectionId, EntityKind, Incoming, Publication, QueueSettings, RefusalReport,
    TransactionError,
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

    /// With a queue `orders` that delivers a message twice.
    fn with(sampler: Sampler) -> Self {
        let (tracer, spans) = Tracer::new(sampler);
        let mut directory = access::Directory::default();
        directory.insert(access::Entity {
            id: ORDERS,
            path: "orders".to_owned(),
            kind: EntityKind::Queue,
            settings: QueueSettings {
                max_delivery_count: 2,
                ..QueueSettings::default()
            },
            replaces: None,
        });
        let (sender, directory) = watch::channel(Arc::new(directory));
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        Self {
            tracer: ConnectionTracer::new(Arc::new(tracer), peer, directory),
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
        self.lock_again(0);
    }

    fn lock_again(&mut self, delivery_count: u32) {
        let message = TracedMessage::of(&message().payload, Sampler::Parent);
        let locked = LockedMessage {
            message: message.expect("sampled"),
            delivery_count,
        };
        self.tracer.locked.insert(TOKEN, locked);
    }

    fn enlist(&mut self, token: u64, operation: core::Operation) {
        self.tracer.begin(&[Command::Enlist {
            request: request(token),
            transaction: TRANSACTION,
            operation: Box::new(operation),
            scope: None,
            refusal: RefusalReport::Reported,
        }]);
    }

    fn discharge(&mut self, fail: bool, result: Result<(), TransactionError>) {
        let request = request(99);
        self.tracer.begin(&[Command::Discharge {
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
        setup.tracer.begin(&[Command::Publish {
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

#[test]
fn the_last_delivery_that_is_abandoned_is_dead_lettered() {
    for (delivery_count, subqueue, result, expected) in [
        (0, Subqueue::Main, Ok(()), None),
        (1, Subqueue::DeadLetter, Ok(()), None),
        (1, Subqueue::Main, Err(core::SettleError::LockLost), None),
        (
            1,
            Subqueue::Main,
            Ok(()),
            Some([Some("MaxDeliveryCountExceeded".to_owned()), None]),
        ),
    ] {
        let mut setup = Setup::new();
        setup.lock_again(delivery_count);
        setup.tracer.begin(&[Command::Settle {
            request: Some(request(1)),
            subqueue: SubqueueId {
                entity: ORDERS,
                subqueue,
            },
            session: None,
            token: TOKEN,
            outcome: Outcome::abandon(Vec::new()),
        }]);
        let request = request(1);
        setup.tracer.end(&Output::Settled { request, result });
        let span = setup.spans.try_recv().expect("it has ended");
        assert_eq!(span.dead_letter, expected, "{delivery_count} {subqueue:?}");
    }
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
        setup.tracer.begin(&[Command::Send {
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
    setup.tracer.begin(&[Command::Send {
        request: request(1),
        entity: ORDERS,
        messages: vec![message()],
    }]);
    setup.tracer.end(&sent(1, Ok(SequenceNumber(1))));
    let span = setup.spans.try_recv().expect("it has ended");
    assert_eq!(span.message.id.as_deref(), Some("71"));
}
