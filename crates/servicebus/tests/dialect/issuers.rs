//! JSON Web Tokens of trusted issuers: over `$cbs` and in SASL. (docs/spec/amqp.md#2.8)

use std::sync::Arc;

use access::issuer::SERVICE_BUS_AUDIENCE;
use access::{
    Access, AccessRules, Grant, GrantClaim, Issuer, IssuerKeys, KeySource, Locality, Rights,
    SigningKey,
};
use amqp::Value;
use amqp::performative::SenderSettleMode;
use amqp::sasl::Code;
use broker::Wall;
use dialect::{Claims, ClockReading, Dialect, TooManyTokens};
use endpoint::Event;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value as Json, json};

use crate::tracking::untracked;
use crate::world::{Login, Pair, Request, START, World, receiver, rules, sender};

const ISSUER: &str = "https://issuer.example";
const ORDERS: &str = "sb://host/orders";
const LEEWAY_MS: u64 = 60_000;
const GRACE_MS: u64 = 60_000;

fn key() -> SigningKey {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .expect("a key is generated");
    SigningKey::from_pkcs8(document.as_ref(), &random).expect("it was generated just now")
}

/// The usual rules, and an issuer with these keys.
fn with_issuer(keys: IssuerKeys, grants: Vec<Grant>) -> AccessRules {
    let issuer = Issuer {
        name: ISSUER.to_owned(),
        audiences: vec![SERVICE_BUS_AUDIENCE.to_owned()],
        leeway_ms: LEEWAY_MS,
        grants,
        is_for_loopback: false,
        source: KeySource::Fixed,
        keys: Arc::new(keys),
    };
    AccessRules {
        issuers: vec![issuer],
        ..rules()
    }
}

/// A token with roles, good for some seconds.
fn token(key: &SigningKey, roles: &Json, seconds: u64) -> String {
    let claims = json!({
        "iss": ISSUER, "aud": SERVICE_BUS_AUDIENCE, "roles": roles, "exp": START / 1_000 + seconds,
    });
    key.sign(&claims, &SystemRandom::new())
        .expect("claims are signed")
}

fn put(world: &mut World, pair: &Pair, audience: &str, token: &str) -> (i32, String) {
    let mut request = Request::put_token(audience, token);
    request.properties[1].1 = Value::from("jwt");
    let response = world.call(pair, &request).expect("an answer");
    let Some(Value::String(text)) = response.field("status-description") else {
        panic!("a description is a string");
    };
    let text = match response.code() {
        202 => text,
        _ => untracked(&text).to_owned(),
    };
    (response.code(), text)
}

/// Lets time pass in steps that no idle time-out notices.
fn pass(world: &mut World, milliseconds: u64) {
    let step = 50_000;
    for _ in 0..milliseconds / step {
        world.advance(step);
    }
    world.advance(milliseconds % step);
}

fn begin(rules: AccessRules) -> (World, Pair) {
    let mut world = World::under(rules, Login::Mechanism("ANONYMOUS"));
    let pair = world.pair("$cbs");
    (world, pair)
}

#[test]
fn a_token_gives_the_rights_of_its_roles() {
    let key = key();
    let rules = with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let (mut world, pair) = begin(rules);
    let sends = token(&key, &json!(["Azure Service Bus Data Sender"]), 600);
    assert_eq!(put(&mut world, &pair, ORDERS, &sends).0, 202);
    world.sender("orders");
    let refusal = world.refusal(receiver("orders", SenderSettleMode::Unsettled));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    assert_eq!(
        world.refusal(sender("orders2")).condition,
        "amqp:unauthorized-access"
    );
    let owns = token(&key, &json!("Azure Service Bus Data Owner"), 600);
    assert_eq!(put(&mut world, &pair, ORDERS, &owns).0, 202);
    world.receiver("orders/$DeadLetterQueue", SenderSettleMode::Unsettled, 1);
    world.pair("orders/$management");
}

#[test]
fn a_token_without_a_known_role_is_accepted_and_gives_no_right() {
    let key = key();
    let rules = with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let (mut world, pair) = begin(rules);
    let nobody = token(&key, &json!([]), 600);
    assert_eq!(put(&mut world, &pair, ORDERS, &nobody).0, 202);
    let refusal = world.refusal(sender("orders"));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
}

