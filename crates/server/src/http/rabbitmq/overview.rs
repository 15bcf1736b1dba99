//! `/api/overview`: the versions, and totals of all virtual hosts of the client.
//! (docs/spec/rabbitmq.md#13)
//!
//! Connections, those of HTTP too, are of the whole broker, so that clients of the default
//! namespace alone are told their number. There are no channels: a connection of AMQP 1.0 has
//! sessions.

use std::sync::Arc;

use broker::EntityKind;
use serde_json::{Value as Json, json};
use store::NamespaceId;

use super::virtual_hosts::{self, VirtualHost};
use super::{Failure, NODE, exchanges};
use crate::http::api::overview::report;
use crate::namespaces::namespace_view::NamespaceView;

/// Sums of all virtual hosts.
#[derive(Default)]
struct Totals {
    queues: usize,
    exchanges: usize,
    consumers: u64,
    messages: u64,
    unacknowledged: u64,
}

impl Totals {
    async fn add(&mut self, view: &NamespaceView, host: &mut VirtualHost) -> Result<(), Failure> {
        let report = report(view, view.namespace()).await?;
        let is_queue = |it: &&broker::QueueInfo| it.kind == EntityKind::Queue;
        for queue in report.entities.iter().filter(is_queue) {
            self.queues += 1;
            self.consumers += queue.receivers;
            self.messages += queue.active;
            self.unacknowledged += queue.locked;
        }
        self.exchanges += exchanges::list(host).await?.len();
        Ok(())
    }
}

/// The overview for a client.
pub(super) async fn read(server: &Arc<NamespaceView>) -> Result<Json, Failure> {
    let mut totals = Totals::default();
    for vhost in virtual_hosts::names(server) {
        // One may have been deleted meanwhile.
        if let Some(view) = virtual_hosts::view(server, &vhost)
            && let Ok(mut host) = VirtualHost::open(server, &vhost).await
        {
            totals.add(&view, &mut host).await?;
        }
    }
    let mut overview = json!({
        "product_name": "Railbus",
        "product_version": env!("CARGO_PKG_VERSION"),
        "rabbitmq_version": rabbitmq::VERSION,
        "cluster_name": NODE,
        "node": NODE,
        "object_totals": {
            "queues": totals.queues,
            "exchanges": totals.exchanges,
            "consumers": totals.consumers,
            "channels": 0,
        },
        "queue_totals": {
            "messages": totals.messages,
            "messages_ready": totals.messages.saturating_sub(totals.unacknowledged),
            "messages_unacknowledged": totals.unacknowledged,
        },
    });
    if server.namespace() == NamespaceId::default() {
        let connections = server.connection_limiter.open_connections();
        overview["object_totals"]["connections"] = connections.into();
    }
    Ok(overview)
}
