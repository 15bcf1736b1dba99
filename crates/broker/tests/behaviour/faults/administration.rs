//! Rules for orders of administrators, for the rules of subscriptions and for publications.

use broker::{
    Answer, Command, ConnectionId, EntityDescription, EntityError, EntityPath, FaultEffect,
    FaultMatch, FaultOperation, InjectedError, NamespaceOrder, Order, Output, Publication,
    PublishError, RequestId, RuleDescription, RuleError,
};
use store::NamespaceId;

use super::{BUSY, World, about, counts, under};
use crate::world::{QUEUE, request};

const INJECTED: InjectedError = InjectedError::ServerBusy;

fn of(operation: FaultOperation, entity: &str) -> FaultMatch {
    FaultMatch {
        operations: vec![operation],
        entity: Some(entity.to_owned()),
        ..FaultMatch::default()
    }
}

fn order(
    world: &mut World,
    connection: ConnectionId,
    order: Order,
) -> Option<Result<Answer, EntityError>> {
    let said = world.turn(Command::Administer {
        request: RequestId {
            connection,
            token: 1,
        },
        namespace: NamespaceId(0),
        order: Box::new(order),
    });
    said.into_iter().find_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    })
}

fn client(world: &mut World, of_client: Order) -> Option<Result<Answer, EntityError>> {
    order(world, request(1).connection, of_client)
}

fn create(path: &str) -> Order {
    Order::Create {
        path: EntityPath::Queue(path.to_owned()),
        description: Box::new(EntityDescription::default()),
        rules: None,
    }
}

fn remove(path: &str) -> Order {
    let path = path.to_owned();
    Order::Remove { path }
}

#[test]
fn orders_about_entities_are_refused_by_path() {
    let mut world = under(of(FaultOperation::CreateEntity, "New"), BUSY);
    let refused = Some(Err(EntityError::Injected(INJECTED)));
    assert_eq!(client(&mut world, create("new")), refused);
    let missing = Some(Err(EntityError::NotFound));
    assert_eq!(
        client(&mut world, remove("new")),
        missing,
        "it was not made"
    );
    assert!(matches!(client(&mut world, create("other")), Some(Ok(_))));

    let mut world = under(of(FaultOperation::DeleteEntity, "q"), BUSY);
    assert_eq!(client(&mut world, remove("q")), refused);
    let mut world = under(of(FaultOperation::UpdateEntity, "q"), BUSY);
    let update = Order::Update {
        entity: QUEUE,
        description: Box::new(EntityDescription::default()),
    };
    assert_eq!(client(&mut world, update), refused);
    assert_eq!(counts(&mut world), (1, 1));
}

#[test]
fn an_order_can_be_carried_out_and_its_answer_lost() {
    let lost = FaultEffect::Disconnect(broker::DisconnectTime::After);
    let mut world = under(of(FaultOperation::CreateEntity, "new"), lost);
    assert_eq!(client(&mut world, create("new")), None);
    let there = order(&mut world, ConnectionId::SERVER, remove("new"));
    assert_eq!(there, Some(Ok(Answer::Done)));
}

#[test]
fn what_the_server_orders_and_what_is_about_namespaces_is_left_alone() {
    let mut world = under(FaultMatch::default(), BUSY);
    let made = order(&mut world, ConnectionId::SERVER, create("new"));
    assert!(matches!(made, Some(Ok(_))), "{made:?}");
    about(&mut world, NamespaceOrder::ListFaults("default".to_owned())).unwrap();
}

#[test]
fn rules_of_subscriptions_are_refused() {
    let mut world = under(FaultMatch::default(), BUSY);
    let refused = Some(Err(EntityError::Injected(INJECTED)));
    let rule = Order::CreateRule {
        subscription: "t/Subscriptions/s".to_owned(),
        rule: Box::new(RuleDescription::default()),
    };
    assert_eq!(client(&mut world, rule), refused);
    let said = world.turn(Command::AddRule {
        request: request(1),
        entity: QUEUE,
        rule: Box::new(RuleDescription::default()),
    });
    let error = RuleError::Injected(INJECTED);
    assert!(
        matches!(&said[..], [Output::RuleChanged { result: Err(found), .. }] if *found == error),
        "{said:?}"
    );
}

#[test]
fn publications_are_refused_by_the_name_of_their_router() {
    let mut world = under(of(FaultOperation::Publish, "logs"), BUSY);
    for (router, expected) in [
        ("logs", PublishError::Injected(INJECTED)),
        ("other", PublishError::NotFound("other".to_owned())),
    ] {
        let publication = Publication {
            namespace: NamespaceId(0),
            router: router.to_owned(),
            keys: Vec::new(),
            message: broker::Incoming::default(),
        };
        let said = world.turn(Command::Publish {
            request: request(1),
            publication: Box::new(publication),
        });
        assert!(
            matches!(&said[..], [Output::Published { result: Err(found), .. }] if *found == expected),
            "{said:?}"
        );
    }
}
