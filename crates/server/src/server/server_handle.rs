//! Server handle: changes a server's entities, keys and limits while it runs.
//!
//! It holds a weak reference to the server state, so it does not keep the server from ending.

use std::sync::{Arc, Weak};

use access::AccessRules;
use broker::{BrokerLimits, Command};

use crate::credentials::development_issuer;
use crate::namespaces::apply::{ApplyMode, apply};
use crate::namespaces::namespace_registry::NamespaceRegistry;
use crate::namespaces::namespace_view::NamespaceView;
use crate::options::Limits;
use crate::server::server_state::ServerState;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};
use entity::plan::{DesiredNamespace, Plan};

/// A handle to a server's entities, keys and limits. It does not keep the server from ending.
#[derive(Clone)]
pub struct ServerHandle {
    server: Weak<ServerState>,
    namespaces: Arc<NamespaceRegistry>,
}

impl ServerHandle {
    pub(crate) fn new(server: &Arc<ServerState>) -> Self {
        Self {
            server: Arc::downgrade(server),
            namespaces: Arc::clone(&server.namespaces),
        }
    }

    /// Replaces the rules of the namespace, as after a change of the configuration. What everyone
    /// may do and whether the development key is in use go with them; the rules of queues and
    /// topics stay as they are.
    ///
    /// Takes effect at once and as a whole: tokens and passwords are checked against `rules` from
    /// the next one on, and links that rest on a key that is gone, or on a right that it does not
    /// give any more, are detached. The keys of issuers that stay are kept.
    pub fn replace_access_rules(&self, mut rules: AccessRules) {
        if let Some(server) = self.server.upgrade() {
            development_issuer::join(&mut rules, server.development_issuer.as_ref());
        }
        self.namespaces.set_access_rules(rules);
    }

    /// Makes the namespace equal to `wanted`, completely or not at all. The plan lists the changes;
    /// if it lists a refusal, nothing has changed.
    ///
    /// # Errors
    /// When the server stops or has failed, or its shard does not answer.
    pub async fn apply(&self, wanted: &DesiredNamespace) -> Result<Plan, ShardError> {
        let mut shard_client = self.shard_client().await?;
        apply(&mut shard_client, wanted, ApplyMode::Apply).await
    }

    /// Sets new limits. Those of all connections together and of the broker apply at once, those of
    /// one connection to new connections.
    ///
    /// # Errors
    /// When the server stops or has failed, or its shard does not answer.
    pub async fn set_limits(
        &self,
        limits: Limits,
        connections: servicebus::Settings,
        broker: BrokerLimits,
    ) -> Result<(), ShardError> {
        self.server()?.set_limits(limits, connections);
        let mut shard_client = self.shard_client().await?;
        shard_client
            .send_commands(vec![Command::SetLimits(broker)])
            .await
    }

    async fn shard_client(&self) -> Result<ShardClient, ShardError> {
        let server = NamespaceView::of_default(&self.server()?);
        ShardClient::connect_to(&server, LocksAtEnd::AsConfigured).await
    }

    fn server(&self) -> Result<Arc<ServerState>, ShardError> {
        self.server.upgrade().ok_or(ShardError::Stopping)
    }
}
