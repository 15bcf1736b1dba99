//! Generated SASL frames and message sections.

use amqp::Value;
use amqp::message::{Header, Properties};
use amqp::sasl::{Code, SaslFrame};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{binary, symbol, text};

pub fn sasl() -> impl Strategy<Value = SaslFrame> {
    let code = prop::sample::select(vec![
        Code::Ok,
        Code::Auth,
        Code::Sys,
        Code::SysPerm,
        Code::SysTemp,
    ]);
    prop_oneof![
        vec(symbol(), 1..4).prop_map(SaslFrame::Mechanisms),
        (symbol(), option::of(binary()), option::of(text())).prop_map(
            |(mechanism, initial_response, hostname)| SaslFrame::Init {
                mechanism,
                initial_response,
                hostname,
            }
        ),
        binary().prop_map(SaslFrame::Challenge),
        binary().prop_map(SaslFrame::Response),
        (code, option::of(binary())).prop_map(|(code, additional_data)| SaslFrame::Outcome {
            code,
            additional_data
        }),
    ]
}

pub fn header() -> impl Strategy<Value = Header> {
    let count = || option::of(any::<u32>());
    let flag = || option::of(any::<bool>());
    (flag(), option::of(any::<u8>()), count(), flag(), count()).prop_map(
        |(durable, priority, ttl, first_acquirer, delivery_count)| Header {
            durable,
            priority,
            ttl,
            first_acquirer,
            delivery_count,
        },
    )
}

/// An id in any of the types that the standard allows.
fn message_id() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        any::<u64>().prop_map(Value::Ulong),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        binary().prop_map(Value::Binary),
    ]
}

pub fn properties() -> impl Strategy<Value = Properties> {
    let time = || option::of(any::<i64>());
    (
        (
            option::of(message_id()),
            option::of(binary()),
            option::of(text()),
            option::of(text()),
        ),
        (
            option::of(text()),
            option::of(message_id()),
            option::of(symbol()),
            option::of(symbol()),
        ),
        (
            time(),
            time(),
            option::of(text()),
            option::of(any::<u32>()),
            option::of(text()),
        ),
    )
        .prop_map(|(one, two, three)| Properties {
            message_id: one.0,
            user_id: one.1,
            to: one.2.map(Value::String),
            subject: one.3,
            reply_to: two.0.map(Value::String),
            correlation_id: two.1,
            content_type: two.2,
            content_encoding: two.3,
            absolute_expiry_time: three.0,
            creation_time: three.1,
            group_id: three.2,
            group_sequence: three.3,
            reply_to_group_id: three.4,
        })
}
