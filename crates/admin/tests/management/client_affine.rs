//! Subscriptions that JMS clients made: shown, listed, changed and deleted, not created.
//! (docs/spec/amqp.md#13.4, docs/spec/admin.md#5.3)

use broker::{
    ClientAffineProperties, Command, ConnectionId, Output, ReceiveMode, ReceiverId,
    SubscribeRequest,
};
use store::EntityId;

use crate::world::{World, entry};

/// A topic `prices` with a subscription of a client.
fn world(client_id: &str) -> World {
    let mut world = World::new();
    world.make("/prices", "TopicDescription", "");
    let request = SubscribeRequest {
        topic: EntityId(1),
        name: Some("s".to_owned()),
        properties: ClientAffineProperties {
            client_id: client_id.to_owned(),
            is_durable: true,
            is_shared: true,
            selector: Some("JMSType = 'gold'".to_owned()),
        },
        auto_delete_on_idle: 600_000,
        mode: ReceiveMode::PeekLock,
    };
    let said = world.turn(Command::Subscribe {
        receiver: ReceiverId {
            connection: ConnectionId(2),
            link: 1,
        },
        request: Box::new(request),
    });
    let has_subscription =
        |output: &Output| matches!(output, Output::Subscribed { result, .. } if result.is_ok());
    assert!(said.iter().any(has_subscription), "{said:?}");
    world
}

#[test]
fn a_subscription_of_a_client_is_shown_with_its_client_and_its_selector() {
    let mut world = world("client1");
    let path = "/prices/Subscriptions/s$client1$D";
    let shown = world.get(&format!("{path}?api-version=2021-05"));
    let properties = "<IsClientAffine>true</IsClientAffine><ClientAffineProperties>\
        <ClientId>client1</ClientId><IsDurable>true</IsDurable><IsShared>true</IsShared>\
        </ClientAffineProperties>";
    assert!(shown.body.contains(properties), "{}", shown.body);
    assert_eq!(shown.value("AutoDeleteOnIdle"), Some("PT10M"));
    let rules = world.get(&format!("{path}/rules"));
    assert_eq!(rules.value("SqlExpression"), Some("JMSType = 'gold'"));
    let older = world.get(&format!("{path}?api-version=2017-04"));
    assert!(!older.body.contains("ClientAffine"), "{}", older.body);
    let listed = world.get("/prices/Subscriptions?api-version=2021-05");
    assert!(listed.body.contains(properties), "{}", listed.body);
}

#[test]
fn a_subscription_of_a_client_is_changed_and_stays_its_clients() {
    let mut world = world("client1");
    let path = "/prices/Subscriptions/s$client1$D?api-version=2021-05";
    // As the SDKs do: what was read is written back.
    let shown = world.get(path);
    let inner = shown.inner("SubscriptionDescription");
    let lock = "<LockDuration>PT1M</LockDuration>";
    assert!(inner.contains(lock), "{inner}");
    let inner = inner.replace(lock, "<LockDuration>PT30S</LockDuration>");
    let changed = world.update(path, &entry("SubscriptionDescription", &inner));
    assert_eq!(changed.status, 200, "{}", changed.body);
    let shown = world.get(path);
    assert_eq!(shown.value("LockDuration"), Some("PT30S"));
    assert_eq!(shown.value("IsClientAffine"), Some("true"));
    assert_eq!(shown.value("ClientId"), Some("client1"));
    let missing = "/prices/Subscriptions/other$client1$D";
    let description = entry("SubscriptionDescription", "");
    assert_eq!(world.update(missing, &description).status, 404);
}

#[test]
fn a_subscription_of_a_client_is_deleted_and_cannot_be_created() {
    let mut world = world("client1");
    let path = "/prices/Subscriptions/s$client1$D";
    let description = entry("SubscriptionDescription", "");
    assert_eq!(world.delete(path).status, 200);
    assert_eq!(world.get(path).status, 404);
    assert_eq!(world.put(path, &description).status, 400);
}
