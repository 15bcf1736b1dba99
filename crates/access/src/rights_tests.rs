//! A check of a credential makes the same number of comparisons for every input. Comparisons are
//! counted, not timed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::Wall;

use super::*;
use crate::access::Access;
use crate::token;

const NOW: Wall = Wall(1_700_000_000_000);

/// A rule of the namespace with two keys, and one of a queue with a single key.
fn access() -> Access {
    let rule = |name: &str, secondary: Option<&str>, entity: Option<&str>| AccessRule {
        name: name.to_owned(),
        primary: Secret::new(format!("{name}-key")),
        secondary: secondary.map(|key| Secret::new(key.to_owned())),
        rights: Rights::ALL,
        entity: entity.map(str::to_owned),
    };
    Access::new(AccessRules {
        rules: vec![
            rule("two", Some("two-second"), None),
            rule("one", None, Some("orders")),
        ],
        ..AccessRules::default()
    })
}

/// What `work` answers, and the bytes of secrets that were compared meanwhile.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    COMPARED.set(0);
    let answer = work();
    (answer, COMPARED.get())
}

fn log_in(name: &str, key: &str) -> (bool, usize) {
    let access = access();
    counted(|| access.log_in(name, key.as_bytes()).is_some())
}

fn verify(name: &str, key: &str) -> (bool, usize) {
    let access = access();
    let key = Secret::new(key.to_owned());
    let token = token::sign("sb://localhost/orders", name, &key, Wall(NOW.0 + 60_000));
    counted(|| token::verify(&token, "orders", &access, NOW).is_ok())
}

#[test]
fn a_key_takes_as_many_comparisons_whatever_it_is() {
    assert_eq!(log_in("two", "two-key"), (true, 64));
    assert_eq!(log_in("two", "two-second"), (true, 64));
    assert_eq!(log_in("one", "one-key"), (true, 64));
    for key in ["", "t", "two-kez", "Two-key", "two-key ", "one-key"] {
        assert_eq!(log_in("two", key), (false, 64), "{key:?}");
    }
}

#[test]
fn a_name_that_nobody_has_takes_as_many_as_one_that_somebody_has() {
    assert_eq!(log_in("nobody", "nobody"), (false, 64));
    assert_eq!(log_in("", ""), (false, 64));
    assert_eq!(verify("nobody", "nobody"), (false, 256));
}

#[test]
fn a_signature_takes_as_many_comparisons_whichever_key_has_made_it_or_none() {
    assert_eq!(verify("two", "two-key"), (true, 256));
    assert_eq!(verify("two", "two-second"), (true, 256));
    assert_eq!(verify("one", "one-key"), (true, 256));
    assert_eq!(verify("two", "another"), (false, 256));
}

#[test]
fn a_signature_that_is_right_but_for_one_byte_takes_as_many_wherever_that_is() {
    let key = Secret::new("key".to_owned());
    let right = key.sign(b"text");
    for at in 0..right.len() {
        let mut wrong = right;
        wrong[at] ^= 1;
        let (is_signed, compared) = counted(|| key.signed(b"text", &wrong));
        assert_eq!((is_signed, compared), (false, 32), "byte {at}");
    }
    assert_eq!(counted(|| key.signed(b"text", &right)), (true, 32));
    let encoded = STANDARD.encode(right);
    assert!(!key.signed(b"text", encoded.as_bytes()), "another length");
}

#[test]
fn an_empty_key_lets_nobody_in_and_takes_as_many_comparisons() {
    let empty = Secret::new(String::new());
    let shown = Fingerprint::of(b"");
    assert_eq!(counted(|| empty.matches(&shown)), (false, 32));
    let signature = empty.sign(b"text");
    assert_eq!(counted(|| empty.signed(b"text", &signature)), (false, 32));
}
