//! Tokens of a trusted issuer, and forged ones.

use std::sync::Arc;

use hmac::{Hmac, Mac};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaPublicKeyComponents,
};
use serde_json::{Value as Json, json};
use sha2::Sha256;

use super::*;
use crate::issuer::{Grant, KeySource, SERVICE_BUS_AUDIENCE};
use crate::key_set::IssuerKeys;
use crate::signing_key::SigningKey;

const NOW: Wall = Wall(1_700_000_000_000);
const SECONDS: u64 = 1_700_000_000;
const ISSUER: &str = "https://issuer.example/tenant";
/// A key that is used nowhere else.
const RSA: &[u8] = include_bytes!("test_data/rsa.pkcs8");

fn ec_key() -> SigningKey {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    SigningKey::from_pkcs8(document.as_ref(), &random).unwrap()
}

fn issuer(keys: KeySet) -> Issuer {
    Issuer {
        name: ISSUER.to_owned(),
        audiences: vec![SERVICE_BUS_AUDIENCE.to_owned()],
        leeway_ms: 60_000,
        grants: Grant::usual(),
        is_for_loopback: false,
        source: KeySource::Fixed,
        keys: Arc::new(IssuerKeys::fixed(keys)),
    }
}

/// Good claims.
fn claims() -> Json {
    json!({
        "iss": ISSUER, "aud": SERVICE_BUS_AUDIENCE, "sub": "me", "roles": ["Send"],
        "nbf": SECONDS, "exp": SECONDS + 600,
    })
}

/// Good claims but for one, which is left out when it is null.
fn claims_but(name: &str, value: Json) -> Json {
    let mut claims = claims();
    let object = claims.as_object_mut().unwrap();
    match value {
        Json::Null => object.remove(name),
        value => object.insert(name.to_owned(), value),
    };
    claims
}

fn check(claims: &Json) -> Result<VerifiedJwt, Error> {
    let key = ec_key();
    let token = key.sign(claims, &SystemRandom::new()).unwrap();
    verify(&token, &[issuer(key.key_set())], Locality::Network, NOW)
}

fn encoded(part: &Json) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

fn rsa_key() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(RSA).unwrap()
}

/// A JWK of the RSA key, with `more` members.
fn rsa_jwk(more: &Json) -> Json {
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(rsa_key().public());
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let mut jwk = json!({"kty": "RSA", "n": number(&public.n), "e": number(&public.e)});
    let more = more.as_object().unwrap().clone();
    jwk.as_object_mut().unwrap().extend(more);
    jwk
}

