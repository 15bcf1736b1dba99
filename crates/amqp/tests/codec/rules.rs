//! The docs/spec/amqp.md#rule-2 and #rule-3, on which clients that decode by fixed offsets depend.

use amqp::message::{Header, Properties, descriptor, encode_map_section};
use amqp::performative::Performative;
use amqp::sasl::SaslFrame;
use amqp::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, End, Error, Flow, Open, Role, Source,
    Symbol, Target, TargetTerminus, Transfer, Value,
};
use bytes::Bytes;
use proptest::prelude::*;

use crate::{generate, written};

/// How many fields the list of a composite type has, by its descriptor.
fn full_length(descriptor: u8) -> Option<u32> {
    Some(match descriptor {
        0x10 => 10,
        0x11 => 8,
        0x12 => 14,
        0x13 | 0x14 | 0x28 => 11,
        0x15 => 6,
        0x16 | 0x1d | 0x27 | 0x41 => 3,
        0x17 | 0x18 | 0x25 | 0x30 | 0x33 | 0x40 | 0x42 | 0x43 => 1,
        0x23 | 0x34 | 0x44 => 2,
        0x24 | 0x26 => 0,
        0x29 => 7,
        0x70 => 5,
        0x73 => 13,
        _ => return None,
    })
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Walks one encoded value and everything inside, holding the two rules against it.
fn walk(bytes: &mut &[u8]) {
    let code = take(bytes, 1)[0];
    match code {
        0x00 => walk_described(bytes),
        0x45 => panic!("rule 3: an empty list form was written"),
        0xc0 | 0xc1 | 0xd0 | 0xd1 => {
            let (count, mut items) = compound(code, bytes);
            (0..count).for_each(|_| walk(&mut items));
            assert!(items.is_empty());
        }
        0xe0 | 0xf0 => {
            compound(code, bytes);
        }
        0xa0..=0xbf => {
            let width = if code < 0xb0 { 1 } else { 4 };
            let size = number(take(bytes, width));
            take(bytes, size as usize);
        }
        fixed => {
            let width = [0, 1, 2, 4, 8, 16][usize::from(fixed >> 4) - 4];
            take(bytes, width);
        }
    }
}

/// The count and the items of a list, map or array.
fn compound<'a>(code: u8, bytes: &mut &'a [u8]) -> (u32, &'a [u8]) {
    let width = if code & 0x10 == 0 { 1 } else { 4 };
    let size = number(take(bytes, width));
    let mut items = take(bytes, size as usize);
    let count = number(take(&mut items, width));
    (count, items)
}

fn walk_described(bytes: &mut &[u8]) {
    assert_eq!(
        take(bytes, 1),
        [0x53],
        "rule 2: a descriptor is not a smallulong"
    );
    let descriptor = take(bytes, 1)[0];
    if let Some(expected) = full_length(descriptor) {
        assert!(
            matches!(bytes[0], 0xc0 | 0xd0),
            "rule 2: {descriptor:#x} is not a list8 or list32"
        );
        let mut list = &bytes[1..];
        let (count, _) = compound(bytes[0], &mut list);
        assert_eq!(count, expected, "rule 3: fields of {descriptor:#x}");
    }
    walk(bytes);
}

fn check(bytes: &Bytes) {
    let mut rest = &bytes[..];
    walk(&mut rest);
    assert!(rest.is_empty());
}

fn check_performative(performative: &Performative) {
    check(&written(|out| performative.encode(out)));
}

/// Every performative with as little in it as can be.
fn sparse() -> Vec<Performative> {
    let open = Open {
        container_id: String::new(),
        hostname: None,
        max_frame_size: 0,
        channel_max: 0,
        idle_time_out: None,
        outgoing_locales: vec![],
        incoming_locales: vec![],
        offered_capabilities: vec![],
        desired_capabilities: vec![],
        properties: None,
    };
    let begin = Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 0,
        outgoing_window: 0,
        handle_max: 0,
        offered_capabilities: vec![],
        desired_capabilities: vec![],
        properties: None,
    };
    let attach = Attach {
        name: String::new(),
        handle: 0,
        role: Role::Sender,
        snd_settle_mode: None,
        rcv_settle_mode: None,
        source: Some(Box::default()),
        target: Some(Box::new(TargetTerminus::Node(Target::default()))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: None,
        max_message_size: None,
        offered_capabilities: vec![],
        desired_capabilities: vec![],
        properties: None,
    };
    let disposition = Disposition {
        role: Role::Sender,
        first: 0,
        last: None,
        settled: false,
        state: None,
        batchable: false,
    };
    vec![
        Performative::Open(Box::new(open)),
        Performative::Begin(Box::new(begin)),
        Performative::Attach(Box::new(attach)),
        Performative::Flow(Flow::default()),
        Performative::Transfer(Transfer::default()),
        Performative::Disposition(disposition),
        Performative::Detach(Detach {
            handle: 0,
            closed: false,
            error: None,
        }),
        Performative::End(End { error: None }),
        Performative::Close(Close { error: None }),
    ]
}

