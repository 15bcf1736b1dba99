//! Errors: the response to a request that is refused. (docs/spec/admin.md#8)

use broker::{EntityError, EntityKind, NameError, RuleError};
use http::StatusCode;

use crate::data::injected;

/// Why a request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// Of the response.
    pub status: StatusCode,
    /// The sub-code by which SDKs distinguish errors of one status.
    pub sub_code: Option<u32>,
    /// The description for a person.
    pub text: String,
    /// Where the text begins to repeat the body.
    pub(crate) quote: Option<usize>,
}

impl Error {
    /// An error of this status.
    pub fn new(status: StatusCode, sub_code: Option<u32>, text: impl Into<String>) -> Self {
        Self {
            status,
            sub_code,
            text: text.into(),
            quote: None,
        }
    }

    /// Adds text that may repeat the body, which holds messages or keys of an entity.
    pub(crate) fn quoting(mut self, words: impl std::fmt::Display) -> Self {
        self.quote.get_or_insert(self.text.len());
        self.text.push_str(&format!(": {words}."));
        self
    }

    /// The text without what repeats the body, and without the query of an address in quotation
    /// marks, which may hold anything: only this part of it may be in a log.
    #[must_use]
    pub fn unquoted(&self) -> String {
        let end = self.quote.unwrap_or(self.text.len());
        let text = self.text.get(..end).unwrap_or_default();
        let query = text.find('?').and_then(|start| {
            let length = text[start..].find('\'')?;
            Some(start..start + length)
        });
        let mut text = text.to_owned();
        if let Some(query) = query {
            text.replace_range(query, "");
        }
        text
    }

    /// The request is invalid.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Some(40_000), text)
    }

    /// A property has an invalid value.
    pub(crate) fn value(property: &str, why: impl std::fmt::Display) -> Self {
        Self::bad(format!(
            "Bad Request. The value of {property} is not possible: {why}. Parameter name: {property}"
        ))
    }

    /// A property differs that cannot be changed. (docs/spec/admin.md#8.5)
    fn immutable(property: &str, kind: EntityKind) -> Self {
        let kind = match kind {
            EntityKind::Queue => "Queue",
            EntityKind::Topic => "Topic",
            EntityKind::Subscription => "Subscription",
        };
        Self::bad(match property {
            "EnablePartitioning" => format!("Partitioning cannot be changed for {kind}."),
            _ => format!(
                "The value for the {property} property of an existing {kind} cannot be changed."
            ),
        })
    }

    /// Nothing can be called so. The cloud's sentence is a whole text by itself.
    pub(crate) fn name(error: &NameError) -> Self {
        match error {
            NameError::Characters(_) => Self::bad(error.to_string()),
            NameError::Length { .. } | NameError::ClientId(_) | NameError::Reserved { .. } => {
                Self::bad(format!("Bad Request: {error}."))
            }
        }
    }

    /// A rule is invalid.
    pub(crate) fn rule(error: &RuleError) -> Self {
        match error {
            RuleError::Name(error) => Self::name(error),
            other => Self::bad(format!("Bad Request. {other}.")),
        }
    }

    /// The method is not allowed on the resource of the path.
    pub(crate) fn verb(method: &http::Method) -> Self {
        let text = format!("The specified HTTP verb ({method}) is not valid.");
        Self::new(StatusCode::BAD_REQUEST, None, text)
    }

    /// The broker is not available.
    #[must_use]
    pub fn unavailable() -> Self {
        let text = "The service is unavailable: it is starting or stopping. Please try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Some(50_002), text)
    }

    /// The body is longer than the limit in bytes.
    #[must_use]
    pub fn too_long(limit: usize) -> Self {
        let text = format!("Bad Request. A description has at most {limit} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Some(40_000), text)
    }

    /// The body did not come as it should.
    #[must_use]
    pub fn body(why: &str) -> Self {
        Self::bad(format!("Bad Request. The body cannot be read: {why}"))
    }

    /// The error for the broker's refusal of a request for `subject`.
    pub(crate) fn refused(error: &EntityError, subject: &Subject) -> Self {
        match error {
            EntityError::NotFound => subject.not_found(),
            EntityError::NoTopic => Self::new(
                StatusCode::NOT_FOUND,
                Some(40_400),
                "Not Found. The topic does not exist.",
            ),
            EntityError::Exists(_) | EntityError::Rule(RuleError::Exists(_)) => subject.exists(),
            EntityError::ExchangeExists(_) => Self::new(
                StatusCode::CONFLICT,
                Some(40_900),
                format!("Conflict. {error}."),
            ),
            EntityError::Immutable { property, kind } => Self::immutable(property, *kind),
            EntityError::Destination(target) => Self::new(
                StatusCode::NOT_FOUND,
                Some(40_400),
                format!("Not Found. The destination '{target}' of messages does not exist."),
            ),
            EntityError::TooMany { .. }
            | EntityError::Rule(RuleError::TooMany { .. } | RuleError::TooLarge { .. }) => {
                let text = format!("Forbidden. The maximum is reached: {error}.");
                Self::new(StatusCode::FORBIDDEN, Some(40_300), text)
            }
            EntityError::Injected(error) | EntityError::Rule(RuleError::Injected(error)) => {
                injected(*error)
            }
            EntityError::Rule(RuleError::NotFound(_)) => subject.not_found(),
            EntityError::Rule(RuleError::NoSubscription) => subject.not_found(),
            EntityError::At { error, .. } => Self::refused(error, subject),
            EntityError::Changed => Self::new(
                StatusCode::CONFLICT,
                Some(40_901),
                format!("Conflict. Another conflicting operation is in progress: {error}."),
            ),
            EntityError::HasConsumers
            | EntityError::Invalid(_)
            | EntityError::NotInTier(_)
            | EntityError::Router(_)
            | EntityError::NoNamespace(_)
            | EntityError::NamespaceExists(_)
            | EntityError::NoSnapshot(_)
            | EntityError::SnapshotExists(_)
            | EntityError::DiskNearlyFull => Self::bad(format!("Bad Request. {error}.")),
            EntityError::Rule(error @ (RuleError::Name(_) | RuleError::Invalid { .. })) => {
                Self::rule(error)
            }
        }
    }
}

