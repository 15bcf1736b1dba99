//! Rules for messages that were handed out: by their ids, and by what they say.

use broker::{
    Command, FaultEffect, FaultMatch, FaultOperation, Incoming, InjectedError, LockToken, Outcome,
    Output, ReceiveMode, RequestError, SettleError,
};
use bytes::Bytes;
use store::SequenceNumber;

use super::{BUSY, PLACE, World, counts, lock, replace, request, rule, settle, under, world};
use crate::world::{QUEUE, attach, receiver};

const REFUSED: Result<(), SettleError> = Err(SettleError::Injected(InjectedError::ServerBusy));

fn id(id: &str) -> FaultMatch {
    FaultMatch {
        message_id: Some(id.to_owned()),
        ..FaultMatch::default()
    }
}

fn completions_of(message_id: &str) -> FaultMatch {
    FaultMatch {
        operations: vec![FaultOperation::Complete],
        ..id(message_id)
    }
}

/// A message with an encoded id.
fn message(id: &[u8]) -> Incoming {
    let size = u8::try_from(id.len() + 1).unwrap();
    let head = [0x00, 0x53, 0x73, 0xc0, size, 1];
    Incoming {
        payload: [&head[..], id, b"\x00\x53\x75\xa0\x01x"].concat().into(),
        message_id: Some(Bytes::copy_from_slice(id)),
        ..Incoming::default()
    }
}

/// Sends messages with these encoded ids, and takes them with a lock each.
fn lock_all(world: &mut World, ids: &[&[u8]]) -> Vec<LockToken> {
    let messages = ids.iter().map(|id| message(id)).collect();
    let send = Command::Send {
        request: request(2),
        entity: QUEUE,
        messages,
    };
    let credit = Command::Credit {
        receiver: receiver(1),
        limit: u32::try_from(ids.len()).unwrap(),
        drain: false,
    };
    let mut said = world.turn_with(vec![send, attach(1), credit]);
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    let tokens = said.into_iter().filter_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    });
    let tokens: Vec<_> = tokens.collect();
    assert_eq!(tokens.len(), ids.len());
    tokens
}

#[test]
fn the_completion_of_one_message_fails() {
    let mut world = under(completions_of("b"), BUSY);
    let tokens = lock_all(&mut world, &[b"\xa1\x01a", b"\xa1\x01b", b"\xa1\x01c"]);
    let settled = tokens
        .iter()
        .map(|token| settle(&mut world, *token, Outcome::Complete));
    let settled: Vec<_> = settled.collect();
    assert_eq!(settled, [Ok(()), REFUSED, Ok(())]);
    assert_eq!(counts(&mut world), (1, 1));
}

#[test]
fn ids_that_are_no_texts_fit_as_a_trace_shows_them() {
    let uuid: &[u8] = b"\x98\x00\x01\x02\xff\0\0\0\0\0\0\0\0\0\0\0\x10";
    for (wanted, fits) in [
        ("7", [true, false, false]),
        ("000102ff-0000-0000-0000-000000000010", [false, true, false]),
        ("01ab", [false, false, true]),
    ] {
        let mut world = under(completions_of(wanted), BUSY);
        let tokens = lock_all(&mut world, &[b"\x53\x07", uuid, b"\xa0\x02\x01\xab"]);
        let settled = tokens.iter().map(|token| {
            let settled = settle(&mut world, *token, Outcome::Complete);
            settled == REFUSED
        });
        assert_eq!(settled.collect::<Vec<_>>(), fits, "{wanted}");
    }
}

#[test]
fn a_condition_fits_settlements_by_what_their_messages_say() {
    for (filter, expected) in [
        ("sys.MessageId LIKE 'm%'", REFUSED),
        ("sys.MessageId LIKE 'n%'", Ok(())),
    ] {
        let matches = FaultMatch {
            operations: vec![FaultOperation::Complete, FaultOperation::Abandon],
            filter: Some(filter.to_owned()),
            ..FaultMatch::default()
        };
        let mut world = under(matches, BUSY);
        let token = lock(&mut world);
        assert_eq!(settle(&mut world, token, Outcome::Complete), expected);
    }
}

#[test]
fn what_an_abandoned_message_says_anew_counts() {
    let red = FaultMatch {
        operations: vec![FaultOperation::Complete],
        filter: Some("color = 'red'".to_owned()),
        ..FaultMatch::default()
    };
    let mut world = under(red, BUSY);
    let token = lock(&mut world);
    let changes = vec![("color".to_owned(), Bytes::from_static(b"\xa1\x03red"))];
    assert_eq!(settle(&mut world, token, Outcome::abandon(changes)), Ok(()));
    let mut said = world.turn(Command::Credit {
        receiver: receiver(1),
        limit: 2,
        drain: false,
    });
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    let token = said.iter().find_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    });
    let token = token.expect("it is delivered again");
    assert_eq!(settle(&mut world, token, Outcome::Complete), REFUSED);
}

#[test]
fn a_renewal_of_several_locks_is_about_each_of_their_messages() {
    for (wanted, fits) in [("b", true), ("c", false)] {
        let matches = FaultMatch {
            operations: vec![FaultOperation::Renew],
            ..id(wanted)
        };
        let mut world = under(matches, BUSY);
        let tokens = lock_all(&mut world, &[b"\xa1\x01a", b"\xa1\x01b"]);
        let said = world.turn(Command::Renew {
            request: request(4),
            subqueue: PLACE,
            tokens,
        });
        let refused = RequestError::Injected(InjectedError::ServerBusy);
        let [Output::Renewed { result, .. }] = &said[..] else {
            panic!("{said:?}");
        };
        assert_eq!(result.as_ref().err() == Some(&refused), fits, "{wanted}");
    }
}

#[test]
fn a_deferred_message_is_known_by_its_number() {
    let matches = FaultMatch {
        operations: vec![FaultOperation::ReceiveDeferred],
        ..id("m")
    };
    let mut world = under(matches, BUSY);
    let token = lock(&mut world);
    let changes = Vec::new();
    assert_eq!(
        settle(&mut world, token, Outcome::Defer { changes }),
        Ok(())
    );
    let said = world.turn(Command::ReceiveDeferred {
        request: request(4),
        subqueue: PLACE,
        session: None,
        numbers: vec![SequenceNumber::FIRST],
        mode: ReceiveMode::PeekLock,
        max_bytes: 1_000,
    });
    assert!(
        matches!(&said[..], [Output::Deferred { result: Err(_), .. }]),
        "{said:?}"
    );
}

#[test]
fn the_lock_of_one_message_is_lost() {
    let mut world = under(id("b"), FaultEffect::LoseLock);
    let tokens = lock_all(&mut world, &[b"\xa1\x01a", b"\xa1\x01b"]);
    let settled = tokens
        .iter()
        .map(|token| settle(&mut world, *token, Outcome::Complete));
    let settled: Vec<_> = settled.collect();
    assert_eq!(settled, [Ok(()), Err(SettleError::LockLost)]);
    world.audit();
}

#[test]
fn a_rule_knows_the_messages_that_were_handed_out_while_it_was_there() {
    let mut world = world();
    let token = lock(&mut world);
    let rules = || vec![rule(completions_of("m"), BUSY)];
    replace(&mut world, "default", rules()).unwrap();
    assert_eq!(settle(&mut world, token, Outcome::Complete), Ok(()));
    assert_eq!(counts(&mut world), (0, 0));
}
