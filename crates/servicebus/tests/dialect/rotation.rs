//! Rotation: rules and keys that change while connections rest on them, and rules of entities.

use access::{AccessRules, Secret};
use amqp::performative::SenderSettleMode;
use broker::{AuthorizationRule, EntityDescription, Order, QueueSettings, StoreOnlyProperties};

use crate::world::{KEY, LISTEN_KEY, Login, Pair, Request, World, receiver, rules, sender, token};

const ORDERS: &str = "amqps://host/orders";
const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
pub(crate) const CBS: Login = Login::Mechanism("ANONYMOUS");

pub(crate) fn put(world: &mut World, pair: &Pair, token: &str) -> i32 {
    let request = Request::put_token(ORDERS, token);
    world.call(pair, &request).expect("an answer").code()
}

/// The usual rules, where the one called `name` has these keys.
fn with_keys(name: &str, primary: &str, secondary: Option<&str>) -> AccessRules {
    let mut rules = rules();
    let rule = rules.rules.iter_mut().find(|rule| rule.name == name);
    let rule = rule.expect("it is one of them");
    rule.primary = Secret::new(primary.to_owned());
    rule.secondary = secondary.map(|key| Secret::new(key.to_owned()));
    rules
}

fn without(name: &str) -> AccessRules {
    let mut rules = rules();
    rules.rules.retain(|rule| rule.name != name);
    rules
}

/// `rights` are the first letters of Send, Listen and Manage.
fn entity_rule(name: &str, rights: &str, primary: &str, secondary: &str) -> AuthorizationRule {
    AuthorizationRule {
        send: rights.contains('s'),
        listen: rights.contains('l'),
        manage: rights.contains('m'),
        secondary_key: secondary.to_owned(),
        ..AuthorizationRule::of_key(name.to_owned(), primary.to_owned())
    }
}

fn set_rules_of_orders(world: &mut World, rules: Vec<AuthorizationRule>) {
    let description = EntityDescription {
        settings: QueueSettings {
            lock_duration: 30_000,
            max_delivery_count: 3,
            ..QueueSettings::default()
        },
        store_only: StoreOnlyProperties {
            authorization_rules: rules,
            ..StoreOnlyProperties::default()
        },
        ..EntityDescription::default()
    };
    world.administer(Order::Update {
        entity: world.id("orders"),
        description: Box::new(description),
    });
}

fn condition(world: &mut World, link: endpoint::LinkId) -> String {
    let error = world.detach_error(link).expect("detached");
    error.condition.as_str().to_owned()
}

#[test]
fn a_replaced_key_signs_no_more_and_links_that_rest_on_it_are_detached_for_renewal() {
    let mut world = World::with(CBS, |_| {});
    let pair = world.pair("$cbs");
    let old = token(ORDERS, "root", KEY, 600);
    assert_eq!(put(&mut world, &pair, &old), 202);
    let (_, sending) = world.sender("orders");
    let receiving = world.receiver("orders", UNSETTLED, 1);
    world.replace_rules(with_keys("root", "bmV3", None));
    for link in [sending, receiving] {
        assert_eq!(condition(&mut world, link), "amqp:link:detach-forced");
    }
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
    assert_eq!(put(&mut world, &pair, &old), 401);
    let new = token(ORDERS, "root", "bmV3", 600);
    assert_eq!(put(&mut world, &pair, &new), 202);
    world.sender("orders");
}

#[test]
fn a_key_that_stays_keeps_its_links_while_the_other_is_replaced() {
    let mut world = World::under(with_keys("root", "old", Some("kept")), CBS);
    let pair = world.pair("$cbs");
    assert_eq!(
        put(&mut world, &pair, &token(ORDERS, "root", "kept", 600)),
        202
    );
    let (_, sending) = world.sender("orders");
    // As rotation goes: the key in use becomes the primary one, and there is a new second one.
    world.replace_rules(with_keys("root", "kept", Some("new")));
    assert!(world.client.is_attached(sending));
    world.sender("orders");
    assert_eq!(
        put(&mut world, &pair, &token(ORDERS, "root", "old", 600)),
        401
    );
    assert!(
        world.client.is_attached(sending),
        "a refused token changes nothing"
    );
}

#[test]
fn a_password_whose_rule_is_gone_allows_nothing_more() {
    let mut world = World::with(Login::Plain("root", KEY), |_| {});
    let (_, sending) = world.sender("orders");
    let pair = world.pair("orders/$management");
    world.replace_rules(without("listener"));
    assert!(world.client.is_attached(sending));
    world.replace_rules(without("root"));
    for link in [sending, pair.request, pair.response] {
        assert_eq!(condition(&mut world, link), "amqp:link:detach-forced");
    }
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
}

#[test]
fn a_right_that_is_taken_from_a_rule_is_gone_and_the_others_stay() {
    let mut world = World::with(Login::Plain("root", KEY), |_| {});
    let (_, sending) = world.sender("orders");
    let receiving = world.receiver("orders", UNSETTLED, 1);
    let mut fewer = rules();
    fewer.rules[0].rights = fewer.rules[2].rights;
    world.replace_rules(fewer);
    assert_eq!(condition(&mut world, sending), "amqp:link:detach-forced");
    assert!(world.client.is_attached(receiving));
    world.replace_rules(rules());
    world.sender("orders");
}

