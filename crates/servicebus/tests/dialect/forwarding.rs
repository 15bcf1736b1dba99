//! Forwarding over the wire: the messages at the target, and the refusal of receivers at the
//! source.

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Error, Symbol, Value};
use broker::{ForwardError, QueueSettings};

use crate::tracking::text;
use crate::world::{World, message, receiver};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;

fn world() -> World {
    let mut world = World::new();
    world.create("end", QueueSettings::default());
    world.create(
        "start",
        QueueSettings {
            forward_to: Some("End".to_owned()),
            ..QueueSettings::default()
        },
    );
    world.create(
        "Mortal",
        QueueSettings {
            forward_dead_lettered_messages_to: Some("end".to_owned()),
            ..QueueSettings::default()
        },
    );
    world
}

#[test]
fn a_forwarded_message_tells_its_first_number_and_has_a_new_one() {
    let mut world = world();
    let (_, direct) = world.sender("end");
    world.send(direct, &message("direct"));
    let (_, sender) = world.sender("start");
    world.send(sender, &message("hello"));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    let receiver = world.receiver("end", UNSETTLED, 5);
    let received = world.received(receiver);
    let long = |number| Some(Value::Long(number));
    assert_eq!(received[1].body(), message("hello"));
    assert_eq!(received[1].annotation("x-opt-sequence-number"), long(2));
    assert_eq!(
        received[1].annotation("x-opt-enqueue-sequence-number"),
        long(1)
    );
    assert_eq!(received[1].annotation("x-opt-deadletter-source"), None);
}

#[test]
fn a_forwarded_dead_letter_names_the_queue_it_left_in_lower_case() {
    let mut world = world();
    world.enqueue("mortal", &message("doomed"));
    let receiver = world.receiver("mortal", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    let rejected = DeliveryState::Rejected(Some(Error {
        condition: Symbol::new("com.microsoft:dead-letter"),
        description: None,
        info: None,
    }));
    world.dispose(&received, rejected, false);
    let receiver = world.receiver("end", UNSETTLED, 5);
    let received = world.received(receiver).pop().expect("the dead letter");
    let source = received.annotation("x-opt-deadletter-source");
    assert_eq!(source, Some(Value::String("mortal".into())));
}

#[test]
fn a_receiver_at_a_source_is_refused() {
    let mut world = world();
    for address in ["start", "mortal/$DeadLetterQueue"] {
        let error = world.refusal(receiver(address, UNSETTLED));
        assert_eq!(error.condition.as_str(), "amqp:not-allowed", "{address}");
        let expected =
            "Cannot create a message receiver on an entity with auto-forwarding enabled.";
        assert_eq!(text(&error), expected);
    }
    world.receiver("start/$Transfer/$DeadLetterQueue", UNSETTLED, 1);
    world.receiver("mortal", UNSETTLED, 1);
}

#[test]
fn a_failed_forward_has_the_condition_as_reason_and_a_sentence_as_description() {
    let destination = || "end".to_owned();
    let check = |error: ForwardError, reason: &str, description: &str| {
        let said = servicebus::describe_forward_error(&error);
        assert_eq!((&*said.reason, &*said.description), (reason, description));
    };
    check(
        ForwardError::NotFound {
            destination: destination(),
        },
        "amqp:not-found",
        "The transfer destination entity does not exist.",
    );
    check(
        ForwardError::Subscription {
            destination: destination(),
        },
        "amqp:not-allowed",
        "'end' is a subscription: only its topic writes to it.",
    );
    check(
        ForwardError::QuotaExceeded {
            destination: destination(),
            size: 3,
            limit: 4,
        },
        "amqp:resource-limit-exceeded",
        "'end' does not take the message: the entity holds 3 bytes of 4.",
    );
    check(
        ForwardError::TooLarge {
            destination: destination(),
            size: 5,
            limit: 4,
        },
        "amqp:link:message-size-exceeded",
        "'end' does not take the message: a message of 5 bytes is larger than 4.",
    );
    check(
        ForwardError::TooManyHops { limit: 4 },
        "MaxTransferHopCountExceeded",
        "The message was forwarded more than 4 times.",
    );
    check(
        ForwardError::SessionRequired,
        "Session id is null.",
        "Session enabled entity doesn't allow a message whose session identifier is null.",
    );
}

#[test]
fn a_message_for_a_missing_destination_says_so_in_the_transfer_dead_letter_queue() {
    let mut world = world();
    world.create(
        "lost",
        QueueSettings {
            forward_to: Some("nowhere".to_owned()),
            ..QueueSettings::default()
        },
    );
    world.enqueue("lost", &message("hello"));
    let receiver = world.receiver("lost/$Transfer/$DeadLetterQueue", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    let text = |text: &str| Some(Value::String(text.into()));
    let reason = received.application_property("DeadLetterReason");
    let description = received.application_property("DeadLetterErrorDescription");
    assert_eq!(reason, text("amqp:not-found"));
    assert_eq!(
        description,
        text("The transfer destination entity does not exist.")
    );
}
