//! Credentials: key sets, JSON Web Tokens, shared access signatures and Authorization headers. What
//! no key has made gives no right, and what is signed for a resource is good for it.

#![no_main]

use std::sync::{Arc, LazyLock};

use access::{
    Access, AccessRule, AccessRules, Grant, Issuer, IssuerKeys, KeySet, KeySource, Locality,
    Operation, Rights, Secret, scope, sign, token,
};
use broker::Wall;
use libfuzzer_sys::fuzz_target;

const NOW: Wall = Wall(1_700_000_000_000);
const LATER: Wall = Wall(NOW.0 + 60_000);
const KEY: &str = "key-that-no-input-has";
const RULE: &str = "root";
const ISSUER: &str = "https://issuer.example";
/// The key of an example. [RFC 7515 A.3]
const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256",
    "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

static ACCESS: LazyLock<Access> = LazyLock::new(|| {
    let keys = KeySet::parse(KEYS.as_bytes()).expect("it is a set");
    assert!(!keys.is_empty());
    trusting(keys)
});

fn trusting(keys: KeySet) -> Access {
    Access::new(AccessRules {
        rules: vec![AccessRule {
            name: RULE.to_owned(),
            primary: Secret::new(KEY.to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        }],
        issuers: vec![Issuer {
            name: ISSUER.to_owned(),
            audiences: vec!["a".to_owned()],
            leeway_ms: 0,
            grants: Grant::usual(),
            is_for_loopback: false,
            source: KeySource::Fixed,
            keys: Arc::new(IssuerKeys::fixed(keys)),
        }],
        ..AccessRules::default()
    })
}

// A token comes first, then a byte that no text has, then a key set.
fuzz_target!(|input: &[u8]| {
    let (shown, keys) = match input.iter().position(|byte| *byte == 0xff) {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, input),
    };
    let shown = String::from_utf8_lossy(shown);
    check_forged(&shown);
    check_signed(&shown);
    if let Ok(keys) = KeySet::parse(keys) {
        let access = trusting(keys);
        if let Ok(verified) = access.verify_jwt(&shown, Locality::Network, NOW) {
            assert!(verified.expires > NOW);
            let _ = access.rights(&verified.credential, "orders");
        }
    }
});

/// No input knows a key.
fn check_forged(shown: &str) {
    assert!(ACCESS.verify_jwt(shown, Locality::Network, NOW).is_err());
    assert!(token::verify(shown, "orders", &ACCESS, NOW).is_err());
    for header in [
        shown.to_owned(),
        format!("Bearer {shown}"),
        format!("Basic {shown}"),
    ] {
        let refused = ACCESS
            .check(
                Some(&header),
                Operation::Operate,
                "/orders",
                Locality::Network,
                NOW,
            )
            .expect_err("no key has made it");
        let _ = (refused.sub_code(), refused.to_string());
    }
}

/// A signature is good where it was given for, and one for something else is not read differently.
fn check_signed(path: &str) {
    let resource = format!("sb://host/{path}");
    let signed = sign(&resource, RULE, &Secret::new(KEY.to_owned()), LATER);
    match token::verify(&signed, &scope::of_uri(&resource), &ACCESS, NOW) {
        Ok(verified) => assert_eq!(verified.expires, LATER),
        // It is longer than a token may be.
        Err(error) => assert_eq!(error, token::Error::Malformed),
    }
}
