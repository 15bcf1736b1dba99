//! Address: the node that a link's address or a token's audience names.
//! (docs/spec/amqp.md#2.4, #3.1)
//!
//! Clients write the same node in many ways: relative, with a leading slash, as a whole URI, with
//! percent escapes, in any case. All of them become one [`Node`]. The attach keeps the original
//! text for its reply.

use std::borrow::Cow;

use broker::Subqueue;
use percent_encoding::percent_decode_str;

/// The name of the claims node.
pub(crate) const CBS: &str = "$cbs";
const MANAGEMENT: &str = "$management";
const DEAD_LETTER: &str = "$deadletterqueue";
const TRANSFER: &str = "$transfer";

/// A node that an address names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Node {
    /// The node that takes tokens.
    Cbs,
    /// Requests about an entity, or (`None`) about the namespace.
    Management(Option<EntityAddress>),
    /// The messages of an entity.
    Entity(EntityAddress),
}

/// A queue or one of its subqueues.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct EntityAddress {
    /// The entity's path, in the case it was written in.
    pub(crate) entity: String,
    pub(crate) subqueue: Subqueue,
}

impl EntityAddress {
    /// The whole path, subqueue included.
    pub(crate) fn path(&self) -> String {
        let suffix = match self.subqueue {
            Subqueue::Main => "",
            Subqueue::DeadLetter => "/$DeadLetterQueue",
            Subqueue::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        };
        format!("{}{suffix}", self.entity)
    }

    fn parse(path: &str) -> Self {
        let (entity, subqueue) = match strip_segment(path, DEAD_LETTER) {
            None => (path, Subqueue::Main),
            Some(parent) => match strip_segment(parent, TRANSFER) {
                None => (parent, Subqueue::DeadLetter),
                Some(parent) => (parent, Subqueue::TransferDeadLetter),
            },
        };
        Self {
            entity: entity.to_owned(),
            subqueue,
        }
    }
}

impl Node {
    /// The node that `address` names, whether it exists or not.
    pub(crate) fn parse(address: &str) -> Self {
        let path = normalise(address);
        if path.eq_ignore_ascii_case(CBS) {
            return Self::Cbs;
        }
        match strip_segment(&path, MANAGEMENT) {
            Some("") => Self::Management(None),
            Some(entity) => Self::Management(Some(EntityAddress::parse(entity))),
            None => Self::Entity(EntityAddress::parse(&path)),
        }
    }

    /// The node's path as it was written, without scheme, host and escapes.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Cbs => CBS.to_owned(),
            Self::Management(None) => MANAGEMENT.to_owned(),
            Self::Management(Some(entity)) => format!("{}/{MANAGEMENT}", entity.path()),
            Self::Entity(entity) => entity.path(),
        }
    }

    /// One key for all ways to write the node.
    pub(crate) fn key(&self) -> String {
        self.name().to_lowercase()
    }
}

/// The path of an audience or of a token's resource: normalised, in lower case, without
/// `/$management`, nor the query of a request that was signed whole.
pub(crate) fn scope(uri: &str) -> String {
    let uri = uri.split('?').next().unwrap_or_default();
    let path = normalise(uri).to_lowercase();
    match strip_segment(&path, MANAGEMENT) {
        // The namespace's own node is not the namespace.
        Some("") | None => path,
        Some(entity) => entity.to_owned(),
    }
}

/// The same for a request's path, which is no URI: it has no scheme and no host.
pub(crate) fn request_scope(path: &str) -> String {
    let path = percent_decode_str(path.trim_matches('/')).decode_utf8_lossy();
    path.to_lowercase()
}

/// Whether `ancestor` is `path` or stands above it, by whole segments; both normalised and in one
/// case. `orders` does not cover `orders2`.
pub(crate) fn covers(ancestor: &str, path: &str) -> bool {
    match path.strip_prefix(ancestor) {
        None => false,
        Some(rest) => ancestor.is_empty() || rest.is_empty() || rest.starts_with('/'),
    }
}

/// Whether `path` is of the entity at `entity`: itself, a subqueue, a subscription of it, or its
/// messages over HTTP. What else stands below is an entity of its own; one whose name goes on like
/// a path of these (`orders/messages`) is taken for a part. Both normalised and in lower case.
pub(crate) fn belongs(path: &str, entity: &str) -> bool {
    const OWN: [&str; 4] = [DEAD_LETTER, TRANSFER, "subscriptions", "messages"];
    match path.strip_prefix(entity) {
        None => false,
        Some("") => true,
        Some(rest) => {
            let next = rest
                .strip_prefix('/')
                .and_then(|rest| rest.split('/').next());
            next.is_some_and(|next| OWN.contains(&next))
        }
    }
}

/// Without scheme, authority, outer slashes and escapes. An authority without a scheme is known by
/// the colon of its port, which no name has.
fn normalise(address: &str) -> Cow<'_, str> {
    let (authority, behind) = match address.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => {
            let first = address.split('/').next().unwrap_or_default();
            (first.contains(':'), address)
        }
    };
    let path = if authority {
        behind.split_once('/').map_or("", |(_, path)| path)
    } else {
        behind
    };
    percent_decode_str(path.trim_matches('/')).decode_utf8_lossy()
}

/// `path` without its last segment, if that is `segment` in any case.
fn strip_segment<'a>(path: &'a str, segment: &str) -> Option<&'a str> {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    last.eq_ignore_ascii_case(segment).then_some(parent)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
