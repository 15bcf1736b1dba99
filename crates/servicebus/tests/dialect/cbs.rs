//! `$cbs`: tokens in, rights out.

use access::AccessRules;
use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use dialect::Dialect;
use endpoint::LinkId;

use crate::tracking::{text, untracked};
use crate::world::{
    KEY, LISTEN_KEY, Login, Pair, Request, Response, SEND_KEY, World, receiver, rules, sender,
    token,
};

const ORDERS: &str = "amqps://host/orders";

pub(crate) fn anonymous() -> (World, Pair) {
    let mut world = World::with(Login::Mechanism("MSSBCBS"), |_| {});
    let pair = world.pair("$cbs");
    (world, pair)
}

pub(crate) fn put(world: &mut World, pair: &Pair, audience: &str, token: &str) -> (i32, String) {
    let response = world
        .call(pair, &Request::put_token(audience, token))
        .expect("an answer");
    let description = match response.field("status-description") {
        Some(Value::String(text)) if response.code() == 202 => text,
        Some(Value::String(text)) => untracked(&text).to_owned(),
        other => panic!("a description is a string, not {other:?}"),
    };
    (response.code(), description)
}

#[test]
fn rule_09_a_token_is_accepted_with_202() {
    let (mut world, pair) = anonymous();
    let request = Request::put_token(ORDERS, &token(ORDERS, "root", KEY, 3_600));
    let response = world.call(&pair, &request).expect("an answer");
    assert_eq!(response.field("status-code"), Some(Value::Int(202)));
    assert_eq!(
        response.field("status-description"),
        Some(Value::from("Accepted"))
    );
    assert_eq!(response.field("error-condition"), None);
    assert_eq!(response.body(), Value::Null);
    world.sender("orders");
    world.receiver("orders/$DeadLetterQueue", SenderSettleMode::Unsettled, 1);
    world.pair("orders/$management");
    assert_eq!(
        world.refusal(sender("orders2")).condition,
        "amqp:unauthorized-access"
    );
}

/// (docs/spec/amqp.md#4.1)
#[test]
fn a_token_in_a_request_with_its_sections_in_another_order_is_accepted() {
    let (mut world, pair) = anonymous();
    let request = Request::put_token(ORDERS, &token(ORDERS, "root", KEY, 3_600));
    let answer = world.call_encoded(&pair, &request.encode_backwards());
    assert_eq!(answer.expect("an answer").code(), 202);
    world.sender("orders");
}

#[test]
fn rule_11_an_answer_correlates_by_the_message_id_in_its_own_type() {
    let (mut world, pair) = anonymous();
    let ids = [
        Value::Ulong(7),
        Value::Uuid([9; 16]),
        Value::from("seven"),
        Value::Binary(bytes::Bytes::from_static(b"7")),
    ];
    for id in ids {
        let request = Request {
            message_id: Some(id.clone()),
            ..Request::put_token(ORDERS, "")
        };
        let response = world.call(&pair, &request).expect("an answer");
        assert_eq!(response.correlation(), Some(id));
    }
}

/// An answer to a put-token over a pair made in some client library's way.
fn answered(
    world: &mut World,
    request: LinkId,
    response: LinkId,
    reply_to: Option<&'static str>,
) -> bool {
    let put = Request {
        reply_to,
        ..Request::put_token(ORDERS, "")
    };
    world.send(request, &put.encode());
    world.received(response).pop().map(Response).is_some()
}

#[test]
fn rule_12_an_answer_finds_the_response_link_by_target_name_node_or_alone() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let session = world.session();
    let by_target = world.pair_in(session, "$cbs", Some("cbs-reply"));
    assert!(answered(
        &mut world,
        by_target.request,
        by_target.response,
        Some("cbs-reply")
    ));
    assert!(answered(
        &mut world,
        by_target.request,
        by_target.response,
        None
    ));
    assert!(answered(
        &mut world,
        by_target.request,
        by_target.response,
        Some("$cbs")
    ));

    world.client.end(session, None);
    world.pump();
    let session = world.session();
    let mut response = receiver("$cbs", SenderSettleMode::Unsettled);
    response.name = "cbs-by-name".to_owned();
    response.target = Some(Box::new(crate::world::target(None)));
    let by_name = world.attach(session, response);
    world.credit(by_name, 10, false);
    let request = world.attach(session, sender("$cbs"));
    assert!(answered(&mut world, request, by_name, Some("cbs-by-name")));

    world.client.end(session, None);
    world.pump();
    let session = world.session();
    let by_node = world.pair_in(session, "$cbs", Some("$cbs"));
    assert!(answered(
        &mut world,
        by_node.request,
        by_node.response,
        Some("$cbs")
    ));
}