#[test]
fn a_grant_for_one_entity_holds_there_whatever_the_audience_of_the_token() {
    let key = key();
    let grant = Grant {
        claim: GrantClaim::Role("worker".to_owned()),
        rights: Rights {
            send: true,
            ..Rights::NONE
        },
        entity: Some("Orders".to_owned()),
    };
    let rules = with_issuer(IssuerKeys::fixed(key.key_set()), vec![grant]);
    let (mut world, pair) = begin(rules);
    let worker = token(&key, &json!(["worker"]), 600);
    assert_eq!(put(&mut world, &pair, "sb://host/", &worker).0, 202);
    world.sender("orders");
    let refusal = world.refusal(sender("orders2"));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
}

#[test]
fn a_refused_token_changes_nothing_and_the_reason_is_the_contracts() {
    let (good, other) = (key(), key());
    let rules = with_issuer(IssuerKeys::fixed(good.key_set()), Grant::usual());
    let (mut world, pair) = begin(rules);
    let sign = |key: &SigningKey, change: &dyn Fn(&mut Json)| {
        let mut claims = json!({
            "iss": ISSUER, "aud": SERVICE_BUS_AUDIENCE, "roles": ["Manage"],
            "exp": START / 1_000 + 600,
        });
        change(&mut claims);
        key.sign(&claims, &SystemRandom::new()).unwrap()
    };
    let seconds = START / 1_000;
    let table = [
        (
            sign(&good, &|claims| {
                claims["iss"] = json!("https://evil.example");
            }),
            "IssuerNotFound: The token's issuer is not trusted.",
        ),
        (
            sign(&other, &|_| {}),
            "InvalidSignature: The token has an invalid signature.",
        ),
        (
            sign(&good, &|claims| claims["exp"] = json!(seconds - 60)),
            "ExpiredToken: The token is expired.",
        ),
        (
            sign(&good, &|claims| claims["nbf"] = json!(seconds + 61)),
            "InvalidToken: The token is not valid yet.",
        ),
        (
            sign(&good, &|claims| {
                claims["aud"] = json!("https://vault.azure.net");
            }),
            "InvalidAudience: The token has an invalid audience.",
        ),
    ];
    for (number, (token, expected)) in (1..).zip(table) {
        let (code, text) = put(&mut world, &pair, ORDERS, &token);
        assert_eq!((code, text.as_str()), (401, expected));
        assert_eq!(world.server.refused_credentials().all, number);
        let refusal = world.refusal(sender("orders"));
        assert_eq!(refusal.condition, "amqp:unauthorized-access");
    }
    assert!(!world.server.take_key_demand());
}

#[test]
fn a_token_whose_keys_are_not_loaded_is_answered_busy_and_asks_for_them() {
    let key = key();
    let rules = with_issuer(IssuerKeys::missing(), Grant::usual());
    let keys = Arc::clone(&rules.issuers[0].keys);
    let (mut world, pair) = begin(rules);
    let sends = token(&key, &json!(["Send"]), 600);
    let (code, _) = put(&mut world, &pair, ORDERS, &sends);
    assert_eq!(code, 503);
    assert!(world.server.take_key_demand());
    assert!(!world.server.take_key_demand(), "it is said once");
    assert_eq!(world.server.refused_credentials().all, 0);
    keys.replace(key.key_set(), Wall(u64::MAX));
    assert_eq!(put(&mut world, &pair, ORDERS, &sends).0, 202);
    world.sender("orders");
}

#[test]
fn links_are_detached_for_renewal_when_their_token_and_its_grace_are_over() {
    let key = key();
    let rules = with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let (mut world, pair) = begin(rules);
    let sends = token(&key, &json!(["Send"]), 30);
    assert_eq!(put(&mut world, &pair, ORDERS, &sends).0, 202);
    let (_, link) = world.sender("orders");
    pass(&mut world, 30_000 + LEEWAY_MS + GRACE_MS - 1);
    assert!(world.client.is_attached(link), "within the grace");
    world.advance(1);
    assert!(!world.client.is_attached(link));
    let error = world.detach_error(link).expect("detached");
    assert_eq!(error.condition, "amqp:link:detach-forced");
}