#[test]
fn a_link_that_waits_for_a_session_is_refused_when_its_key_goes() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let session = world.session();
    let mut attach = receiver("sessions", UNSETTLED);
    let source = attach
        .source
        .as_deref_mut()
        .expect("a receiver has a source");
    source.filter = Some(vec![(
        amqp::Value::Symbol("com.microsoft:session-filter".into()),
        amqp::Value::Null,
    )]);
    let link = world.attach(session, attach);
    assert_eq!(world.detach_error(link), None, "it waits");
    world.replace_rules(without("listener"));
    assert_eq!(condition(&mut world, link), "amqp:link:detach-forced");
    assert!(
        matches!(world.commands.last(), Some(broker::Command::Detach { .. })),
        "the broker is told"
    );
}

#[test]
fn rules_of_a_queue_let_in_there_and_nowhere_else() {
    let mut world = World::with(CBS, |_| {});
    let pair = world.pair("$cbs");
    let by_first = token(ORDERS, "app", "first", 600);
    assert_eq!(
        put(&mut world, &pair, &by_first),
        401,
        "there is no such rule"
    );
    let rule = entity_rule("app", "s", "first", "second");
    set_rules_of_orders(&mut world, vec![rule]);
    for key in ["first", "second"] {
        assert_eq!(put(&mut world, &pair, &token(ORDERS, "app", key, 600)), 202);
        world.sender("orders");
        assert_eq!(
            world.refusal(receiver("orders", UNSETTLED)).condition,
            "amqp:unauthorized-access"
        );
    }
    for elsewhere in ["amqps://host/orders2", "amqps://host/"] {
        let request = Request::put_token(elsewhere, &token(elsewhere, "app", "first", 600));
        assert_eq!(world.call(&pair, &request).expect("an answer").code(), 401);
    }
}

#[test]
fn a_password_of_a_queues_rule_lets_in_there_and_nowhere_else() {
    let mut world = World::offline(Login::Plain("app", "second"), |_| {});
    let rule = entity_rule("app", "sl", "first", "second");
    set_rules_of_orders(&mut world, vec![rule]);
    world.sender("orders");
    world.receiver("orders/$DeadLetterQueue", UNSETTLED, 1);
    world.pair("orders/$management");
    for elsewhere in ["orders2", "$management", "nowhere"] {
        assert_eq!(
            world.refusal(sender(elsewhere)).condition,
            "amqp:unauthorized-access"
        );
    }
}

#[test]
fn a_new_key_of_a_queues_rule_is_felt_at_once() {
    let mut world = World::with(CBS, |_| {});
    let pair = world.pair("$cbs");
    let old = entity_rule("app", "sl", "first", "second");
    set_rules_of_orders(&mut world, vec![old]);
    let by_first = token(ORDERS, "app", "first", 600);
    assert_eq!(put(&mut world, &pair, &by_first), 202);
    let (_, sending) = world.sender("orders");
    let changed = entity_rule("app", "sl", "first", "third");
    set_rules_of_orders(&mut world, vec![changed]);
    assert!(world.client.is_attached(sending), "its key is still there");
    let changed = entity_rule("app", "sl", "fourth", "third");
    set_rules_of_orders(&mut world, vec![changed]);
    assert_eq!(condition(&mut world, sending), "amqp:link:detach-forced");
    assert_eq!(put(&mut world, &pair, &by_first), 401);
    set_rules_of_orders(&mut world, Vec::new());
    let by_fourth = token(ORDERS, "app", "fourth", 600);
    assert_eq!(put(&mut world, &pair, &by_fourth), 401, "the rule is gone");
}

#[test]
fn rules_go_with_their_queue_and_are_not_those_of_the_next_one_there() {
    let mut world = World::with(CBS, |_| {});
    let pair = world.pair("$cbs");
    let rule = entity_rule("app", "sl", "first", "second");
    set_rules_of_orders(&mut world, vec![rule]);
    let by_first = token(ORDERS, "app", "first", 600);
    assert_eq!(put(&mut world, &pair, &by_first), 202);
    world.remove("orders");
    assert_eq!(put(&mut world, &pair, &by_first), 401);
    world.create("orders", QueueSettings::default());
    assert_eq!(put(&mut world, &pair, &by_first), 401);
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
}

#[test]
fn a_rule_of_the_namespace_and_one_of_a_queue_can_have_one_name() {
    let mut world = World::with(CBS, |_| {});
    let pair = world.pair("$cbs");
    let rule = entity_rule("listener", "s", "first", "second");
    set_rules_of_orders(&mut world, vec![rule]);
    let of_queue = token(ORDERS, "listener", "first", 600);
    assert_eq!(put(&mut world, &pair, &of_queue), 202);
    let (_, sending) = world.sender("orders");
    world.refusal(receiver("orders", UNSETTLED));
    let of_namespace = token(ORDERS, "listener", LISTEN_KEY, 600);
    assert_eq!(put(&mut world, &pair, &of_namespace), 202);
    assert_eq!(condition(&mut world, sending), "amqp:unauthorized-access");
    world.receiver("orders", UNSETTLED, 1);
}
