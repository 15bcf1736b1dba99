//! Generated performatives.

use amqp::performative::{Performative, ReceiverSettleMode, SenderSettleMode};
use amqp::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, End, Flow, Open, Role,
    TargetTerminus, Transfer,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::state::{error, outcome, plain_state, state};
use super::terminus::{source, symbols, target};
use super::{fields, text};

fn role() -> impl Strategy<Value = Role> {
    any::<bool>().prop_map(|receiver| {
        if receiver {
            Role::Receiver
        } else {
            Role::Sender
        }
    })
}

fn sender_settle_mode() -> impl Strategy<Value = SenderSettleMode> {
    prop_oneof![
        Just(SenderSettleMode::Unsettled),
        Just(SenderSettleMode::Settled),
        Just(SenderSettleMode::Mixed),
    ]
}

fn receiver_settle_mode() -> impl Strategy<Value = ReceiverSettleMode> {
    prop_oneof![
        Just(ReceiverSettleMode::First),
        Just(ReceiverSettleMode::Second)
    ]
}

fn open() -> impl Strategy<Value = Open> {
    (
        (
            text(),
            option::of(text()),
            any::<u32>(),
            any::<u16>(),
            option::of(any::<u32>()),
        ),
        (
            symbols(),
            symbols(),
            symbols(),
            symbols(),
            option::of(fields()),
        ),
    )
        .prop_map(|(one, other)| Open {
            container_id: one.0,
            hostname: one.1,
            max_frame_size: one.2,
            channel_max: one.3,
            idle_time_out: one.4,
            outgoing_locales: other.0,
            incoming_locales: other.1,
            offered_capabilities: other.2,
            desired_capabilities: other.3,
            properties: other.4,
        })
}

fn begin() -> impl Strategy<Value = Begin> {
    (
        (
            option::of(any::<u16>()),
            any::<u32>(),
            any::<u32>(),
            any::<u32>(),
            any::<u32>(),
        ),
        (symbols(), symbols(), option::of(fields())),
    )
        .prop_map(|(one, other)| Begin {
            remote_channel: one.0,
            next_outgoing_id: one.1,
            incoming_window: one.2,
            outgoing_window: one.3,
            handle_max: one.4,
            offered_capabilities: other.0,
            desired_capabilities: other.1,
            properties: other.2,
        })
}

/// An attach whose parts are what the other implementation can express.
fn plain_attach() -> impl Strategy<Value = Attach> {
    attach(outcome().boxed(), target().boxed())
}

fn any_attach() -> impl Strategy<Value = Attach> {
    let coordinator = symbols().prop_map(TargetTerminus::Coordinator);
    attach(state().boxed(), prop_oneof![target(), coordinator].boxed())
}

fn attach(
    state: BoxedStrategy<DeliveryState>,
    target: BoxedStrategy<TargetTerminus>,
) -> impl Strategy<Value = Attach> {
    (
        (text(), any::<u32>(), role()),
        (
            option::of(sender_settle_mode()),
            option::of(receiver_settle_mode()),
        ),
        (option::of(source(state)), option::of(target)),
        (
            any::<bool>(),
            option::of(any::<u32>()),
            option::of(any::<u64>()),
        ),
        (symbols(), symbols(), option::of(fields())),
    )
        .prop_map(|(names, modes, ends, counts, rest)| Attach {
            name: names.0,
            handle: names.1,
            role: names.2,
            snd_settle_mode: modes.0,
            rcv_settle_mode: modes.1,
            source: ends.0.map(Box::new),
            target: ends.1.map(Box::new),
            unsettled: None,
            incomplete_unsettled: counts.0,
            initial_delivery_count: counts.1,
            max_message_size: counts.2,
            offered_capabilities: rest.0,
            desired_capabilities: rest.1,
            properties: rest.2,
        })
}

fn flow() -> impl Strategy<Value = Flow> {
    let count = || option::of(any::<u32>());
    (
        (count(), any::<u32>(), any::<u32>(), any::<u32>()),
        (count(), count(), count(), count()),
        (any::<bool>(), any::<bool>(), option::of(fields())),
    )
        .prop_map(|(session, link, rest)| Flow {
            next_incoming_id: session.0,
            incoming_window: session.1,
            next_outgoing_id: session.2,
            outgoing_window: session.3,
            handle: link.0,
            delivery_count: link.1,
            link_credit: link.2,
            available: link.3,
            drain: rest.0,
            echo: rest.1,
            properties: rest.2,
        })
}

fn transfer(state: impl Strategy<Value = DeliveryState>) -> impl Strategy<Value = Transfer> {
    let tag = vec(any::<u8>(), 0..=32).prop_map(Bytes::from);
    (
        (
            any::<u32>(),
            option::of(any::<u32>()),
            option::of(tag),
            option::of(any::<u32>()),
        ),
        (
            option::of(any::<bool>()),
            any::<bool>(),
            option::of(receiver_settle_mode()),
        ),
        (
            option::of(state),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
        ),
    )
        .prop_map(|(one, two, three)| Transfer {
            handle: one.0,
            delivery_id: one.1,
            delivery_tag: one.2,
            message_format: one.3,
            settled: two.0,
            more: two.1,
            rcv_settle_mode: two.2,
            state: three.0,
            resume: three.1,
            aborted: three.2,
            batchable: three.3,
        })
}

fn disposition(state: impl Strategy<Value = DeliveryState>) -> impl Strategy<Value = Disposition> {
    let range = (any::<u32>(), option::of(any::<u32>()));
    (
        role(),
        range,
        any::<bool>(),
        option::of(state),
        any::<bool>(),
    )
        .prop_map(
            |(role, (first, last), settled, state, batchable)| Disposition {
                role,
                first,
                last,
                settled,
                state,
                batchable,
            },
        )
}

fn closing() -> impl Strategy<Value = Performative> {
    (0..3u8, any::<u32>(), any::<bool>(), option::of(error())).prop_map(
        |(kind, handle, closed, error)| match kind {
            0 => Performative::Detach(Detach {
                handle,
                closed,
                error,
            }),
            1 => Performative::End(End { error }),
            _ => Performative::Close(Close { error }),
        },
    )
}

/// Any performative that the other implementation can express too.
pub fn plain_performative() -> impl Strategy<Value = Performative> {
    performatives(plain_state().boxed(), plain_attach().boxed())
}

pub fn performative() -> impl Strategy<Value = Performative> {
    performatives(state().boxed(), any_attach().boxed())
}

fn performatives(
    state: BoxedStrategy<DeliveryState>,
    attach: BoxedStrategy<Attach>,
) -> impl Strategy<Value = Performative> {
    prop_oneof![
        open().prop_map(|open| Performative::Open(Box::new(open))),
        begin().prop_map(|begin| Performative::Begin(Box::new(begin))),
        attach.prop_map(|attach| Performative::Attach(Box::new(attach))),
        flow().prop_map(Performative::Flow),
        transfer(state.clone()).prop_map(Performative::Transfer),
        disposition(state).prop_map(Performative::Disposition),
        closing(),
    ]
}