#[test]
fn a_weaker_token_and_an_issuer_that_is_gone_end_the_links_that_rest_on_them() {
    let key = key();
    let trusting = with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let (mut world, pair) = begin(trusting);
    let owns = token(&key, &json!(["Manage"]), 600);
    put(&mut world, &pair, ORDERS, &owns);
    let (_, link) = world.sender("orders");
    let listens = token(&key, &json!(["Listen"]), 600);
    put(&mut world, &pair, ORDERS, &listens);
    assert!(!world.client.is_attached(link));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    world.replace_rules(rules());
    assert!(!world.client.is_attached(link));
}

#[test]
fn a_connection_holds_tokens_of_a_few_identities_for_many_audiences() {
    const IDENTITIES: usize = 16;
    let key = key();
    let rules = with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let access = Access::new(rules);
    let now = ClockReading {
        wall: Wall(START),
        ..ClockReading::default()
    };
    let mut claims = Claims::default();
    let mut put = |audience: usize, identity: usize| {
        let token = token(&key, &json!([identity.to_string()]), 600);
        let verified = access.verify_jwt(&token, Locality::Network, now.wall);
        let verified = verified.expect("it is good");
        claims.put(&access, audience.to_string(), verified, 0, now)
    };
    // What replaces a token makes room for its identity.
    for identity in 0..10 * IDENTITIES {
        put(0, identity).expect("there is room");
    }
    for audience in 0..IDENTITIES {
        put(audience, audience).expect("there is room");
    }
    for audience in IDENTITIES..10 * IDENTITIES {
        put(audience, audience % IDENTITIES).expect("it is shared");
        let refused = put(audience, IDENTITIES);
        assert_eq!(refused, Err(TooManyTokens::Identities));
    }
}

#[test]
fn a_key_that_its_issuer_withdraws_ends_the_links_of_its_tokens_alone() {
    let (old, new) = (key(), key());
    let trusting = with_issuer(IssuerKeys::fixed(old.key_set()), Grant::usual());
    let keys = Arc::clone(&trusting.issuers[0].keys);
    let (mut world, pair) = begin(trusting);
    let manages = json!(["Manage"]);
    put(&mut world, &pair, ORDERS, &token(&old, &manages, 600));
    let (_, link) = world.sender("orders");
    assert!(keys.replace(new.key_set(), Wall(u64::MAX)));
    world.recheck_access();
    assert!(!world.client.is_attached(link));
    let error = world.detach_error(link).expect("detached");
    assert_eq!(error.condition, "amqp:link:detach-forced");
    let answer = put(&mut world, &pair, ORDERS, &token(&old, &manages, 600));
    assert_eq!(answer.0, 401);
    put(&mut world, &pair, ORDERS, &token(&new, &manages, 600));
    let (_, link) = world.sender("orders");
    world.recheck_access();
    assert!(world.client.is_attached(link));
}

fn sasl_code(world: &World) -> Code {
    let outcome = world.events.iter().find_map(|event| match event {
        Event::SaslOutcome(code) => Some(*code),
        _ => None,
    });
    outcome.expect("SASL ends")
}

/// A client whose password is a token.
fn log_in(rules: AccessRules, token: &str) -> World {
    // One test leaks a few hundred bytes.
    World::under(rules, Login::Plain("$jwt", String::leak(token.to_owned())))
}

#[test]
fn a_token_as_the_password_of_sasl_holds_for_the_namespace_until_it_expires() {
    let key = key();
    let trusting = || with_issuer(IssuerKeys::fixed(key.key_set()), Grant::usual());
    let mut world = log_in(trusting(), &token(&key, &json!(["Send"]), 30));
    assert_eq!(sasl_code(&world), Code::Ok);
    let (_, link) = world.sender("orders");
    world.sender("orders2");
    let refusal = world.refusal(receiver("orders", SenderSettleMode::Unsettled));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    pass(&mut world, 30_000 + LEEWAY_MS + GRACE_MS);
    let error = world.detach_error(link).expect("detached");
    assert_eq!(error.condition, "amqp:link:detach-forced");

    let world = log_in(trusting(), &token(&self::key(), &json!(["Send"]), 30));
    assert_eq!(sasl_code(&world), Code::Auth);
    let mut world = log_in(
        with_issuer(IssuerKeys::missing(), Grant::usual()),
        &token(&key, &json!(["Send"]), 30),
    );
    assert_eq!(sasl_code(&world), Code::SysTemp);
    assert!(world.server.take_key_demand());
}