#[test]
fn several_pairs_of_a_session_get_their_own_answers() {
    let mut world = World::new();
    let session = world.session();
    let first = world.pair_in(session, "orders/$management", Some("one"));
    let mut response = receiver("orders/$management", SenderSettleMode::Settled);
    response.name = "second".to_owned();
    response.target = Some(Box::new(crate::world::target(Some("two"))));
    let second = world.attach(session, response);
    world.credit(second, 10, false);
    assert!(answered(&mut world, first.request, second, Some("two")));
    assert!(answered(
        &mut world,
        first.request,
        first.response,
        Some("one")
    ));
    assert!(!answered(
        &mut world,
        first.request,
        first.response,
        Some("three")
    ));
}

#[test]
fn a_second_link_in_a_direction_is_refused_and_the_first_one_stays() {
    let (mut world, pair) = anonymous();
    for mut attach in [sender("$cbs"), receiver("$CBS", SenderSettleMode::Settled)] {
        attach.name = "another".to_owned();
        let error = world.refusal(attach);
        assert_eq!(error.condition, "amqp:not-allowed");
        let text = text(&error);
        assert!(text.starts_with("A link to connection '"), "{text}");
        assert!(
            text.ends_with("' $cbs node has already been opened."),
            "{text}"
        );
    }
    let valid = token(ORDERS, "root", KEY, 3_600);
    assert_eq!(put(&mut world, &pair, ORDERS, &valid).0, 202);
}

#[test]
fn a_link_of_the_same_name_takes_the_place_of_the_first_one() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let session = world.session();
    let first = world.attach(session, sender("$cbs"));
    let second = world.attach(session, sender("$cbs"));
    assert!(!world.client.is_attached(first));
    assert!(world.client.is_attached(second));
}

#[test]
fn a_request_without_a_way_back_is_rejected() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let (_, link) = world.sender("$cbs");
    let request = Request {
        reply_to: Some("nowhere"),
        ..Request::put_token(ORDERS, "")
    };
    world.send(link, &request.encode());
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(link)[..] else {
        panic!("the request is rejected");
    };
    assert_eq!(error.condition, "amqp:not-found");
    assert_eq!(
        text(error),
        "The response link 'nowhere' was not found in the entity management node $management."
    );
}

#[test]
fn an_answer_waits_for_credit_and_is_sent_settled() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let session = world.session();
    let response = world.attach(session, receiver("$cbs", SenderSettleMode::Unsettled));
    let request = world.attach(session, sender("$cbs"));
    world.send(request, &Request::put_token(ORDERS, "").encode());
    assert_eq!(world.outcomes(request), [DeliveryState::Accepted]);
    assert!(world.received(response).is_empty());
    world.credit(response, 1, false);
    let answers = world.received(response);
    assert_eq!(answers.len(), 1);
    assert!(answers[0].settled);
}

#[test]
fn the_texts_of_refusals_are_the_contracts() {
    let (mut world, pair) = anonymous();
    let (code, text) = put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 0));
    assert_eq!(
        (code, text.as_str()),
        (
            401,
            "ExpiredToken: The token is expired. Expiration time: '2023-11-14 22:13:20Z'."
        )
    );
    let (code, text) = put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "root", "wrong", 60),
    );
    assert_eq!(
        (code, text.as_str()),
        (401, "InvalidSignature: The token has an invalid signature.")
    );
    let (code, _) = put(&mut world, &pair, ORDERS, "SharedAccessSignature what?");
    assert_eq!(code, 400);
    let nowhere = "sb://host:5672/Nowhere/$management";
    let (code, text) = put(
        &mut world,
        &pair,
        nowhere,
        &token("sb://host:5672/", "root", KEY, 60),
    );
    assert_eq!(code, 404);
    assert!(
        text.starts_with("The messaging entity 'sb://host/Nowhere' could not be found."),
        "{text}"
    );
    let (code, _) = put(
        &mut world,
        &pair,
        nowhere,
        &token("sb://host/", "root", "wrong", 60),
    );
    assert_eq!(code, 401, "nobody learns of entities without a key");
    world.refusal(sender("orders"));
}

#[test]
fn a_token_for_one_queue_is_none_for_another_with_a_longer_name() {
    let (mut world, pair) = anonymous();
    let token = token(ORDERS, "root", KEY, 60);
    let (code, _) = put(&mut world, &pair, "amqps://host/orders2", &token);
    assert_eq!(code, 401);
    put(&mut world, &pair, ORDERS, &token);
    assert_eq!(
        world.refusal(sender("orders2")).condition,
        "amqp:unauthorized-access"
    );
}

