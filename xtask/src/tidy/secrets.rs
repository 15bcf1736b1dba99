//! Secrets: what a client shows is compared with keys in one place, in constant time.
//!
//! That place is `access::rights`, the only one that may name `subtle`. Elsewhere no key,
//! signature, password or fingerprint stands on a line with a comparison. Rules that are compared
//! as a whole are an administrator's, old with new; a client cannot learn of them by guessing.

use super::Source;

/// Where comparisons of secrets are.
const PLACE: &str = "crates/access/src/rights.rs";
/// The crates that hold keys, or what is compared with them.
const HOLDERS: &[&str] = &[
    "access",
    "admin",
    "broker",
    "railbus",
    "server",
    "servicebus",
    "rabbitmq",
];
/// What secrets are called.
const WORDS: &[&str] = &[
    "primary_key",
    "secondary_key",
    "signature",
    "password",
    "secret",
    "fingerprint",
];
/// How things are compared.
const COMPARISONS: &[&str] = &[
    " == ",
    " != ",
    ".eq(",
    ".ne(",
    ".cmp(",
    ".starts_with(",
    ".ends_with(",
    ".contains(",
    "ct_eq(",
];
/// The crate that compares in constant time, as it is imported.
const LIBRARY: &str = "subtle::";

/// Finds comparisons of secrets that are elsewhere.
pub fn check(source: &Source, findings: &mut Vec<String>) {
    if source.path == PLACE || !is_of_holder(&source.path) {
        return;
    }
    // Tests compare keys to see that they are there.
    let (code, _) = source
        .text
        .split_once("#[cfg(test)]")
        .unwrap_or((&source.text, ""));
    let lines = code.lines().enumerate();
    let found = lines.filter(|(_, line)| compares(line) || line.contains(LIBRARY));
    findings.extend(found.map(|(number, _)| {
        format!(
            "{}:{}: secrets are compared in {PLACE} only, in constant time",
            source.path,
            number + 1
        )
    }));
}

fn is_of_holder(path: &str) -> bool {
    let inside = path.strip_prefix("crates/");
    let inside = inside.and_then(|path| path.split_once("/src/"));
    inside.is_some_and(|(name, file)| HOLDERS.contains(&name) && !file.contains("tests"))
}

fn compares(line: &str) -> bool {
    let is_comment = line.trim_start().starts_with("//");
    let compares = COMPARISONS
        .iter()
        .any(|comparison| line.contains(comparison));
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = line.split(|c| !is_part(c));
    !is_comment && compares && words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut findings = Vec::new();
        check(&source, &mut findings);
        findings.len()
    }

    const ELSEWHERE: &str = "crates/servicebus/src/client/sasl.rs";

    #[test]
    fn a_secret_that_is_compared_elsewhere_is_found() {
        for line in [
            "if rule.primary_key == shown {",
            "    .any(|rule| rule.secondary_key.as_deref().eq(&shown))",
            "let known = password.starts_with(key);",
            "use subtle::ConstantTimeEq;",
        ] {
            assert_eq!(findings(ELSEWHERE, line), 1, "{line}");
            assert_eq!(
                findings("crates/server/src/transport/listener.rs", line),
                1,
                "{line}"
            );
            assert_eq!(findings(PLACE, line), 0, "{line}");
        }
    }

    #[test]
    fn whatever_is_no_secret_and_all_tests_may_be_compared() {
        for line in [
            "if rule.name == name {",
            "// a signature == another",
            "let is_secret = path.ends_with(\"primary-key\");",
            "#[cfg(test)]\nmod tests { fn f() { assert!(signature == other); } }",
        ] {
            assert_eq!(findings(ELSEWHERE, line), 0, "{line}");
        }
        let test = "crates/servicebus/tests/dialect/cbs.rs";
        assert_eq!(findings(test, "if signature == other {"), 0);
    }
}
