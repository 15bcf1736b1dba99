//! Refusals: the errors that a connection was given, one by one, for the operator of the broker.
//!
//! A framework often shows its user less than the broker has said, so the server logs what is
//! collected here: errors that end the connection, a session or a link, refused attaches, logins
//! and tokens, failed requests, rejected messages and refused settlements. An entry holds no token,
//! key or message, but its names are the client's own. A bounded number is kept until the server
//! takes them; the rest is counted.

use amqp::error::condition;
use amqp::{Error, Symbol};

/// Refusals that are kept until the server takes them.
const MAX: usize = 64;
/// Characters of a name or a text that are kept.
const MAX_TEXT: usize = 1_024;

/// The subject of a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The connection is closed.
    Connection,
    /// SASL ends without success, and the connection with it.
    Login,
    /// A session is ended.
    Session,
    /// An attach is refused.
    Attach,
    /// An attached link is detached.
    Link,
    /// A token is not accepted.
    Token,
    /// A request to a node or a coordinator is not done.
    Request,
    /// A message is not taken.
    Message,
    /// A settlement is not done.
    Settlement,
}

/// The severity of a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// The client, its configuration or its rights need attention.
    Warning,
    /// It also happens to correct clients, which go on by themselves.
    Notice,
    /// No refusal: a wait ended without what it was for.
    Expected,
}

/// What one client was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientRefusal {
    /// The subject.
    pub subject: Subject,
    /// The name of the link, or of the link that the request came by.
    pub link: Option<String>,
    /// The path of the entity or node, without scheme and host.
    pub entity: Option<String>,
    /// The operation of a request, if there is such an operation.
    pub operation: Option<&'static str>,
    /// The condition that the client got, or would have got if the protocol had a field for it.
    pub condition: Symbol,
    /// The description for a person.
    pub text: String,
}

impl ClientRefusal {
    /// Its severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        let is = |condition: Symbol| self.condition == condition;
        match self.subject {
            Subject::Connection if is(condition::CONNECTION_FORCED) => Severity::Notice,
            Subject::Link | Subject::Settlement if is(condition::SESSION_LOCK_LOST) => {
                Severity::Notice
            }
            Subject::Settlement if is(condition::MESSAGE_LOCK_LOST) => Severity::Notice,
            Subject::Link if is(condition::DETACH_FORCED) => Severity::Notice,
            Subject::Request if is(condition::MESSAGE_NOT_FOUND) => Severity::Notice,
            Subject::Attach if is(condition::TIMEOUT) => Severity::Expected,
            _ => Severity::Warning,
        }
    }
}

/// The refusals of a connection since they were last taken.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The first of them.
    pub first: Vec<ClientRefusal>,
    /// The number of further refusals.
    pub left_out: u64,
}

/// Where a refusal comes from, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The name of the link.
    pub link: Option<&'a str>,
    /// The path of the entity or node.
    pub entity: Option<&'a str>,
    /// The operation of a request.
    pub operation: Option<&'static str>,
}

impl Refusals {
    /// Keeps a refusal, or counts it if enough are kept.
    pub fn note(&mut self, subject: Subject, origin: Origin<'_>, error: &Error) {
        if self.first.len() == MAX {
            self.left_out += 1;
            return;
        }
        self.first.push(ClientRefusal {
            subject,
            link: origin.link.map(shortened),
            entity: origin.entity.map(shortened),
            operation: origin.operation,
            condition: error.condition.clone(),
            text: shortened(error.description.as_deref().unwrap_or_default()),
        });
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(condition: Symbol) -> Error {
        Error::new(condition, "why")
    }

    fn check(subject: Subject, condition: Symbol, expected: Severity) {
        let mut refusals = Refusals::default();
        refusals.note(subject, Origin::default(), &error(condition));
        assert_eq!(refusals.first[0].severity(), expected, "{refusals:?}");
    }

    #[test]
    fn what_a_client_expects_now_and_then_weighs_less() {
        use Subject::{Attach, Connection, Link, Message, Request, Session, Settlement, Token};
        check(Attach, condition::TIMEOUT, Severity::Expected);
        check(Request, condition::MESSAGE_NOT_FOUND, Severity::Notice);
        check(Connection, condition::CONNECTION_FORCED, Severity::Notice);
        check(Link, condition::SESSION_LOCK_LOST, Severity::Notice);
        check(Link, condition::DETACH_FORCED, Severity::Notice);
        check(Settlement, condition::MESSAGE_LOCK_LOST, Severity::Notice);
        check(Settlement, condition::SESSION_LOCK_LOST, Severity::Notice);
        check(Settlement, condition::DECODE_ERROR, Severity::Warning);
        check(Message, condition::DECODE_ERROR, Severity::Warning);
        check(Request, condition::SESSION_LOCK_LOST, Severity::Warning);
        check(Attach, condition::NOT_FOUND, Severity::Warning);
        check(Link, condition::NOT_FOUND, Severity::Warning);
        check(Token, condition::UNAUTHORIZED_ACCESS, Severity::Warning);
        check(Session, condition::WINDOW_VIOLATION, Severity::Warning);
        check(Connection, condition::FRAMING_ERROR, Severity::Warning);
    }

    #[test]
    fn refusals_beyond_a_bound_are_counted() {
        let mut refusals = Refusals::default();
        for _ in 0..MAX + 3 {
            let error = error(condition::NOT_FOUND);
            refusals.note(Subject::Attach, Origin::default(), &error);
        }
        assert_eq!(refusals.first.len(), MAX);
        assert_eq!(refusals.left_out, 3);
    }

    #[test]
    fn long_names_are_shortened() {
        let name = "é".repeat(MAX_TEXT + 1);
        let origin = Origin {
            link: Some(&name),
            ..Origin::default()
        };
        let mut refusals = Refusals::default();
        refusals.note(Subject::Attach, origin, &error(condition::NOT_FOUND));
        let kept = refusals.first[0].link.as_deref().unwrap_or_default();
        assert_eq!(kept.chars().count(), MAX_TEXT);
    }
}
