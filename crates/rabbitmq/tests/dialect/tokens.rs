//! Tokens of an issuer as passwords, and over the management pair. (docs/spec/rabbitmq.md#2, #6.1)

use std::sync::Arc;

use access::issuer::SERVICE_BUS_AUDIENCE;
use access::{AccessRules, Grant, Issuer, IssuerKeys, KeySource, SigningKey};
use amqp::performative::SenderSettleMode;
use amqp::sasl::Code;
use amqp::{DeliveryState, Value};
use endpoint::Event;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use crate::client_frames::{message, rules};
use crate::consume::consumer;
use crate::management_client::{Management, open, request};
use crate::world::{Login, START, World};

const ISSUER: &str = "https://issuer.example";
/// For how long a token counts beyond its end: its issuer's leeway, and the connection's grace.
const BEYOND_MS: u64 = 120_000;

fn key() -> SigningKey {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .expect("a key is generated");
    SigningKey::from_pkcs8(document.as_ref(), &random).expect("it was generated just now")
}

fn trusting(keys: IssuerKeys) -> AccessRules {
    let issuer = Issuer {
        name: ISSUER.to_owned(),
        audiences: vec![SERVICE_BUS_AUDIENCE.to_owned()],
        leeway_ms: 60_000,
        grants: Grant::usual(),
        is_for_loopback: false,
        source: KeySource::Fixed,
        keys: Arc::new(keys),
    };
    AccessRules {
        issuers: vec![issuer],
        ..rules()
    }
}

/// A token with roles, good for some seconds from the start of the world.
fn token(key: &SigningKey, roles: &[&str], seconds: u64) -> String {
    token_of("me", key, roles, seconds)
}

/// The same of another client.
fn token_of(subject: &str, key: &SigningKey, roles: &[&str], seconds: u64) -> String {
    let claims = json!({
        "iss": ISSUER, "aud": SERVICE_BUS_AUDIENCE, "sub": subject, "roles": roles,
        "exp": START / 1_000 + seconds,
    });
    let signed = key.sign(&claims, &SystemRandom::new());
    signed.expect("claims are signed")
}

/// A client whose password is a token.
fn log_in(key: &SigningKey, user: &'static str, token: &str) -> World {
    let rules = trusting(IssuerKeys::fixed(key.key_set()));
    // One test leaks a few hundred bytes.
    World::under(rules, Login::Plain(user, String::leak(token.to_owned())))
}

fn code(world: &World) -> Code {
    let outcome = world.events.iter().find_map(|event| match event {
        Event::SaslOutcome(code) => Some(*code),
        _ => None,
    });
    outcome.expect("SASL ends")
}

/// Lets time pass in steps that no idle time-out notices.
fn pass(world: &mut World, milliseconds: u64) {
    for _ in 0..milliseconds / 25_000 {
        world.advance(25_000);
    }
}

fn renew(world: &mut World, management: &Management, token: &str) -> (String, Value) {
    let body = Value::Binary(token.to_owned().into());
    management.call(world, "PUT", "/auth/tokens", Some(&body))
}

#[test]
fn a_token_is_the_password_of_any_user_and_names_none() {
    let key = key();
    for user in ["", "someone", "orders-sender", "guest", "$jwt"] {
        let mut world = log_in(&key, user, &token(&key, &["Send"], 600));
        assert_eq!(code(&world), Code::Ok, "{user}");
        world.enqueue("/queues/orders", &message("a"));
        let session = world.session();
        let link = world.attach(session, consumer("/queues/orders"));
        assert!(!world.client.is_attached(link), "{user} does not listen");
    }
    let world = log_in(&key, "someone", &token(&self::key(), &["Send"], 600));
    assert_eq!(code(&world), Code::Auth);
    let world = log_in(&key, "someone", "eyJ.no.token!");
    assert_eq!(code(&world), Code::Auth);
}

#[test]
fn a_renewed_token_keeps_the_links_past_the_end_of_the_first() {
    let key = key();
    let mut world = log_in(&key, "me", &token(&key, &["Manage"], 50));
    let management = open(&mut world);
    let (_, link) = world.sender("/queues/orders");
    let azure = world.receiver("orders2", SenderSettleMode::Unsettled, 1);
    let renewed = renew(&mut world, &management, &token(&key, &["Manage"], 1_000));
    assert_eq!(renewed, ("204".to_owned(), Value::Null));
    pass(&mut world, 50_000 + BEYOND_MS + 30_000);
    assert!(world.client.is_attached(link) && world.client.is_attached(azure));
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
    // One that allows less ends what it does not allow, in both dialects.
    let renewed = renew(&mut world, &management, &token(&key, &["Send"], 2_000));
    assert_eq!(renewed.0, "204");
    assert!(world.client.is_attached(link));
    assert!(!world.client.is_attached(azure));
    pass(&mut world, 2_000_000 + BEYOND_MS);
    assert!(!world.client.is_attached(link), "it is over at last");
}

#[test]
fn a_token_that_is_not_good_or_of_another_client_closes_the_connection() {
    let key = key();
    for other in [
        token(&self::key(), &["Manage"], 600),
        token_of("you", &key, &["Manage"], 600),
    ] {
        check_refused_renewal(&key, other);
    }
}

fn check_refused_renewal(key: &SigningKey, token: String) {
    let mut world = log_in(key, "me", &self::token(key, &["Manage"], 600));
    let management = open(&mut world);
    let (status, _) = management.call(&mut world, "PUT", "/auth/tokens", Some(&Value::Null));
    assert_eq!(status, "400");
    let body = Value::Binary(token.into());
    let request = request("PUT", "/auth/tokens", Some(&body), false);
    world.send_as(management.requests, 0, true, &request);
    let closed = world.events.iter().find_map(|event| match event {
        Event::Closed { error, .. } => error.as_ref(),
        _ => None,
    });
    let closed = closed.expect("it is closed for an error");
    assert_eq!(closed.condition, "amqp:unauthorized-access");
}

#[test]
fn a_client_with_a_key_has_no_token_to_renew() {
    let mut world = World::new();
    let management = open(&mut world);
    let (status, text) = renew(&mut world, &management, &token(&key(), &["Manage"], 600));
    assert_eq!(status, "400", "{text:?}");
}
