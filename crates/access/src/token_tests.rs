//! Tokens as the encoders of the SDKs make them, and forged tokens.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::*;
use crate::rights::{AccessRule, AccessRules, Rights};

const KEY: &str = "c2VjcmV0LWtleS1vZi1vcmRlcnM=";
const NOW: Wall = Wall(1_700_000_000_000);
const LATER: &str = "1700003600";

fn rule(name: &str, key: &str, entity: Option<&str>, rights: Rights) -> AccessRule {
    AccessRule {
        name: name.to_owned(),
        primary: Secret::new(key.to_owned()),
        secondary: Some(Secret::new(format!("{key}-second"))),
        rights,
        entity: entity.map(str::to_owned),
    }
}

fn access() -> Access {
    let send = Rights {
        send: true,
        ..Rights::NONE
    };
    Access::new(AccessRules {
        rules: vec![
            rule("root", KEY, None, Rights::ALL),
            rule("sender", "other", Some("Orders"), send),
        ],
        ..AccessRules::default()
    })
}

fn signature(resource: &str, expiry: &str, key: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("any length");
    mac.update(format!("{resource}\n{expiry}").as_bytes());
    STANDARD
        .encode(mac.finalize().into_bytes())
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D")
}

fn token(resource: &str, expiry: &str, name: &str, key: &str) -> String {
    let sig = signature(resource, expiry, key);
    format!("SharedAccessSignature sr={resource}&sig={sig}&se={expiry}&skn={name}")
}

fn rights(token: &str, audience: &str, access: &Access) -> Result<Rights, Error> {
    let granted = verify(token, audience, access, NOW)?;
    Ok(access.rights(&granted.credential, audience))
}

fn check(token: &str, audience: &str) -> Result<Rights, Error> {
    rights(token, audience, &access())
}

#[test]
fn every_encoders_resource_is_taken_as_it_was_signed() {
    let resources = [
        ("encodeURIComponent", "sb%3A%2F%2Flocalhost%3A5672%2Forders"),
        ("quote_plus", "sb%3A%2F%2Flocalhost%3A5672%2Forders"),
        ("URLEncoder", "amqp%3A%2F%2Flocalhost%2Forders"),
        ("WebUtility, lower case", "amqps%3a%2f%2flocalhost%2forders"),
        ("namespace wide", "amqps%3a%2f%2flocalhost%2f"),
        ("not encoded at all", "sb://localhost/orders"),
        ("upper case path", "sb%3A%2F%2Flocalhost%2FORDERS"),
    ];
    for (encoder, resource) in resources {
        assert_eq!(
            check(&token(resource, LATER, "root", KEY), "orders"),
            Ok(Rights::ALL),
            "{encoder}"
        );
    }
}

#[test]
fn a_resource_signed_in_another_encoding_than_sent_is_taken_too() {
    let sent = "sb%3A%2F%2Fhost%2Forders";
    for signed in ["sb%3a%2f%2fhost%2forders", sent] {
        let sig = signature(signed, LATER, KEY);
        let token = format!("SharedAccessSignature sr={sent}&sig={sig}&se={LATER}&skn=root");
        assert_eq!(check(&token, "orders"), Ok(Rights::ALL), "{signed}");
    }
    let sig = signature("sb%3A%2F%2Fhost%2Forders", LATER, KEY);
    let token = format!("SharedAccessSignature sr=sb://host/orders&sig={sig}&se={LATER}&skn=root");
    assert_eq!(
        check(&token, "orders"),
        Ok(Rights::ALL),
        "signed encoded, sent decoded"
    );
}

#[test]
fn fields_come_in_any_order_and_the_prefix_in_any_case() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    let sig = signature(resource, LATER, KEY);
    let token = format!("sharedaccesssignature skn=root&se={LATER}&sig={sig}&sr={resource}");
    assert_eq!(check(&token, "orders"), Ok(Rights::ALL));
}

#[test]
fn both_keys_of_a_rule_sign() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    for key in [KEY.to_owned(), format!("{KEY}-second")] {
        assert_eq!(
            check(&token(resource, LATER, "root", &key), "orders"),
            Ok(Rights::ALL)
        );
    }
}

#[test]
fn a_key_is_its_text_and_is_never_decoded() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    let decoded = STANDARD.decode(KEY).expect("the key is base64");
    let decoded = String::from_utf8(decoded).expect("the key is text inside");
    assert_eq!(
        check(&token(resource, LATER, "root", &decoded), "orders"),
        Err(Error::Signature)
    );
}

#[test]
fn a_forged_token_is_refused() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    let good = token(resource, LATER, "root", KEY);
    let cases = [
        ("another key", token(resource, LATER, "root", "wrong")),
        ("an unknown name", token(resource, LATER, "nobody", KEY)),
        (
            "the stand-in's key",
            token(resource, LATER, "nobody", "nobody"),
        ),
        ("an empty name", token(resource, LATER, "", "nobody")),
        ("another expiry", good.replace(LATER, "1700009999")),
        ("another resource", good.replace("orders", "orders2")),
        (
            "no base64",
            format!("SharedAccessSignature sr={resource}&sig=%%%&se={LATER}&skn=root"),
        ),
        (
            "an empty signature",
            format!("SharedAccessSignature sr={resource}&sig=&se={LATER}&skn=root"),
        ),
        ("half a signature", {
            let sig = signature(resource, LATER, KEY);
            format!(
                "SharedAccessSignature sr={resource}&sig={}&se={LATER}&skn=root",
                &sig[..20]
            )
        }),
    ];
    for (what, token) in cases {
        assert_eq!(check(&token, "orders"), Err(Error::Signature), "{what}");
    }
}