#[test]
fn a_namespace_wide_token_serves_each_audience_it_is_put_for() {
    let (mut world, pair) = anonymous();
    let token = token("amqps://host/", "root", KEY, 60);
    assert_eq!(put(&mut world, &pair, ORDERS, &token).0, 202);
    world.sender("orders");
    assert_eq!(
        world.refusal(sender("orders2")).condition,
        "amqp:unauthorized-access"
    );
    assert_eq!(put(&mut world, &pair, "amqps://host/", &token).0, 202);
    world.sender("orders2");
}

#[test]
fn a_token_may_name_one_of_the_brokers_own_hosts_alone() {
    let named = AccessRules {
        host_names: ["ns.servicebus.windows.net".to_owned()].into(),
        ..rules()
    };
    // The host of the audience is not taken for the broker's.
    for resource in ["orders2", "other.windows.net", "host", "orders:1"] {
        let mut world = World::under(named.clone(), Login::Mechanism("MSSBCBS"));
        let pair = world.pair("$cbs");
        let token = token(resource, "root", KEY, 60);
        for audience in [ORDERS.to_owned(), format!("amqps://{resource}/orders")] {
            let (code, text) = put(&mut world, &pair, &audience, &token);
            assert_eq!(code, 401, "{resource} {audience}");
            assert!(text.starts_with("InvalidAudience: "), "{text}");
        }
        assert_eq!(
            world.refusal(sender("orders")).condition,
            "amqp:unauthorized-access"
        );
    }
    for resource in [
        "ns.servicebus.windows.net",
        "NS.ServiceBus.Windows.net",
        "ns.servicebus.windows.net:5671",
        "ns.servicebus.windows.net/",
    ] {
        let mut world = World::under(named.clone(), Login::Mechanism("MSSBCBS"));
        let pair = world.pair("$cbs");
        let token = token(resource, "root", KEY, 60);
        for audience in [ORDERS, "amqps://host/orders2"] {
            assert_eq!(
                put(&mut world, &pair, audience, &token).0,
                202,
                "{resource}"
            );
        }
        world.sender("orders");
        world.sender("orders2");
    }
}

#[test]
fn a_json_web_token_is_refused() {
    let (mut world, pair) = anonymous();
    for kind in ["jwt", "amqp:jwt"] {
        let mut request = Request::put_token(ORDERS, "abc.def.ghi");
        request.properties[1].1 = Value::from(kind);
        let response = world.call(&pair, &request).expect("an answer");
        assert_eq!(response.code(), 401);
        let description = response.field("status-description");
        let description = description.as_ref().and_then(Value::as_text);
        let description = untracked(description.expect("a text"));
        assert_eq!(description, "MalformedToken: The token is malformed.");
    }
}

#[test]
fn a_shared_access_signature_that_calls_itself_a_json_web_token_is_accepted() {
    let (mut world, pair) = anonymous();
    let mut request = Request::put_token(ORDERS, &token(ORDERS, "root", KEY, 60));
    request.properties[1].1 = Value::from("jwt");
    assert_eq!(world.call(&pair, &request).expect("an answer").code(), 202);
    world.sender("orders");
}

#[test]
fn a_request_that_makes_no_sense_is_answered_400_or_501() {
    let (mut world, pair) = anonymous();
    let good = Request::put_token(ORDERS, &token(ORDERS, "root", KEY, 60));
    let change = |index: usize, value: Value| {
        let mut request = good.clone();
        request.properties[index].1 = value;
        request
    };
    let table = [
        (change(0, Value::from("delete-token")), 501),
        (change(1, Value::from("password")), 400),
        (change(2, Value::Int(1)), 400),
        (
            Request {
                body: Value::Map(Vec::new()),
                ..good.clone()
            },
            400,
        ),
        (
            Request {
                properties: Vec::new(),
                ..good.clone()
            },
            501,
        ),
    ];
    for (request, code) in table {
        assert_eq!(world.call(&pair, &request).expect("an answer").code(), code);
    }
    let symbols = change(0, Value::Symbol("put-token".into()));
    assert_eq!(world.call(&pair, &symbols).expect("an answer").code(), 202);
    let binary = change(0, Value::Binary(bytes::Bytes::from_static(b"put-token")));
    assert_eq!(world.call(&pair, &binary).expect("an answer").code(), 202);
}

#[test]
fn links_are_detached_for_renewal_when_their_token_and_its_grace_are_over() {
    let (mut world, pair) = anonymous();
    put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 100));
    let (_, link) = world.sender("orders");
    let receiving = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    world.advance(100_000);
    assert!(world.client.is_attached(link), "within the grace");
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
    assert_eq!(world.server.deadline().map(|due| due.0), Some(160_000));
    world.advance(60_000);
    let error = world.detach_error(link).expect("detached");
    assert_eq!(error.condition, "amqp:link:detach-forced");
    let expected = format!(
        "The link '{}' is force detached. Code: RenewToken. Details: Unauthorized access. 'Send' claim(s) \
         are required to perform this operation. Resource: 'sb://host/orders'..",
        world.reply(link).name
    );
    assert_eq!(text(error), expected);
    let error = world.detach_error(receiving).expect("detached");
    assert!(
        error
            .description
            .as_ref()
            .is_some_and(|text| text.contains("'Listen'"))
    );
    assert!(
        world.client.is_attached(pair.request),
        "`$cbs` needs no token"
    );
}