/// The subject of a request, as errors name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Subject {
    /// A queue or topic.
    Entity { path: String },
    /// A subscription, or a rule of one: `{namespace}:Topic:{topic}|{subscription}[|{rule}]`.
    Below { name: String },
}

impl Subject {
    fn not_found(&self) -> Error {
        match self {
            Self::Entity { path } => Error::new(
                StatusCode::NOT_FOUND,
                Some(40_400),
                format!("Not Found. The entity '{path}' does not exist."),
            ),
            Self::Below { name } => Error::new(
                StatusCode::NOT_FOUND,
                None,
                format!("Entity '{name}' was not found."),
            ),
        }
    }

    fn exists(&self) -> Error {
        match self {
            Self::Entity { path } => Error::new(
                StatusCode::CONFLICT,
                Some(40_900),
                format!("Conflict. The entity '{path}' exists already."),
            ),
            Self::Below { name } => Error::new(
                StatusCode::CONFLICT,
                None,
                format!("The messaging entity '{name}' already exists."),
            ),
        }
    }
}

/// The entity to delete does not exist.
pub(crate) fn nothing_to_delete() -> Error {
    Error::new(
        StatusCode::NOT_FOUND,
        None,
        "No service is hosted at the specified address.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_a_log_repeats_neither_the_body_nor_a_query() {
        let check = |error: Error, expected: &str| assert_eq!(error.unquoted(), expected);
        check(Error::bad("It is bad"), "It is bad");
        check(Error::bad("It is bad").quoting("secret"), "It is bad");
        let address = "'https://host/a!b?code=secret' contains character(s)";
        check(
            Error::bad(address),
            "'https://host/a!b' contains character(s)",
        );
        check(Error::bad("Why? It is"), "Why? It is");
    }
}