#[test]
fn a_malformed_token_is_refused_as_such() {
    let cases = [
        "",
        "SharedAccessSignature",
        "SharedAccessSignature ",
        "Bearer abc",
        "SharedAccessSignature sr=a&sig=b&se=1",
        "SharedAccessSignature sr=a&sig=b&se=soon&skn=root",
        "SharedAccessSignature sr=a&sig=b&se=-1&skn=root",
        "SharedAccessSignature sr=a&sr=b&sig=b&se=1&skn=root",
        "SharedAccessSignature sr",
        "SharedAccessSignaturé sr=a",
    ];
    for token in cases {
        assert_eq!(check(token, "orders"), Err(Error::Malformed), "{token}");
    }
}

#[test]
fn an_expired_token_is_refused_at_the_second_it_names() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    assert_eq!(
        check(&token(resource, "1700000000", "root", KEY), "orders"),
        Err(Error::Expired(Wall(1_700_000_000_000)))
    );
    assert_eq!(
        Error::Expired(Wall(1_700_000_000_000)).to_string(),
        "ExpiredToken: The token is expired. Expiration time: '2023-11-14 22:13:20Z'."
    );
    let latest = Error::Expired(Wall(u64::MAX)).to_string();
    assert!(latest.contains("'9999-12-30 "), "{latest}");
    assert_eq!(
        check(&token(resource, "1700000001", "root", KEY), "orders"),
        Ok(Rights::ALL)
    );
}

#[test]
fn a_token_far_in_the_future_never_expires() {
    let resource = "sb%3A%2F%2Fhost%2Forders";
    let far = u64::MAX.to_string();
    let granted = verify(
        &token(resource, &far, "root", KEY),
        "orders",
        &access(),
        NOW,
    )
    .expect("sound");
    assert_eq!(granted.expires, Wall(u64::MAX));
}

#[test]
fn a_token_covers_only_what_is_at_or_below_its_resource() {
    let table = [
        ("sb%3A%2F%2Fhost%2Forders", "orders", Ok(Rights::ALL)),
        (
            "sb%3A%2F%2Fhost%2Forders",
            "orders/$deadletterqueue",
            Ok(Rights::ALL),
        ),
        ("sb%3A%2F%2Fhost%2Forders", "orders2", Err(Error::Audience)),
        ("sb%3A%2F%2Fhost%2Forders", "other", Err(Error::Audience)),
        ("sb%3A%2F%2Fhost%2Forders", "", Err(Error::Audience)),
        ("sb%3A%2F%2Fhost", "anything/at/all", Ok(Rights::ALL)),
        (
            "sb%3A%2F%2Fhost%2Forders%2F%24management",
            "orders",
            Ok(Rights::ALL),
        ),
    ];
    for (resource, audience, expected) in table {
        assert_eq!(
            check(&token(resource, LATER, "root", KEY), audience),
            expected,
            "{resource} {audience}"
        );
    }
}

#[test]
fn a_rule_of_an_entity_signs_for_that_entity_only() {
    let send = Rights {
        send: true,
        ..Rights::NONE
    };
    let wide = "sb%3A%2F%2Fhost%2F";
    assert_eq!(
        check(&token(wide, LATER, "sender", "other"), "orders"),
        Ok(send)
    );
    assert_eq!(
        check(
            &token(wide, LATER, "sender", "other"),
            "orders/$deadletterqueue"
        ),
        Ok(send)
    );
    assert_eq!(
        check(&token(wide, LATER, "sender", "other"), "orders2"),
        Err(Error::Signature)
    );
    assert_eq!(
        check(&token(wide, LATER, "sender", "other"), ""),
        Err(Error::Signature)
    );
}

#[test]
fn a_key_name_may_be_escaped_or_hold_a_plus_for_a_space() {
    let access = Access::new(AccessRules {
        rules: vec![rule("my key", KEY, None, Rights::ALL)],
        ..AccessRules::default()
    });
    for name in ["my%20key", "my+key"] {
        let token = token("sb%3A%2F%2Fhost%2F", LATER, name, KEY);
        assert!(rights(&token, "orders", &access).is_ok(), "{name}");
    }
}

#[test]
fn a_rule_with_an_empty_key_lets_nobody_in() {
    let mut empty = rule("root", "", None, Rights::ALL);
    empty.secondary = None;
    let access = Access::new(AccessRules {
        rules: vec![empty],
        ..AccessRules::default()
    });
    let token = token("sb%3A%2F%2Fhost%2F", LATER, "root", "");
    assert_eq!(rights(&token, "orders", &access), Err(Error::Signature));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_verifier_panic(text in ".{0,200}", audience in ".{0,40}") {
        let _ = verify(&text, &audience, &access(), NOW);
        let _ = verify(&format!("{PREFIX}sr={text}&sig={text}&se=1800000000&skn=root"), &audience, &access(), NOW);
    }
}
