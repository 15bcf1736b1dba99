//! Generated errors and delivery states.

use amqp::{DeliveryState, Error};
use proptest::option;
use proptest::prelude::*;

use super::{binary, fields, symbol, text};

pub fn error() -> impl Strategy<Value = Error> {
    (symbol(), option::of(text()), option::of(fields())).prop_map(
        |(condition, description, info)| Error {
            condition,
            description: description.map(Into::into),
            info,
        },
    )
}

/// What a receiver may say in the end.
pub fn outcome() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![
        Just(DeliveryState::Accepted),
        option::of(error()).prop_map(DeliveryState::Rejected),
        Just(DeliveryState::Released),
        (any::<bool>(), any::<bool>(), option::of(fields())).prop_map(
            |(delivery_failed, undeliverable_here, message_annotations)| DeliveryState::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations,
            }
        ),
    ]
}

/// The states that exist without transactions.
pub fn plain_state() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![
        4 => outcome(),
        1 => (any::<u32>(), any::<u64>()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received { section_number, section_offset }
        }),
    ]
}

pub fn state() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![
        4 => plain_state(),
        1 => binary().prop_map(|txn_id| DeliveryState::Declared { txn_id }),
        1 => (binary(), option::of(outcome())).prop_map(|(txn_id, outcome)| {
            DeliveryState::Transactional { txn_id, outcome: outcome.map(Box::new) }
        }),
    ]
}
