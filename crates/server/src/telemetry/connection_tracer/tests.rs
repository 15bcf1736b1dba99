//! Spans of what a connection asks for: in transactions, to exchanges, and of deferred messages.

use amqp::Value;
use amqp::message::{descriptor, encode_map_section};
use broker::{
    self as core, ConnectionId, Incoming, Publication, RefusalReport, Subqueue, SubqueueId,
    TransactionError,
};
use bytes::BytesMut;
use store::{NamespaceId, SequenceNumber};
use tokio::sync::watch;

use super::super::exporter::Spans;
use super::*;

const TRANSACTION: TransactionId = TransactionId(7);
const TOKEN: LockToken = LockToken(9);

struct Setup {
    tracer: ConnectionTracer,
    spans: Spans,
    _directory: watch::Sender<Arc<access::Directory>>,
}

impl Setup {
    fn new() -> Self {
        let (tracer, spans) = Tracer::new();
        let directory = Arc::new(access::Directory::default());
        let (sender, directory) = watch::channel(directory);
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
        let context = TraceContext::of_message(&message().payload);
        self.tracer.locked.insert(TOKEN, context.expect("sampled"));
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
    let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let properties = [(Value::from("Diagnostic-Id"), Value::from(context))];
    let mut payload = BytesMut::new();
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
