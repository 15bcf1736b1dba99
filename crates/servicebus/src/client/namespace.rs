//! Namespace: which one the connection belongs to. (docs/spec/amqp.md#1.7)
//!
//! The first of these that fits chooses it: a host name (that of TLS, of SASL or of the open) or
//! the virtual host of a client of RabbitMQ, the name of the key that signs in, the beginning of
//! the audience of a token. Otherwise it is the default one. Two host names of different
//! namespaces, or a key that more than one namespace has, are refused.
//!
//! Invariant: the namespace does not change once the client has a credential or a link to an
//! entity.

use std::sync::Arc;

use access::{Directory, Unauthorized};
use amqp::Error;
use dialect::{KeyOwner, Namespaces, virtual_host};

use crate::client::Client;
use crate::errors;

/// The virtual host that RabbitMQ's clients name unless told otherwise. It chooses nothing.
const DEFAULT_VIRTUAL_HOST: &str = "/";

/// How the connection finds its namespace.
#[derive(Default)]
pub(crate) struct NamespaceChoice {
    namespaces: Option<Arc<dyn Namespaces>>,
    chosen_by: ChosenBy,
    /// Whether the client has asked for a link to an entity.
    pub(crate) has_entity_link: bool,
}

/// What has chosen the namespace.
#[derive(Debug, Default, Eq, PartialEq)]
enum ChosenBy {
    #[default]
    Nothing,
    Host(String),
    Key(String),
    Audience(String),
}

impl Client {
    /// The same on a server that has namespaces. `server_name` is the host name that the client has
    /// named in the TLS handshake.
    #[must_use]
    pub fn in_namespaces(
        mut self,
        namespaces: Arc<dyn Namespaces>,
        server_name: Option<&str>,
    ) -> Self {
        self.namespace.namespaces = Some(namespaces);
        // Nothing was chosen before, so nothing can differ.
        drop(self.choose_by_host(server_name));
        self
    }

    /// The client has named the host that it has connected to, or a virtual host.
    pub(crate) fn choose_by_host(&mut self, host: Option<&str>) -> Result<(), Error> {
        let host = host.unwrap_or_default();
        let host = match virtual_host(host) {
            Some(_) => host.to_owned(),
            None => without_port(host).to_ascii_lowercase(),
        };
        let Some(directory) = self.of_host(&host) else {
            return Ok(());
        };
        let keeps_login = virtual_host(&host).is_some() && self.has_development_login(&directory);
        let before = match &self.namespace.chosen_by {
            _ if directory.namespace() == self.directory.namespace() => {
                self.namespace.chosen_by = ChosenBy::Host(host);
                return Ok(());
            }
            ChosenBy::Nothing if self.has_any_right_or_link() && !keeps_login => "its credentials",
            ChosenBy::Nothing => {
                self.enter(directory);
                self.namespace.chosen_by = ChosenBy::Host(host);
                return Ok(());
            }
            ChosenBy::Host(before) | ChosenBy::Key(before) | ChosenBy::Audience(before) => before,
        };
        Err(errors::ambiguous_namespace(&host, before))
    }

    /// Refuses an open that names a virtual host which no namespace is. Only an open is refused so:
    /// SASL has no error text.
    pub(super) fn check_virtual_host(&self, host: Option<&str>) -> Result<(), Error> {
        let name = virtual_host(host.unwrap_or_default());
        match name.filter(|name| *name != DEFAULT_VIRTUAL_HOST) {
            Some(name) if self.of_host(host.unwrap_or_default()).is_none() => {
                Err(errors::unknown_virtual_host(name))
            }
            _ => Ok(()),
        }
    }

    /// The namespace that a host or a virtual host chooses.
    fn of_host(&self, host: &str) -> Option<Arc<Directory>> {
        let namespaces = self.namespace.namespaces.as_ref()?;
        match virtual_host(host) {
            Some(name) => namespaces.of_virtual_host(name),
            None => namespaces.of_host(host),
        }
    }

    /// Whether the client has nothing but the login of the development key, as `guest` does, which
    /// counts in that namespace too.
    fn has_development_login(&self, directory: &Directory) -> bool {
        let is_unused = !self.namespace.has_entity_link && !self.has_others();
        is_unused && self.claims.is_development(directory.access())
    }

    /// Whether a key of this name is one of the namespace, or of the one that its name chooses.
    pub(crate) fn is_key(&self, name: &str, key: &[u8]) -> bool {
        let fits = |directory: &Directory| directory.access().log_in(name, key).is_some();
        let namespaces = self.namespace.namespaces.as_ref();
        let owner = namespaces.map(|namespaces| namespaces.of_key(name));
        fits(&self.directory) || matches!(owner, Some(KeyOwner::One(directory)) if fits(&directory))
    }

    /// The client shows a key by its name.
    pub(crate) fn choose_by_key(&mut self, name: &str) -> Result<(), Unauthorized> {
        if self.namespace.chosen_by != ChosenBy::Nothing || self.has_any_right_or_link() {
            return Ok(());
        }
        let found = self.namespace.namespaces.as_ref();
        match found.map(|namespaces| namespaces.of_key(name)) {
            None | Some(KeyOwner::Default) => Ok(()),
            Some(KeyOwner::One(directory)) => {
                self.enter(directory);
                self.namespace.chosen_by = ChosenBy::Key(name.to_owned());
                Ok(())
            }
            Some(KeyOwner::Several) => Err(Unauthorized::SeveralNamespaces),
        }
    }

    /// The client shows a token for this audience, whose path that is, made with the key of this
    /// name if it is a signature.
    pub(crate) fn choose_by_token(
        &mut self,
        key_name: Option<&str>,
        audience: &str,
    ) -> Result<(), Unauthorized> {
        let by_key = key_name.map_or(Ok(()), |name| self.choose_by_key(name));
        if self.namespace.chosen_by != ChosenBy::Nothing || self.has_any_right_or_link() {
            return by_key;
        }
        let found = self.namespace.namespaces.as_ref();
        let Some(directory) = found.and_then(|it| it.of_token(key_name, audience)) else {
            return by_key;
        };
        self.enter(directory);
        self.namespace.chosen_by = ChosenBy::Audience(audience.to_owned());
        Ok(())
    }

    /// The namespace is deleted.
    pub(super) fn end_with_namespace(&mut self) {
        let error = errors::namespace_deleted();
        self.end_links(&error);
        self.close(error);
    }

    /// Whether the client has begun to use its namespace.
    fn has_any_right_or_link(&self) -> bool {
        self.claims.has_any() || self.namespace.has_entity_link || self.has_others()
    }

    fn enter(&mut self, directory: Arc<Directory>) {
        self.directory = directory;
        self.begin_unauthenticated();
    }
}

/// A host name without the port behind it. An address in brackets is no name of a namespace.
fn without_port(host: &str) -> &str {
    host.split_once(':').map_or(host, |(host, _)| host)
}
