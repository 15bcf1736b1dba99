//! The codec's hot path: the code that runs once or more for every message.

use std::hint::black_box;

use amqp::message::{self, Header, Properties, Sections};
use amqp::performative::Performative;
use amqp::{DeliveryState, Disposition, Flow, Role, Symbol, Transfer, Value};
use bytes::{Bytes, BytesMut};
use criterion::{Criterion, criterion_group, criterion_main};

fn transfer() -> Performative {
    Performative::Transfer(Transfer {
        handle: 3,
        delivery_id: Some(123_456),
        delivery_tag: Some(Bytes::from_static(&[7; 16])),
        message_format: Some(0),
        settled: Some(false),
        ..Transfer::default()
    })
}

fn disposition() -> Performative {
    Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: 123_456,
        last: Some(123_500),
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    })
}

fn flow() -> Performative {
    Performative::Flow(Flow {
        next_incoming_id: Some(1),
        incoming_window: 5000,
        next_outgoing_id: 77_000,
        outgoing_window: 5000,
        handle: Some(3),
        delivery_count: Some(77_000),
        link_credit: Some(1000),
        available: Some(0),
        ..Flow::default()
    })
}

/// A message as a client library sends it: header, annotations, properties, application properties,
/// data.
fn message() -> Bytes {
    let mut out = BytesMut::new();
    Header {
        durable: Some(true),
        ttl: Some(60_000),
        ..Header::default()
    }
    .encode(&mut out);
    let annotation = (Symbol::new("x-opt-partition-key").into(), Value::from("p"));
    message::encode_map_section(
        &mut out,
        message::descriptor::MESSAGE_ANNOTATIONS,
        &[annotation],
    );
    Properties {
        message_id: Some(Value::from("a4e7b1a2-63e7-4b19-8f15-0d37a4f3a3a0")),
        subject: Some("order".to_owned()),
        ..Properties::default()
    }
    .encode(&mut out);
    let property = (Value::from("color"), Value::from("blue"));
    message::encode_map_section(
        &mut out,
        message::descriptor::APPLICATION_PROPERTIES,
        &[property],
    );
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, &[1; 1024]);
    out.freeze()
}

fn encoded(performative: &Performative) -> Bytes {
    let mut out = BytesMut::new();
    performative.encode(&mut out);
    out.freeze()
}

fn performatives(criterion: &mut Criterion) {
    for (name, performative) in [
        ("transfer", transfer()),
        ("disposition", disposition()),
        ("flow", flow()),
    ] {
        let mut out = BytesMut::with_capacity(1024);
        criterion.bench_function(&format!("encode {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&performative).encode(&mut out);
                black_box(out.len())
            });
        });
        let body = encoded(&performative);
        criterion.bench_function(&format!("decode {name}"), |bencher| {
            bencher.iter(|| Performative::decode(&mut black_box(&body).clone()));
        });
    }
}

fn sections(criterion: &mut Criterion) {
    let message = message();
    criterion.bench_function("scan sections", |bencher| {
        bencher.iter(|| Sections::scan(black_box(&message)));
    });
}

criterion_group!(benches, performatives, sections);
criterion_main!(benches);
