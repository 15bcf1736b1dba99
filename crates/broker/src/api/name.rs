//! Name: what queues, topics, subscriptions and rules may be called. (docs/spec/entities.md#1.1)
//!
//! Each path that creates an entity or a rule for a client checks its name here first.
//! Invariant: a name that passes has no character and no segment that an address could not carry.

/// The rule of a subscription that is created without one: the only name that may begin with `$`.
pub const DEFAULT_RULE: &str = "$Default";

/// The longest path of a queue or topic, in characters.
const LONGEST_PATH: usize = 260;
/// The longest name of a subscription or a rule, in characters.
const LONGEST_NAME: usize = 50;
/// Between a topic's path and a subscription's name.
pub(crate) const SUBSCRIPTIONS: &str = "/Subscriptions/";
/// How the broker's own names of temporary queues and topics begin.
pub(super) const TEMPORARY: &str = "railbus.temporary.";

/// Why a name is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NameError {
    /// The cloud's sentence, which leaves `~` out. It quotes the address of the request, or the
    /// name where there is no request.
    #[error(
        "'{0}' contains character(s) that is not allowed by Service Bus. Entity segments can contain \
         only letters, numbers, periods (.), hyphens (-), and underscores (_)."
    )]
    Characters(String),
    /// The name is empty or too long.
    #[error("{what} has 1 to {limit} characters, and this one has {count}")]
    Length {
        /// What is named.
        what: &'static str,
        /// The most characters that it may have.
        limit: usize,
        /// The characters that it has.
        count: usize,
    },
    /// The id of a client would not fit into a path.
    #[error("the client id '{0}' contains '/', '\\' or a control character")]
    ClientId(String),
    /// The path would be taken for something else.
    #[error("the path '{path}' is reserved: {rule}")]
    Reserved {
        /// The path.
        path: String,
        /// What it would be taken for.
        rule: &'static str,
    },
}

impl NameError {
    /// The same error of a request, whose address the cloud quotes instead of the name.
    #[must_use]
    pub fn in_request(self, address: String) -> Self {
        match self {
            Self::Characters(_) => Self::Characters(address),
            other => other,
        }
    }
}

/// Whether a queue or a topic may have this path.
///
/// # Errors
/// When it may not; says why.
pub fn check_path(path: &str) -> Result<(), NameError> {
    check_length("the path of a queue or topic", path, LONGEST_PATH)?;
    if !path.split('/').all(|segment| is_segment(segment, "._-~")) {
        return Err(NameError::Characters(path.to_owned()));
    }
    match reservation(path) {
        None => Ok(()),
        Some(rule) => Err(NameError::Reserved {
            path: path.to_owned(),
            rule,
        }),
    }
}

/// Whether a subscription may have this name.
///
/// # Errors
/// When it may not; says why.
pub fn check_subscription_name(name: &str) -> Result<(), NameError> {
    check_length("the name of a subscription", name, LONGEST_NAME)?;
    check_segment(name, "._-~")
}

/// Whether a rule may have this name.
///
/// # Errors
/// When it may not; says why.
pub fn check_rule_name(name: &str) -> Result<(), NameError> {
    if name.eq_ignore_ascii_case(DEFAULT_RULE) {
        return Ok(());
    }
    check_length("the name of a rule", name, LONGEST_NAME)?;
    check_segment(name, "._-")
}

fn check_length(what: &'static str, name: &str, limit: usize) -> Result<(), NameError> {
    let count = name.chars().count();
    if (1..=limit).contains(&count) {
        Ok(())
    } else {
        Err(NameError::Length { what, limit, count })
    }
}

fn check_segment(name: &str, marks: &str) -> Result<(), NameError> {
    if is_segment(name, marks) {
        Ok(())
    } else {
        Err(NameError::Characters(name.to_owned()))
    }
}

/// Whether `segment` has letters, digits and `marks` alone, and a client can write it in an
/// address: libraries take `.`, `..` and empty segments out.
fn is_segment(segment: &str, marks: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    !matches!(segment, "" | "." | "..") && segment.chars().all(is_allowed)
}

/// What a path would be taken for, if it would.
fn reservation(path: &str) -> Option<&'static str> {
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    let start = path.get(..TEMPORARY.len()).unwrap_or_default();
    if is(start, TEMPORARY) {
        Some("paths that begin with 'railbus.temporary.' are those of temporary queues and topics")
    } else if path.split('/').any(|segment| is(segment, "subscriptions")) {
        Some("a segment 'subscriptions' stands for the subscriptions of a topic")
    } else if is_of_messages(path) {
        Some("a path that ends like one of messages stands for the messages of an entity")
    } else {
        None
    }
}

/// Whether a path ends like one of messages over HTTP: all those of an entity, the next one, or one
/// with its lock. (docs/spec/admin.md#11)
fn is_of_messages(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').collect();
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    match *segments {
        [.., last] if is(last, "messages") => true,
        [_, .., messages, head] if is(messages, "messages") && is(head, "head") => true,
        [_, .., messages, _, _] => is(messages, "messages"),
        _ => false,
    }
}

