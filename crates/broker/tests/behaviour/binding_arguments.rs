//! Arguments of bindings: what all of them may take of memory together.
//! (docs/spec/rabbitmq.md#8.1)

use amqp::Value;
use broker::{
    Answer, Binding, BindingDestination, BrokerSettings, EntityError, MAX_BINDING_ARGUMENT_BYTES,
    Order, Output, QueueSettings, RouterError, RouterOrder,
};

use crate::world::{World, administer, request};

/// The text of one argument, in bytes.
const TEXT: usize = 16_000;
/// An AMQP map of one text under the name `note`.
const ARGUMENTS: usize = 9 + 6 + 5 + TEXT;
/// How many bindings with such arguments there can be.
const MOST: usize = MAX_BINDING_ARGUMENT_BYTES / ARGUMENTS;

#[test]
fn bindings_are_refused_while_all_their_arguments_take_too_much() {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    for key in 0..MOST {
        assert_eq!(order(&mut world, bind(key)), Ok(()));
    }
    let refusal = RouterError::TooLong {
        limit: MAX_BINDING_ARGUMENT_BYTES,
        what: "the arguments of all bindings together",
    };
    assert_eq!(order(&mut world, bind(MOST)), Err(refusal.clone()));
    assert_eq!(order(&mut world, bind(0)), Ok(()), "it is there already");
    assert_eq!(order(&mut world, unbind(0)), Ok(()));
    assert_eq!(order(&mut world, bind(MOST)), Ok(()));
    world.restart();
    assert_eq!(order(&mut world, bind(0)), Err(refusal));
}

fn bind(key: usize) -> RouterOrder {
    RouterOrder::Bind(Box::new(binding(key)))
}

fn unbind(key: usize) -> RouterOrder {
    RouterOrder::Unbind(Box::new(binding(key)))
}

fn binding(key: usize) -> Binding {
    Binding {
        source: "amq.direct".to_owned(),
        destination: BindingDestination::Entity("q".to_owned()),
        key: key.to_string(),
        arguments: vec![("note".to_owned(), Value::String("x".repeat(TEXT)))],
    }
}

fn order(world: &mut World, order: RouterOrder) -> Result<(), RouterError> {
    let said = world.turn(administer(request(1), Order::Router(order)));
    match said.as_slice() {
        [Output::Administered { result, .. }] => match &**result {
            Ok(Answer::Router(_)) => Ok(()),
            Err(EntityError::Router(error)) => Err(error.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
