//! Encodings of other implementations that differ from ours and must be read too.

use amqp::performative::{Performative, SenderSettleMode};
use amqp::sasl::SaslFrame;
use amqp::{
    Attach, Begin, Close, DecodeError, DeliveryState, Disposition, Error, Flow, Open, Role, Symbol,
    TargetTerminus, Transfer, Value,
};
use bytes::Bytes;

use crate::{performative, written};

/// A described `list8` of `fields`, which hold `count` values.
fn list(descriptor: u8, count: u8, fields: &[u8]) -> Vec<u8> {
    let size = u8::try_from(fields.len() + 1).unwrap();
    [&[0x00, 0x53, descriptor, 0xc0, size, count], fields].concat()
}

fn accepted(state: &[u8]) -> Result<Option<DeliveryState>, DecodeError> {
    let fields = [b"\x41\x43\x40\x41", state].concat();
    match performative(&list(0x15, 5, &fields))? {
        Performative::Disposition(disposition) => Ok(disposition.state),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_left_out_at_the_end_have_the_standards_defaults() {
    let Ok(Performative::Open(open)) = performative(&list(0x10, 1, b"\xa1\x01c")) else {
        panic!("not an open");
    };
    assert_eq!(
        (open.max_frame_size, open.channel_max, open.idle_time_out),
        (u32::MAX, u16::MAX, None)
    );
    let Ok(Performative::Begin(begin)) = performative(&list(0x11, 4, b"\x40\x43\x43\x43")) else {
        panic!("not a begin");
    };
    assert_eq!((begin.remote_channel, begin.handle_max), (None, u32::MAX));
    let expected = Transfer {
        handle: 5,
        ..Transfer::default()
    };
    assert_eq!(
        performative(&list(0x14, 1, b"\x52\x05")),
        Ok(Performative::Transfer(expected))
    );
    assert_eq!(
        performative(&list(0x13, 4, b"\x40\x43\x52\x01\x43")),
        Ok(Performative::Flow(Flow {
            next_outgoing_id: 1,
            ..Flow::default()
        }))
    );
    assert_eq!(
        performative(&list(0x18, 0, b"")),
        Ok(Performative::Close(Close { error: None }))
    );
}

#[test]
fn the_empty_list_form_is_read() {
    assert_eq!(
        performative(b"\x00\x53\x18\x45"),
        Ok(Performative::Close(Close { error: None }))
    );
    assert_eq!(
        performative(b"\x00\x53\x14\x45"),
        Err(DecodeError::Missing("handle"))
    );
}

#[test]
fn descriptors_may_be_wide_or_symbolic() {
    let close = Ok(Performative::Close(Close { error: None }));
    assert_eq!(
        performative(b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x18\x45"),
        close
    );
    assert_eq!(performative(b"\x00\xa3\x0famqp:close:list\x45"), close);
    assert_eq!(
        performative(b"\x00\xb3\x00\x00\x00\x0famqp:close:list\x45"),
        close
    );
}

#[test]
fn every_form_of_accepted_is_accepted() {
    for state in [
        &b"\x00\x53\x24\x45"[..],
        b"\x00\x53\x24\xc0\x01\x00",
        b"\x00\x53\x24\xd0\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x24\x45",
        b"\x00\xa3\x12amqp:accepted:list\x45",
    ] {
        assert_eq!(
            accepted(state),
            Ok(Some(DeliveryState::Accepted)),
            "{state:02x?}"
        );
    }
}

#[test]
fn short_forms_of_the_other_outcomes_are_read() {
    for (state, expected) in [
        (&b"\x00\x53\x25\x45"[..], DeliveryState::Rejected(None)),
        (
            b"\x00\x53\x25\xc0\x0a\x01\x00\x53\x1d\xc0\x04\x01\xa3\x01c",
            DeliveryState::Rejected(Some(Error {
                condition: Symbol::new("c"),
                description: None,
                info: None,
            })),
        ),
        (b"\x00\x53\x26\x45", DeliveryState::Released),
        (
            b"\x00\x53\x27\x45",
            DeliveryState::Modified {
                delivery_failed: false,
                undeliverable_here: false,
                message_annotations: None,
            },
        ),
        (
            b"\x00\x53\x27\xc0\x03\x02\x40\x41",
            DeliveryState::Modified {
                delivery_failed: false,
                undeliverable_here: true,
                message_annotations: None,
            },
        ),
    ] {
        assert_eq!(accepted(state), Ok(Some(expected)), "{state:02x?}");
    }
}

#[test]
fn a_transactional_state_holds_no_other() {
    let inner = b"\x00\x53\x34\xc0\x04\x01\xa0\x01t";
    let outer = list(0x34, 2, &[&b"\xa0\x01t"[..], inner].concat());
    assert_eq!(
        accepted(&outer),
        Err(DecodeError::UnexpectedDescriptor(0x34))
    );
}

#[test]
fn integers_come_in_every_width_of_their_type() {
    for handle in [&b"\x52\x05"[..], b"\x70\x00\x00\x00\x05"] {
        let expected = Transfer {
            handle: 5,
            ..Transfer::default()
        };
        let read = performative(&list(0x14, 1, handle));
        assert_eq!(read, Ok(Performative::Transfer(expected)));
    }
    let ubyte_for_uint = performative(&list(0x14, 1, b"\x50\x05"));
    assert_eq!(ubyte_for_uint, Err(DecodeError::WrongType("handle")));
}

#[test]
fn one_symbol_stands_for_an_array_of_one() {
    let mechanism = SaslFrame::Mechanisms(vec![Symbol::new("PLAIN")]);
    for fields in [&b"\xa3\x05PLAIN"[..], b"\xe0\x08\x01\xa3\x05PLAIN"] {
        let body = Bytes::from(list(0x40, 1, fields));
        assert_eq!(SaslFrame::decode(&body), Ok(mechanism.clone()));
    }
    let locales = b"\xa1\x01c\x40\x40\x40\x40\xa3\x02en";
    let Ok(Performative::Open(open)) = performative(&list(0x10, 6, locales)) else {
        panic!("not an open");
    };
    assert_eq!(open.outgoing_locales, [Symbol::new("en")]);
}

#[test]
fn an_empty_array_is_as_good_as_null() {
    for array in [&b"\xe0\x02\x00\xa3"[..], b"\xe0\x01\x00", b"\x40"] {
        let fields = [b"\xa1\x01c\x40\x40\x40\x40", array].concat();
        let Ok(Performative::Open(open)) = performative(&list(0x10, 6, &fields)) else {
            panic!("not an open");
        };
        assert!(open.outgoing_locales.is_empty());
    }
}

#[test]
fn mandatory_fields_are_asked_for_by_name() {
    for (bytes, field) in [
        (list(0x10, 1, b"\x40"), "container-id"),
        (list(0x11, 1, b"\x40"), "next-outgoing-id"),
        (list(0x11, 2, b"\x40\x43"), "incoming-window"),
        (list(0x12, 1, b"\xa1\x01n"), "handle"),
        (list(0x12, 2, b"\xa1\x01n\x43"), "role"),
        (list(0x13, 1, b"\x43"), "incoming-window"),
        (list(0x15, 0, b""), "role"),
        (list(0x15, 1, b"\x41"), "first"),
        (list(0x16, 0, b""), "handle"),
        (list(0x17, 1, b"\x00\x53\x1d\x45"), "condition"),
    ] {
        assert_eq!(
            performative(&bytes),
            Err(DecodeError::Missing(field)),
            "{bytes:02x?}"
        );
    }
}

#[test]
fn values_outside_their_choice_are_out_of_range() {
    for (bytes, field) in [
        (
            list(0x12, 4, b"\xa1\x01n\x43\x41\x50\x03"),
            "snd-settle-mode",
        ),
        (
            list(0x12, 5, b"\xa1\x01n\x43\x41\x40\x50\x02"),
            "rcv-settle-mode",
        ),
        (
            list(0x14, 3, &[&b"\x43\x43\xa0\x21"[..], &[0; 33]].concat()),
            "delivery-tag",
        ),
        (
            list(
                0x12,
                6,
                b"\xa1\x01n\x43\x41\x40\x40\x00\x53\x28\xc0\x04\x02\x40\x52\x03",
            ),
            "durable",
        ),
    ] {
        assert_eq!(
            performative(&bytes),
            Err(DecodeError::OutOfRange(field)),
            "{bytes:02x?}"
        );
    }
    let outcome = Bytes::from(list(0x44, 1, b"\x50\x05"));
    assert_eq!(
        SaslFrame::decode(&outcome),
        Err(DecodeError::OutOfRange("code"))
    );
}

#[test]
fn fields_beyond_the_known_ones_are_refused() {
    let bytes = list(0x16, 4, b"\x43\x41\x40\x40");
    assert_eq!(
        performative(&bytes),
        Err(DecodeError::TooMany { count: 4, limit: 3 })
    );
}

#[test]
fn a_delivery_tag_may_have_32_bytes() {
    let bytes = list(0x14, 3, &[&b"\x43\x43\xa0\x20"[..], &[7; 32]].concat());
    let Ok(Performative::Transfer(transfer)) = performative(&bytes) else {
        panic!("not a transfer");
    };
    assert_eq!(transfer.delivery_tag, Some(Bytes::from_static(&[7; 32])));
}

#[test]
fn a_refused_attach_has_neither_source_nor_target() {
    let Ok(Performative::Attach(attach)) = performative(&list(0x12, 3, b"\xa1\x01n\x43\x42"))
    else {
        panic!("not an attach");
    };
    assert_eq!(
        (attach.source, attach.target, attach.role),
        (None, None, Role::Sender)
    );
}

#[test]
fn an_attach_as_a_client_library_writes_it_is_read() {
    let source = list(0x28, 1, b"\xa1\x06/queue");
    let coordinator = list(0x30, 1, b"\xe0\x1a\x01\xa3\x17amqp:local-transactions");
    let fields = [
        &b"\xa1\x01n\x52\x07\x42\x50\x01\x40"[..],
        &source,
        &coordinator,
    ]
    .concat();
    let Ok(Performative::Attach(attach)) = performative(&list(0x12, 7, &fields)) else {
        panic!("not an attach");
    };
    let Attach {
        name,
        handle,
        snd_settle_mode,
        source,
        target,
        ..
    } = *attach;
    assert_eq!((name.as_str(), handle), ("n", 7));
    assert_eq!(snd_settle_mode, Some(SenderSettleMode::Settled));
    assert_eq!(
        source.and_then(|source| source.address),
        Some(Value::from("/queue"))
    );
    let capabilities = vec![Symbol::new("amqp:local-transactions")];
    assert_eq!(
        target.as_deref(),
        Some(&TargetTerminus::Coordinator(capabilities))
    );
}

#[test]
fn an_unknown_performative_is_refused() {
    let error = Err(DecodeError::UnexpectedDescriptor(0x1d));
    assert_eq!(performative(b"\x00\x53\x1d\x45"), error);
    assert_eq!(
        performative(b"\x00\xa3\x01x\x45"),
        Err(DecodeError::UnknownDescriptor)
    );
    assert_eq!(
        performative(b"\x40"),
        Err(DecodeError::WrongType("descriptor"))
    );
    let body = Bytes::from_static(b"\x00\x53\x10\x45");
    assert_eq!(
        SaslFrame::decode(&body),
        Err(DecodeError::UnexpectedDescriptor(0x10))
    );
}

#[test]
fn a_sasl_frame_fills_its_body() {
    let body = Bytes::from_static(b"\x00\x53\x42\xc0\x04\x01\xa0\x01c\x40");
    assert_eq!(SaslFrame::decode(&body), Err(DecodeError::Trailing(1)));
}

#[test]
fn equal_performatives_are_written_alike_whatever_they_were_read_from() {
    let short = performative(&list(0x15, 2, b"\x41\x43")).unwrap();
    let full = Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: 0,
        last: None,
        settled: false,
        state: None,
        batchable: false,
    });
    assert_eq!(
        written(|out| short.encode(out)),
        written(|out| full.encode(out))
    );
}

#[test]
fn an_open_and_a_begin_are_written_with_their_numbers_explicit() {
    let open = Open {
        container_id: "c".to_owned(),
        hostname: None,
        max_frame_size: 65_536,
        channel_max: 4_999,
        idle_time_out: None,
        outgoing_locales: vec![],
        incoming_locales: vec![],
        offered_capabilities: vec![],
        desired_capabilities: vec![],
        properties: None,
    };
    assert_eq!(
        written(|out| Performative::Open(Box::new(open)).encode(out)),
        list(
            0x10,
            10,
            b"\xa1\x01c\x40\x70\x00\x01\x00\x00\x60\x13\x87\x40\x40\x40\x40\x40\x40"
        )
    );
    let begin = Begin {
        remote_channel: Some(1),
        next_outgoing_id: 1,
        incoming_window: 0,
        outgoing_window: 256,
        handle_max: 255,
        offered_capabilities: vec![],
        desired_capabilities: vec![],
        properties: None,
    };
    assert_eq!(
        written(|out| Performative::Begin(Box::new(begin)).encode(out)),
        list(
            0x11,
            8,
            b"\x60\x00\x01\x52\x01\x43\x70\x00\x00\x01\x00\x52\xff\x40\x40\x40"
        )
    );
}
