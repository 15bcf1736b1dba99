//! Rules that no operation can match: they are refused with the member that is wrong.

use broker::{FaultEffect, FaultMatch, FaultOperation};

use super::{BUSY, replace, rule, send, world};

fn check(matches: FaultMatch, effect: FaultEffect, expected: &str) {
    let mut world = world();
    let refused = replace(&mut world, "default", vec![rule(matches, effect)]);
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, format!("fault 'a rule': {expected}"));
    assert_eq!(send(&mut world), Some(Ok(())));
}

fn of(operations: &[FaultOperation]) -> FaultMatch {
    FaultMatch {
        operations: operations.to_vec(),
        ..FaultMatch::default()
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_rule_is_in_force_for_some_time_and_for_some_operations() {
    for until in [4, 5] {
        let matches = FaultMatch {
            from: Some(5),
            until: Some(until),
            ..FaultMatch::default()
        };
        let expected = format!("until: {until} is not after from, which is 5");
        check(matches, BUSY, &expected);
    }
    let never = FaultMatch {
        times: Some(0),
        ..FaultMatch::default()
    };
    check(never, BUSY, "times: 0 is below the minimum of 1");
    let every = FaultMatch {
        every: 0,
        ..FaultMatch::default()
    };
    check(every, BUSY, "every: 0 is below the minimum of 1");
}

#[test]
fn an_entity_is_a_path_and_a_client_has_a_name() {
    let at = |entity: &str| FaultMatch {
        entity: text(entity),
        ..FaultMatch::default()
    };
    for path in ["", "/", "/a", "a/", "a//b"] {
        let expected =
            format!("entity: '{path}' is no path: between its slashes are one or more names");
        check(at(path), BUSY, &expected);
    }
    check(
        at("Orders/$deadLetterQueue"),
        BUSY,
        "entity: 'Orders/$deadLetterQueue': a rule for 'Orders' is for its dead-letter queues too",
    );
    let of_transactions = FaultMatch {
        operations: vec![FaultOperation::Declare, FaultOperation::Commit],
        ..at("orders")
    };
    check(
        of_transactions,
        BUSY,
        "entity: its operations are on no entity: declare, commit",
    );
    for (member, matches) in [
        (
            "client",
            FaultMatch {
                client: text(""),
                ..FaultMatch::default()
            },
        ),
        (
            "key",
            FaultMatch {
                key: text(""),
                ..FaultMatch::default()
            },
        ),
    ] {
        let expected = format!("{member}: '' is empty; it has 1 to 256 bytes");
        check(matches, BUSY, &expected);
    }
}

#[test]
fn a_rule_that_compares_messages_is_for_operations_on_some() {
    let peeks = || of(&[FaultOperation::Peek, FaultOperation::Attach]);
    for (member, matches) in [
        (
            "message-id",
            FaultMatch {
                message_id: text("m"),
                ..peeks()
            },
        ),
        (
            "filter",
            FaultMatch {
                filter: text("color = 'red'"),
                ..peeks()
            },
        ),
    ] {
        let expected = format!(
            "{member}: none of the rule's operations is about messages; those that do \
             are receive, send, schedule, complete, abandon, defer, dead-letter, renew, \
             receive-deferred, publish"
        );
        check(matches, BUSY, &expected);
    }
    let mixed = FaultMatch {
        message_id: text("m"),
        ..of(&[FaultOperation::Peek, FaultOperation::Schedule])
    };
    replace(&mut world(), "default", vec![rule(mixed, BUSY)]).unwrap();
}

#[test]
fn a_rule_that_compares_sessions_is_for_operations_that_name_one() {
    let of_session = |operations: &[FaultOperation]| FaultMatch {
        session: text("s"),
        ..of(operations)
    };
    let expected = "session: none of the rule's operations names a session; those that do are \
                    accept-session, receive, send, schedule, complete, abandon, defer, \
                    dead-letter, receive-deferred, peek, batch-delete, renew-session, \
                    get-session-state, set-session-state, publish";
    let none = [FaultOperation::Renew, FaultOperation::CancelScheduled];
    check(of_session(&none), BUSY, expected);
    let mixed = of_session(&[FaultOperation::Renew, FaultOperation::ReceiveDeferred]);
    replace(&mut world(), "default", vec![rule(mixed, BUSY)]).unwrap();
}

#[test]
fn an_effect_is_possible_for_each_operation_that_a_rule_names() {
    for (operation, effect, scope) in [
        (
            "commit",
            FaultEffect::DelayMs(5),
            "all but attach, attach-receiver, accept-session, declare, commit, rollback",
        ),
        (
            "rollback",
            FaultEffect::ThrottlePerSecond(5),
            "all but attach, attach-receiver, accept-session, declare, commit, rollback",
        ),
        ("send", FaultEffect::DeliverAgain, "only complete"),
        ("receive", FaultEffect::DeliverAgain, "only complete"),
        (
            "attach",
            FaultEffect::DelayAnswerMs(5),
            "all but attach, attach-receiver, accept-session, receive",
        ),
        ("receive", BUSY, "all but receive"),
        (
            "peek",
            FaultEffect::LoseLock,
            "only complete, abandon, defer, dead-letter, renew",
        ),
    ] {
        let named = [
            FaultOperation::Commit,
            FaultOperation::Rollback,
            FaultOperation::Send,
            FaultOperation::Peek,
            FaultOperation::Attach,
            FaultOperation::Receive,
        ];
        let named = named.into_iter().find(|it| it.to_string() == operation);
        let expected =
            format!("operations: {operation} is not possible; the effect is possible for {scope}");
        check(of(&[named.unwrap()]), effect, &expected);
    }
}
