//! Evaluating a typical filter allocates the list of the message's properties and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use amqp::Value;
use amqp::message::{Properties, descriptor, encode_map_section};
use bytes::BytesMut;
use filter::{Environment, Facts, Message, Parameters, SqlFilter};

#[test]
fn a_typical_filter_allocates_once_for_a_message() {
    let mut out = BytesMut::new();
    let properties = Properties {
        subject: Some("order".to_owned()),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let user = [
        (Value::from("Total"), Value::Int(250)),
        (Value::from("region"), Value::from("us")),
    ];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &user);
    let text =
        "sys.Label = 'order' AND total > 100 AND region IN ('eu', 'us') AND region LIKE 'u%'";
    let filter = SqlFilter::parse(text, &Parameters::NONE).unwrap();
    let mut matched = None;
    let allocated = allocation_counter::measure(|| {
        let message = Message::read(&out, Facts::default()).unwrap();
        for _ in 0..10 {
            matched = filter.evaluate(&message, Environment::default()).unwrap();
        }
    });
    assert_eq!(matched, Some(true));
    assert_eq!(allocated.count_total, 1);
}