#[test]
fn rule_2_every_descriptor_is_a_smallulong_and_its_list_a_list8_or_list32() {
    for (performative, descriptor) in sparse().iter().zip(0x10..) {
        let bytes = written(|out| performative.encode(out));
        assert_eq!(bytes[..3], [0x00, 0x53, descriptor]);
        assert_eq!(bytes[3], 0xc0);
    }
    let long = Performative::Close(Close {
        error: Some(Error::new(Symbol::new("c"), "long ".repeat(100))),
    });
    let bytes = written(|out| long.encode(out));
    assert_eq!(bytes[..4], [0x00, 0x53, 0x18, 0xd0]);
    check(&bytes);
}

#[test]
fn rule_2_every_message_section_starts_with_a_smallulong() {
    let header = written(|out| Header::default().encode(out));
    assert_eq!(header[..4], [0x00, 0x53, 0x70, 0xc0]);
    let properties = written(|out| Properties::default().encode(out));
    assert_eq!(properties[..4], [0x00, 0x53, 0x73, 0xc0]);
    for section in [
        descriptor::DELIVERY_ANNOTATIONS,
        descriptor::MESSAGE_ANNOTATIONS,
        descriptor::APPLICATION_PROPERTIES,
        descriptor::FOOTER,
    ] {
        let bytes = written(|out| encode_map_section(out, section, &[]));
        assert_eq!(
            bytes,
            vec![0x00, 0x53, u8::try_from(section).unwrap(), 0xc1, 0x01, 0x00]
        );
    }
}

#[test]
fn rule_3_every_performative_has_all_its_fields_when_nothing_is_set() {
    let lengths = [10, 8, 14, 11, 11, 6, 3, 1, 1];
    for (performative, length) in sparse().iter().zip(lengths) {
        let bytes = written(|out| performative.encode(out));
        assert_eq!(bytes[5], length, "{performative:?}");
        check(&bytes);
    }
}

#[test]
fn rule_3_source_target_and_error_have_all_their_fields() {
    let attach = |source, target| {
        let Performative::Attach(attach) = sparse().swap_remove(2) else {
            panic!("the third is the attach");
        };
        Performative::Attach(Box::new(Attach {
            source,
            target,
            ..*attach
        }))
    };
    let source = Source {
        default_outcome: Some(DeliveryState::Released),
        ..Source::default()
    };
    let coordinator = TargetTerminus::Coordinator(vec![]);
    check_performative(&attach(Some(Box::new(source)), Some(Box::new(coordinator))));
    check_performative(&attach(None, None));
    let error = Error {
        condition: Symbol::new("c"),
        description: None,
        info: None,
    };
    let bytes = written(|out| Performative::End(End { error: Some(error) }).encode(out));
    assert_eq!(
        bytes,
        &b"\x00\x53\x17\xc0\x0c\x01\x00\x53\x1d\xc0\x06\x03\xa3\x01c\x40\x40"[..]
    );
}

#[test]
fn rule_3_header_and_properties_have_all_their_fields() {
    let header = written(|out| Header::default().encode(out));
    assert_eq!(header, &b"\x00\x53\x70\xc0\x06\x05\x40\x40\x40\x40\x40"[..]);
    let properties = written(|out| Properties::default().encode(out));
    assert_eq!(
        properties,
        [&b"\x00\x53\x73\xc0\x0e\x0d"[..], &[0x40; 13]].concat()
    );
}

#[test]
fn rule_3_outcomes_without_fields_are_empty_but_never_the_empty_list_form() {
    for (state, descriptor) in [
        (DeliveryState::Accepted, 0x24),
        (DeliveryState::Released, 0x26),
    ] {
        let transfer = Transfer {
            state: Some(state),
            ..Transfer::default()
        };
        let bytes = written(|out| Performative::Transfer(transfer).encode(out));
        let state = [0x00, 0x53, descriptor, 0xc0, 0x01, 0x00];
        assert!(
            bytes.windows(6).any(|window| window == state),
            "{bytes:02x?}"
        );
    }
}

#[test]
fn mechanisms_are_an_array_also_for_one() {
    let one = SaslFrame::Mechanisms(vec![Symbol::new("PLAIN")]);
    let bytes = written(|out| one.encode(out));
    assert_eq!(
        bytes,
        &b"\x00\x53\x40\xc0\x0b\x01\xe0\x08\x01\xa3\x05PLAIN"[..]
    );
}

proptest! {
    #[test]
    fn rules_2_and_3_hold_for_everything_that_is_written(
        performative in generate::performative(),
        frame in generate::sasl(),
        header in generate::header(),
        properties in generate::properties(),
    ) {
        check_performative(&performative);
        check(&written(|out| frame.encode(out)));
        check(&written(|out| header.encode(out)));
        check(&written(|out| properties.encode(out)));
    }
}

#[test]
fn values_are_walked_whole() {
    // The walker above must notice a list in its empty form; here is one, deep inside.
    let bytes = Bytes::from_static(b"\x00\x53\x77\xc0\x04\x01\x00\x53\x05\x45");
    let caught = std::panic::catch_unwind(|| check(&bytes));
    assert!(caught.is_err());
    check(&written(|out| {
        amqp::encode::value(out, &Value::List(vec![Value::List(vec![])]));
    }));
}
