//! Refusals: notes the errors that a connection was given, with their link and entity.
//!
//! The server logs them. Errors that the endpoint finds by itself are noted while the links that it
//! detached are known.

use amqp::Error;
use broker::EntityKind;
use dialect::{Origin, Subject};
use endpoint::{DetectedError, ErrorScope, LinkId};

use crate::client::Client;
use crate::errors::EntityName;

impl Client {
    /// The names of a link's entity; empty ones if there is none.
    pub(crate) fn entity_name(&self, link: LinkId) -> EntityName<'_> {
        let link = self.links.get(link);
        let entity = link.and_then(|link| link.entity.as_ref());
        let path = entity.map_or("", |entity| &entity.path);
        self.name_of(path, link.map_or("", |link| &link.resource))
    }

    /// The names of the entity at a path.
    pub(crate) fn name_of<'a>(&'a self, path: &'a str, resource: &'a str) -> EntityName<'a> {
        let found = self.directory.get(path);
        EntityName {
            resource,
            namespace: &self.settings.namespace,
            kind: found.map_or(EntityKind::Queue, |found| found.kind),
            path,
        }
    }

    /// Notes that what came by a link is refused. It is about the link's own entity unless
    /// `origin` names another.
    pub(crate) fn note_request(
        &mut self,
        subject: Subject,
        link: LinkId,
        origin: Origin<'_>,
        error: &Error,
    ) {
        let link = self.links.get(link);
        let own = || link.and_then(|link| path_of(&link.resource));
        let origin = Origin {
            link: link.map(|link| link.name.as_str()),
            entity: origin.entity.or_else(own),
            ..origin
        };
        self.refusals.note(subject, origin, error);
    }

    /// The error as the client is given it for what came by a link, noted for the log.
    pub(crate) fn refused(
        &mut self,
        subject: Subject,
        link: LinkId,
        entity: Option<&str>,
        error: Error,
    ) -> Error {
        let error = self.tracked(error);
        let origin = Origin {
            entity,
            ..Origin::default()
        };
        self.note_request(subject, link, origin, &error);
        error
    }

    /// Notes the errors of the endpoint itself, while the links that it detached are known.
    pub(crate) fn note_findings(&mut self) {
        for finding in self.connection.take_detected_errors() {
            self.note_finding(&finding);
        }
    }

    fn note_finding(&mut self, finding: &DetectedError) {
        let (subject, origin) = match &finding.scope {
            ErrorScope::Connection => (Subject::Connection, Origin::default()),
            ErrorScope::Session => (Subject::Session, Origin::default()),
            ErrorScope::Link {
                link,
                name,
                attached,
            } => {
                let known = self.links.get(*link);
                let waits = self
                    .pending_attaches
                    .get(link)
                    .map(|waits| waits.path.as_str());
                let subject = match attached {
                    true => Subject::Link,
                    false => Subject::Attach,
                };
                let origin = Origin {
                    link: Some(name),
                    entity: known.map_or(waits, |link| path_of(&link.resource)),
                    operation: None,
                };
                (subject, origin)
            }
        };
        self.refusals.note(subject, origin, &finding.error);
    }
}

/// The path in what error texts call a resource, `sb://host/path`, unless it is empty.
pub(crate) fn path_of(resource: &str) -> Option<&str> {
    let (_, behind) = resource.split_once("://")?;
    let (_, path) = behind.split_once('/')?;
    Some(path).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_resource_comes_behind_its_host() {
        assert_eq!(path_of("sb://host/a/b"), Some("a/b"));
        assert_eq!(path_of("sb://host/"), None);
        assert_eq!(path_of("a"), None);
    }
}