/// The path of a target that may be written as a URI. (docs/spec/entities.md#14.1)
pub(crate) fn path_of(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => target,
    };
    path.trim_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Result<(), NameError>;

    const PATH: Check = check_path;
    const SUBSCRIPTION: Check = check_subscription_name;
    const RULE: Check = check_rule_name;

    fn check_accepted(check: Check, names: &[&str]) {
        for name in names {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    fn check_characters(check: Check, names: &[&str]) {
        for name in names {
            let expected = NameError::Characters((*name).to_owned());
            assert_eq!(check(name), Err(expected), "{name}");
        }
    }

    fn check_length(check: Check, name: &str, expected: &str) {
        assert_eq!(check(name).unwrap_err().to_string(), expected);
    }

    #[test]
    fn letters_digits_and_marks_may_stand_anywhere() {
        let names = [
            "orders",
            "7",
            "Orders_2.in-1",
            "-a",
            "a-",
            "_a",
            "a_",
            ".a",
            "a.",
            "...",
            "-",
            "_",
        ];
        for check in [PATH, SUBSCRIPTION, RULE] {
            check_accepted(check, &names);
        }
        check_accepted(PATH, &["a/b.c/D-e_f", "-a/b-", "_/.a/b._"]);
    }

    #[test]
    fn a_tilde_is_for_queues_topics_and_subscriptions() {
        let names = ["~", "~~", "~a", "a~", "Fault--Message~1"];
        check_accepted(PATH, &names);
        check_accepted(SUBSCRIPTION, &names);
        check_accepted(PATH, &["area/~", "MassTransit/Fault--Shop-Order--"]);
        check_characters(RULE, &names);
    }

    #[test]
    fn other_characters_are_refused_wherever_a_name_is_given() {
        let names = [
            "a b",
            "a!b",
            "a?b",
            "a#",
            "a*",
            "a@b",
            "a\\b",
            "a:b",
            "a%20b",
            "a\0",
            "ä",
            "a\u{fffd}",
            "$a",
            "a$",
            "$management",
            "$namespaceinfo",
        ];
        for check in [PATH, SUBSCRIPTION, RULE] {
            check_characters(check, &names);
        }
        check_characters(PATH, &["a/$DeadLetterQueue", "$Default"]);
        check_characters(SUBSCRIPTION, &["a/b", "$Default"]);
        check_characters(RULE, &["a/b", "$Default2"]);
    }

    #[test]
    fn segments_that_no_address_can_carry_are_refused() {
        check_characters(
            PATH,
            &[
                "/", "/a", "a/", "a//b", ".", "..", "./a", "a/..", "a/./b", "a/../b",
            ],
        );
        for check in [SUBSCRIPTION, RULE] {
            check_characters(check, &["/", ".", ".."]);
        }
    }

    #[test]
    fn names_have_a_length() {
        check_accepted(PATH, &["a", &"x".repeat(260)]);
        check_accepted(SUBSCRIPTION, &["a", &"x".repeat(50)]);
        check_accepted(RULE, &["a", &"x".repeat(50)]);
        check_length(
            PATH,
            &"x".repeat(261),
            "the path of a queue or topic has 1 to 260 characters, and this one has 261",
        );
        check_length(
            PATH,
            "",
            "the path of a queue or topic has 1 to 260 characters, and this one has 0",
        );
        check_length(
            SUBSCRIPTION,
            &"ä".repeat(51),
            "the name of a subscription has 1 to 50 characters, and this one has 51",
        );
        check_length(
            RULE,
            &"x".repeat(51),
            "the name of a rule has 1 to 50 characters, and this one has 51",
        );
    }

    #[test]
    fn the_default_rule_has_a_name_of_its_own() {
        check_accepted(RULE, &["$Default", "$default"]);
    }

    #[test]
    fn paths_that_stand_for_something_else_are_reserved() {
        for path in [
            "subscriptions",
            "t/Subscriptions",
            "t/subscriptions/s",
            "messages",
            "a/b/Messages",
            "a/Messages/head",
            "a/messages/7/b",
            "railbus.temporary.",
            "Railbus.Temporary.0123/a",
        ] {
            let refused = check_path(path);
            assert!(
                matches!(refused, Err(NameError::Reserved { .. })),
                "{path}: {refused:?}"
            );
        }
        check_accepted(PATH, &["railbus.temporary", "a/railbus.temporary.b"]);
        check_accepted(
            PATH,
            &[
                "messages/a",
                "messages/head",
                "messages/7/b",
                "a/messages/b",
                "a/messages/head/b/c",
                "a/messages2",
            ],
        );
        assert_eq!(
            check_path("railbus.temporary.a").unwrap_err().to_string(),
            "the path 'railbus.temporary.a' is reserved: paths that begin with 'railbus.temporary.' \
             are those of temporary queues and topics"
        );
    }

    #[test]
    fn a_request_is_quoted_by_its_address() {
        let address = || "https://host/a%20b?api-version=2021-05".to_owned();
        let refused = check_path("a b").unwrap_err().in_request(address());
        assert_eq!(
            refused.to_string(),
            "'https://host/a%20b?api-version=2021-05' contains character(s) that is not allowed by \
             Service Bus. Entity segments can contain only letters, numbers, periods (.), hyphens \
             (-), and underscores (_)."
        );
        let long = check_path("").unwrap_err();
        assert_eq!(long.clone().in_request(address()), long);
    }
}
