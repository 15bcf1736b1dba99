//! Which rule decides, and which sessions and ids it compares.

use broker::{
    Command, FaultDescription, FaultMatch, FaultOperation, FaultRule, NamespaceAnswer,
    NamespaceOrder, Output, ReceiveMode, SendError, Wall,
};
use bytes::Bytes;
use store::SequenceNumber;

use super::{BUSY, PLACE, World, about, counts, replace, rule, sending, under, world};
use crate::world::request;

fn named(name: &str, matches: FaultMatch, effect: broker::FaultEffect) -> FaultRule {
    FaultRule {
        name: name.to_owned(),
        ..rule(matches, effect)
    }
}

/// What each rule has matched and injected.
fn all_counts(world: &mut World) -> Vec<(u64, u64)> {
    let listed = about(world, NamespaceOrder::ListFaults("default".to_owned()));
    let Ok(NamespaceAnswer::Faults(faults)) = listed else {
        panic!("{listed:?}");
    };
    let count = |it: FaultDescription| (it.matched, it.injected);
    faults.into_iter().map(count).collect()
}

#[test]
fn the_first_rule_that_has_an_operation_fail_decides_and_those_after_it_do_not_count() {
    let matches = |skip, times| FaultMatch {
        operations: vec![FaultOperation::Send],
        skip,
        times: Some(times),
        ..FaultMatch::default()
    };
    let timeout = broker::FaultEffect::Refuse(broker::InjectedError::Timeout);
    let rules = vec![
        named("busy", matches(1, 2), BUSY),
        named("late", matches(1, 1), timeout),
    ];
    let mut world = world();
    replace(&mut world, "default", rules).unwrap();
    let sent = (0..5).map(|_| super::send(&mut world).expect("it is answered"));
    let injected = |error| Err(SendError::Injected(error));
    let expected = [
        Ok(()),
        injected(broker::InjectedError::ServerBusy),
        injected(broker::InjectedError::ServerBusy),
        injected(broker::InjectedError::Timeout),
        Ok(()),
    ];
    assert_eq!(sent.collect::<Vec<_>>(), expected);
    // The second one has not counted the two that the first one had fail.
    assert_eq!(all_counts(&mut world), [(5, 2), (3, 1)]);
}

#[test]
fn a_session_is_compared_in_every_operation_that_names_one_whatever_its_letter_case() {
    let receive = |session: Option<&'static str>| Command::ReceiveDeferred {
        request: request(4),
        subqueue: PLACE,
        session: session.map(|id| Bytes::from_static(id.as_bytes())),
        numbers: vec![SequenceNumber(1)],
        mode: ReceiveMode::PeekLock,
        max_bytes: 1_000,
    };
    let delete = |session: Option<&'static str>| Command::DeleteMessages {
        request: request(4),
        subqueue: PLACE,
        session: session.map(|id| Bytes::from_static(id.as_bytes())),
        enqueued_before: Wall(u64::MAX),
        count: 1,
    };
    let of_session = FaultMatch {
        session: Some("Order-7".to_owned()),
        ..FaultMatch::default()
    };
    let mut world = under(of_session, BUSY);
    for command in [receive(None), receive(Some("other")), delete(None)] {
        world.turn(command);
    }
    assert_eq!(counts(&mut world), (0, 0));
    for command in [
        receive(Some("order-7")),
        delete(Some("ORDER-7")),
        sending(Some("oRDER-7")),
    ] {
        world.turn(command);
    }
    assert_eq!(counts(&mut world), (3, 3));
}

#[test]
fn a_message_id_is_compared_as_its_text_whatever_its_type() {
    let uuid = b"\x98\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
    for (encoded, text) in [
        (&b"\x53\x07"[..], "7"),
        (&uuid[..], "01234567-89ab-cdef-0123-456789abcdef"),
    ] {
        for (wanted, is_refused) in [(text, true), ("other", false)] {
            let of_id = FaultMatch {
                message_id: Some(wanted.to_owned()),
                ..FaultMatch::default()
            };
            let mut world = under(of_id, BUSY);
            let mut command = sending(None);
            let Command::Send { messages, .. } = &mut command else {
                panic!("{command:?}");
            };
            messages[0].message_id = Some(Bytes::copy_from_slice(encoded));
            let said = world.turn(command);
            let refused = matches!(&said[..], [Output::Sent { result: Err(_), .. }]);
            assert_eq!(refused, is_refused, "{wanted}: {said:?}");
        }
    }
}