fn set(keys: &[Json]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn rsa_token(header: &Json, encoding: &'static dyn RsaEncoding) -> String {
    let message = format!("{}.{}", encoded(header), encoded(&claims()));
    let key = rsa_key();
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(encoding, &random, message.as_bytes(), &mut signature)
        .unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn verify_with(token: &str, keys: &[Json]) -> Result<(), Error> {
    verify(token, &[issuer(set(keys))], Locality::Network, NOW).map(drop)
}

#[test]
fn a_good_token_says_whom_it_speaks_for_and_until_when() {
    let verified = check(&claims()).unwrap();
    assert_eq!(verified.identity.issuer, ISSUER);
    assert_eq!(verified.identity.subject.as_deref(), Some("me"));
    assert_eq!(verified.identity.roles, ["Send"]);
    assert_eq!(verified.expires, Wall((SECONDS + 660) * 1_000));
}

#[test]
fn a_token_counts_for_a_day_at_most() {
    const DAY: u64 = 24 * 60 * 60;
    for (seconds, counted) in [(DAY - 61, DAY - 1), (DAY, DAY), (DAY * 365 * 100, DAY)] {
        let verified = check(&claims_but("exp", json!(SECONDS + seconds))).unwrap();
        assert_eq!(verified.expires, Wall((SECONDS + counted) * 1_000));
    }
    let endless = check(&claims_but("exp", json!(1e300))).unwrap();
    assert_eq!(endless.expires, Wall((SECONDS + DAY) * 1_000));
}

#[test]
fn the_issuer_is_one_that_is_trusted() {
    let table = [
        json!(null),
        json!(""),
        json!("https://issuer.example/tenant/"),
        json!("HTTPS://issuer.example/tenant"),
        json!("https://other.example"),
    ];
    for name in table {
        let result = check(&claims_but("iss", name.clone()));
        assert_eq!(result, Err(Error::Issuer), "{name}");
    }
    let nobody = verify(
        &ec_key().sign(&claims(), &SystemRandom::new()).unwrap(),
        &[],
        Locality::Network,
        NOW,
    );
    assert_eq!(nobody, Err(Error::Issuer));
}

#[test]
fn times_count_with_the_tolerance_of_the_issuer() {
    let ago = |seconds| json!(SECONDS - seconds);
    let ahead = |seconds| json!(SECONDS + seconds);
    let table = [
        ("exp", json!(null), Err(Error::NoExpiry)),
        ("exp", ago(59), Ok(())),
        ("exp", ago(60), Err(Error::Expired)),
        ("exp", json!(0), Err(Error::Expired)),
        ("exp", json!(-1), Err(Error::Expired)),
        ("exp", json!(1e18), Ok(())),
        ("exp", json!("1800000000"), Err(Error::Malformed)),
        ("nbf", json!(null), Ok(())),
        ("nbf", ahead(60), Ok(())),
        ("nbf", ahead(61), Err(Error::NotYet)),
        ("nbf", json!("0"), Err(Error::Malformed)),
    ];
    for (name, value, expected) in table {
        let result = check(&claims_but(name, value.clone())).map(drop);
        assert_eq!(result, expected, "{name} {value}");
    }
}

#[test]
fn the_audience_is_the_service() {
    let table = [
        (json!("https://servicebus.azure.net"), true),
        (json!("https://servicebus.azure.net/"), true),
        (json!("https://servicebus.azure.net//"), true),
        (json!(["other", "https://servicebus.azure.net"]), true),
        (json!(null), false),
        (json!(""), false),
        (json!([]), false),
        (json!("https://servicebus.azure.net.example"), false),
        (json!("https://SERVICEBUS.azure.net"), false),
        (json!("https://vault.azure.net"), false),
    ];
    for (audience, is_good) in table {
        let result = check(&claims_but("aud", audience.clone())).map(drop);
        let expected = if is_good {
            Ok(())
        } else {
            Err(Error::Audience)
        };
        assert_eq!(result, expected, "{audience}");
    }
}

#[test]
fn the_first_failure_in_the_order_of_the_contract_is_the_answer() {
    let other = ec_key();
    let sign = |claims: &Json| other.sign(claims, &SystemRandom::new()).unwrap();
    let mut issuer = issuer(ec_key().key_set());
    issuer.keys = Arc::new(IssuerKeys::fixed(ec_key().key_set()));
    let issuers = [issuer];
    let check = |claims: &Json| verify(&sign(claims), &issuers, Locality::Network, NOW).map(drop);
    let mut bad = claims_but("exp", json!(1));
    bad["aud"] = json!("other");
    assert_eq!(check(&bad), Err(Error::Signature));
    bad["iss"] = json!("other");
    assert_eq!(check(&bad), Err(Error::Issuer));
    bad["exp"] = json!("soon");
    assert_eq!(check(&bad), Err(Error::Malformed));
}

#[test]
fn a_token_that_was_changed_is_refused() {
    let key = ec_key();
    let issuers = [issuer(key.key_set())];
    let token = key.sign(&claims(), &SystemRandom::new()).unwrap();
    let parts: Vec<_> = token.split('.').collect();
    let check = |token: &str| verify(token, &issuers, Locality::Network, NOW).map(drop);
    assert_eq!(check(&token), Ok(()));
    let more = encoded(&claims_but("roles", json!(["Manage"])));
    let changed = format!("{}.{more}.{}", parts[0], parts[2]);
    assert_eq!(check(&changed), Err(Error::Signature));
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    assert_eq!(check(&unsigned), Err(Error::Signature));
    for malformed in [
        "",
        "..",
        "a.b",
        "abc.def.ghi",
        &format!("{}.{}", parts[0], parts[1]),
        &format!("{token}.{}", parts[2]),
        &format!("{}.{}.%%%", parts[0], parts[1]),
        &format!("{}.{}.{}=", parts[0], parts[1], parts[2]),
        &format!("{}.{}.{}", parts[0], encoded(&json!([])), parts[2]),
        &format!("{}.{}.{}", encoded(&json!("ES256")), parts[1], parts[2]),
        &format!("{}.{}.{}", parts[0], "A".repeat(MAX_TOKEN), parts[2]),
    ] {
        assert_eq!(check(malformed), Err(Error::Malformed), "{malformed}");
    }
}

#[test]
fn every_accepted_algorithm_of_rsa_verifies_and_only_as_itself() {
    let encodings: [(&str, &'static dyn RsaEncoding); 6] = [
        ("RS256", &RSA_PKCS1_SHA256),
        ("RS384", &RSA_PKCS1_SHA384),
        ("RS512", &RSA_PKCS1_SHA512),
        ("PS256", &RSA_PSS_SHA256),
        ("PS384", &RSA_PSS_SHA384),
        ("PS512", &RSA_PSS_SHA512),
    ];
    let jwk = rsa_jwk(&json!({"kid": "a"}));
    for (name, encoding) in encodings {
        for (claimed, _) in encodings {
            let token = rsa_token(&json!({"alg": claimed, "kid": "a"}), encoding);
            let expected = match claimed == name {
                true => Ok(()),
                false => Err(Error::Signature),
            };
            let result = verify_with(&token, std::slice::from_ref(&jwk));
            assert_eq!(result, expected, "{name} called {claimed}");
        }
    }
}

#[test]
fn a_token_of_the_curve_p_384_verifies_and_only_as_itself() {
    let random = SystemRandom::new();
    let signing = &ECDSA_P384_SHA384_FIXED_SIGNING;
    let pair = || {
        let document = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(signing, document.as_ref(), &random).unwrap()
    };
    let jwk = |pair: &EcdsaKeyPair| {
        // One byte says that both coordinates follow whole.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(48);
        json!({
            "kty": "EC", "crv": "P-384", "kid": "a",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    };
    let key = pair();
    let signed = |algorithm: &str| {
        let header = encoded(&json!({"alg": algorithm, "kid": "a"}));
        let message = format!("{header}.{}", encoded(&claims()));
        let signature = key.sign(&random, message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    assert_eq!(verify_with(&signed("ES384"), &[jwk(&key)]), Ok(()));
    // The key of the curve P-384 verifies no other algorithm of its type.
    let renamed = verify_with(&signed("ES256"), &[jwk(&key)]);
    assert_eq!(renamed, Err(Error::Malformed));
    let other = verify_with(&signed("ES384"), &[jwk(&pair())]);
    assert_eq!(other, Err(Error::Signature));
    let mut forged = signed("ES384");
    let payload = forged.find('.').unwrap() + 1;
    let end = forged.rfind('.').unwrap();
    forged.replace_range(payload..end, &encoded(&claims_but("sub", json!("you"))));
    assert_eq!(verify_with(&forged, &[jwk(&key)]), Err(Error::Signature));
}

#[test]
fn no_algorithm_and_a_secret_made_of_the_public_key_are_refused() {
    let jwk = rsa_jwk(&json!({"kid": "a"}));
    let public = jwk["n"].as_str().unwrap();
    for algorithm in ["HS256", "HS384", "HS512"] {
        let header = encoded(&json!({"alg": algorithm, "kid": "a"}));
        let message = format!("{header}.{}", encoded(&claims()));
        for secret in [public.as_bytes(), &URL_SAFE_NO_PAD.decode(public).unwrap()] {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
            mac.update(message.as_bytes());
            let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
            let token = format!("{message}.{signature}");
            let result = verify_with(&token, std::slice::from_ref(&jwk));
            assert_eq!(result, Err(Error::Malformed), "{algorithm}");
        }
    }
    for algorithm in ["none", "None", "NONE", "", "ES512", "EdDSA", "RS1"] {
        for signature in ["", "AAAA"] {
            let header = encoded(&json!({"alg": algorithm, "kid": "a"}));
            let token = format!("{header}.{}.{signature}", encoded(&claims()));
            let result = verify_with(&token, std::slice::from_ref(&jwk));
            assert_eq!(result, Err(Error::Malformed), "{algorithm}");
        }
    }
}

#[test]
fn a_key_verifies_only_the_algorithms_of_its_type_and_its_own() {
    let token = rsa_token(&json!({"alg": "RS256", "kid": "a"}), &RSA_PKCS1_SHA256);
    let mut ec = ec_key().jwk_set()["keys"][0].clone();
    ec["kid"] = json!("a");
    assert_eq!(
        verify_with(&token, std::slice::from_ref(&ec)),
        Err(Error::Malformed)
    );
    // One that fits is there beside it.
    let rsa = rsa_jwk(&json!({"kid": "a"}));
    assert_eq!(verify_with(&token, &[ec, rsa]), Ok(()));
    let other = rsa_jwk(&json!({"kid": "a", "alg": "PS256"}));
    assert_eq!(verify_with(&token, &[other]), Err(Error::Malformed));
    let same = rsa_jwk(&json!({"kid": "a", "alg": "RS256"}));
    assert_eq!(verify_with(&token, &[same]), Ok(()));
}

#[test]
fn a_key_is_found_by_its_id_or_is_the_only_one() {
    let named = rsa_token(&json!({"alg": "RS256", "kid": "a"}), &RSA_PKCS1_SHA256);
    let nameless = rsa_token(&json!({"alg": "RS256"}), &RSA_PKCS1_SHA256);
    let a = rsa_jwk(&json!({"kid": "a"}));
    let b = rsa_jwk(&json!({"kid": "b"}));
    assert_eq!(verify_with(&nameless, std::slice::from_ref(&b)), Ok(()));
    assert_eq!(
        verify_with(&nameless, &[a.clone(), b.clone()]),
        Err(Error::Signature)
    );
    assert_eq!(verify_with(&named, &[a, b.clone()]), Ok(()));
    assert_eq!(verify_with(&named, &[b]), Err(Error::Signature));
}

#[test]
fn extensions_that_must_be_understood_and_other_keys_in_the_header_are_not_followed() {
    let jwk = rsa_jwk(&json!({"kid": "a"}));
    let header = json!({"alg": "RS256", "kid": "a", "crit": ["exp"]});
    let token = rsa_token(&header, &RSA_PKCS1_SHA256);
    assert_eq!(
        verify_with(&token, std::slice::from_ref(&jwk)),
        Err(Error::Malformed)
    );
    let mut stranger = ec_key().jwk_set()["keys"][0].clone();
    stranger["kid"] = json!("a");
    let header = json!({"alg": "RS256", "kid": "a", "jwk": jwk, "jku": "https://evil.example"});
    let token = rsa_token(&header, &RSA_PKCS1_SHA256);
    assert_eq!(verify_with(&token, &[stranger]), Err(Error::Malformed));
}

#[test]
fn a_token_waits_for_keys_that_are_not_loaded() {
    let key = ec_key();
    let token = key.sign(&claims(), &SystemRandom::new()).unwrap();
    let mut issuer = issuer(key.key_set());
    issuer.keys = Arc::new(IssuerKeys::missing());
    let issuers = [issuer];
    let check = || verify(&token, &issuers, Locality::Network, NOW).map(drop);
    assert_eq!(check(), Err(Error::KeysNotLoaded));
    // Those of before the rotation.
    issuers[0].keys.replace(ec_key().key_set(), NOW);
    assert_eq!(check(), Err(Error::KeysNotLoaded));
    issuers[0].keys.keep(Wall(NOW.0 + 1));
    assert_eq!(check(), Err(Error::Signature));
    issuers[0].keys.replace(key.key_set(), Wall(NOW.0 + 1));
    assert_eq!(check(), Ok(()));
}

#[test]
fn an_issuer_for_this_machine_is_unknown_elsewhere() {
    let key = ec_key();
    let token = key.sign(&claims(), &SystemRandom::new()).unwrap();
    let mut issuer = issuer(key.key_set());
    issuer.is_for_loopback = true;
    let issuers = [issuer];
    let check = |locality| verify(&token, &issuers, locality, NOW).map(drop);
    assert_eq!(check(Locality::Loopback), Ok(()));
    assert_eq!(check(Locality::Network), Err(Error::Issuer));
}

#[test]
fn a_key_that_is_no_ecdsa_key_signs_nothing() {
    for document in [&b""[..], b"-----BEGIN", RSA] {
        assert!(SigningKey::from_pkcs8(document, &SystemRandom::new()).is_err());
    }
    let key = ec_key();
    assert!(!format!("{key:?}").contains("pair"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_verifier_panic(text in ".{0,200}", header in "[ -~]{0,60}", payload in "[ -~]{0,60}") {
        let issuers = [issuer(ec_key().key_set())];
        let _ = verify(&text, &issuers, Locality::Network, NOW);
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let token = format!("{}.{}.{}", part(&header), part(&payload), part(&text));
        let _ = verify(&token, &issuers, Locality::Network, NOW);
        let payload = format!(r#"{{"iss":"{ISSUER}","exp":{payload}}}"#);
        let token = format!("{}.{}.AAAA", part(r#"{"alg":"ES256"}"#), part(&payload));
        let _ = verify(&token, &issuers, Locality::Network, NOW);
    }
}