#[test]
fn a_token_that_is_renewed_in_time_keeps_its_links() {
    let (mut world, pair) = anonymous();
    put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 100));
    let (_, link) = world.sender("orders");
    world.advance(90_000);
    put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "root", KEY, 1_000),
    );
    world.advance(100_000);
    world.advance(100_000);
    assert!(world.client.is_attached(link));
}

#[test]
fn a_weaker_token_in_place_of_a_stronger_one_is_felt_at_once() {
    let (mut world, pair) = anonymous();
    put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 100));
    let (_, sending) = world.sender("orders");
    let receiving = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "listener", LISTEN_KEY, 100),
    );
    assert_eq!(
        world.detach_error(sending).expect("detached").condition,
        "amqp:unauthorized-access"
    );
    assert!(world.client.is_attached(receiving));
    put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "sender", SEND_KEY, 100),
    );
    assert_eq!(
        world.detach_error(receiving).expect("detached").condition,
        "amqp:unauthorized-access"
    );
}

#[test]
fn a_wider_token_still_holds_when_a_narrower_one_weakens() {
    let (mut world, pair) = anonymous();
    let wide = "amqps://host/";
    put(&mut world, &pair, wide, &token(wide, "root", KEY, 100));
    put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 100));
    let (_, sending) = world.sender("orders");
    put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "listener", LISTEN_KEY, 100),
    );
    assert!(world.client.is_attached(sending));
}

#[test]
fn a_refused_token_changes_nothing() {
    let (mut world, pair) = anonymous();
    put(&mut world, &pair, ORDERS, &token(ORDERS, "root", KEY, 100));
    let (_, sending) = world.sender("orders");
    put(
        &mut world,
        &pair,
        ORDERS,
        &token(ORDERS, "listener", "wrong", 100),
    );
    assert!(world.client.is_attached(sending));
    world.sender("orders");
}

#[test]
fn request_credit_does_not_run_out() {
    let (mut world, pair) = anonymous();
    world.credit(pair.response, 1_000, false);
    let token = token(ORDERS, "root", KEY, 3_600);
    for _ in 0..350 {
        world
            .call(&pair, &Request::put_token(ORDERS, &token))
            .expect("an answer");
    }
}

#[test]
fn rule_12_an_answer_goes_to_another_session_only_if_there_is_one_way() {
    let mut world = World::new();
    let session = world.session();
    let far = world.attach(
        session,
        receiver("orders/$management", SenderSettleMode::Settled),
    );
    world.credit(far, 10, false);
    let (_, request) = world.sender("orders/$management");
    assert!(answered(&mut world, request, far, None));
    world.pair("orders/$management");
    assert!(
        !answered(&mut world, request, far, None),
        "there are two now"
    );
}

#[test]
fn rule_12_an_answer_never_goes_to_another_nodes_link() {
    let mut world = World::new();
    let session = world.session();
    let orders = world.pair_in(session, "orders/$management", Some("reply-here"));
    let cbs = world.pair_in(session, "$cbs", Some("reply-here"));
    assert!(answered(
        &mut world,
        cbs.request,
        cbs.response,
        Some("reply-here")
    ));
    let request = Request::operation("what", Vec::new());
    assert_eq!(
        world.call(&orders, &request).expect("an answer").code(),
        501
    );
}

#[test]
fn a_connection_on_which_one_token_after_the_other_is_refused_is_closed() {
    let (mut world, pair) = anonymous();
    world.credit(pair.response, 1_000, false);
    let good = token(ORDERS, "root", KEY, 3_600);
    let bad = token(ORDERS, "root", "wrong", 3_600);
    // One that is accepted counts for all before it.
    for token in [&bad, &good].repeat(40) {
        put(&mut world, &pair, ORDERS, token);
    }
    for _ in 0..31 {
        assert_eq!(put(&mut world, &pair, ORDERS, &bad).0, 401);
    }
    let last = world.call(&pair, &Request::put_token(ORDERS, &bad));
    assert!(last.is_none(), "there is nobody left to answer");
    let error = world.events.iter().find_map(|event| match event {
        endpoint::Event::Closed { error, .. } => error.clone(),
        _ => None,
    });
    assert_eq!(
        error.expect("with a reason").condition,
        "amqp:unauthorized-access"
    );
}
