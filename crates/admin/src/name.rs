//! Names that entities and rules may be given. (Entities contract 1.1)

use crate::error::Error;

/// The longest path of a queue or topic.
const LONGEST_PATH: usize = 260;
/// The longest name of a subscription or rule.
const LONGEST_NAME: usize = 50;
/// The rule that is made when none is given.
pub(crate) const DEFAULT_RULE: &str = "$Default";

/// Whether a queue or topic may be called so.
pub(crate) fn check_path(path: &str) -> Result<(), Error> {
    if path.len() > LONGEST_PATH {
        return Err(bad(path, "it has more than 260 characters"));
    }
    check_characters(path, path.replace('/', "").as_str())?;
    let mut segments = path.split('/');
    if segments.any(str::is_empty) {
        return Err(bad(path, "a segment between two '/' is empty"));
    }
    let mut segments = path.split('/');
    if segments.any(|segment| segment.eq_ignore_ascii_case("subscriptions")) {
        return Err(bad(path, "'subscriptions' stands for those of a topic"));
    }
    let mut below = path.split('/').skip(1);
    if below.any(|segment| segment.eq_ignore_ascii_case("messages")) {
        return Err(bad(path, "'messages' stands for those of an entity"));
    }
    Ok(())
}

/// Whether a subscription may be called so.
pub(crate) fn check_subscription(name: &str) -> Result<(), Error> {
    check_short(name)
}

/// Whether a rule may be called so.
pub(crate) fn check_rule(name: &str) -> Result<(), Error> {
    if name.eq_ignore_ascii_case(DEFAULT_RULE) {
        return Ok(());
    }
    check_short(name)
}

fn check_short(name: &str) -> Result<(), Error> {
    if name.len() > LONGEST_NAME {
        return Err(bad(name, "it has more than 50 characters"));
    }
    check_characters(name, name)
}

/// Looks at the edges of `name`, and at what is in it besides what may be anyway.
fn check_characters(name: &str, rest: &str) -> Result<(), Error> {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !rest.chars().all(is_inner) {
        let allowed = "only letters, digits, '.', '-' and '_' may be in it, and '/' in a path";
        Err(bad(name, allowed))
    } else if !is_edge(name.chars().next()) || !is_edge(name.chars().next_back()) {
        Err(bad(name, "it must begin and end with a letter or digit"))
    } else {
        Ok(())
    }
}

fn bad(name: &str, why: &str) -> Error {
    let name: String = name.chars().take(LONGEST_PATH).collect();
    Error::bad(format!("Bad Request. '{name}' can not be a name: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_or_refused() {
        for path in ["orders", "a/b.c/D-e_f", "7", "messages", &"x".repeat(260)] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        let long = "x".repeat(261);
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            "-a",
            "a b",
            "a?b",
            "ä",
            "$a",
            "a/$DeadLetterQueue",
            &long,
            "t/Subscriptions",
            "t/subscriptions/s",
            "a/messages",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
        assert_eq!(check_subscription(&"x".repeat(50)), Ok(()));
        for name in ["", "a/b", "$Default", &"x".repeat(51)] {
            assert!(check_subscription(name).is_err(), "{name}");
        }
        assert_eq!(check_rule("$default"), Ok(()));
        assert!(check_rule("$other").is_err());
    }
}
