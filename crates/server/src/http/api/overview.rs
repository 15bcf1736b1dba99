//! `GET /$railbus/overview`: where messages of a namespace pile up, in one object. That of the
//! default namespace has the health of the broker too.
//! `GET /$railbus/counts`: a table of entities with their present counts, sorted and filtered.
//!
//! Counters rise since the start of the broker; a reader makes rates of two readings.

mod alarms;
mod counts;

use std::sync::Arc;

use access::Directory;
use broker::{Answer, EntityKind, Order, QueueInfo};
use hyper::{Request, StatusCode};
use serde_json::{Value as Json, json};
use store::{NamespaceId, Part};

use crate::http::request::reader::Reader;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;
use crate::shard::Message;
use crate::shard::report::{Measured, Report};
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError, ask_task};
use counts::CountsQuery;

/// Entities in each list of an overview.
const LISTED: usize = 8;

/// Answers a request for the overview.
pub async fn respond(server: &NamespaceView) -> Response {
    match read(server, server.namespace(), server.reader()).await {
        Ok(overview) => answer::value(StatusCode::OK, &overview),
        Err(error) => answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// Answers a request for counts.
pub async fn respond_counts<T>(request: &Request<T>, server: &NamespaceView) -> Response {
    let query = match CountsQuery::parse(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(text) => return answer::error(StatusCode::BAD_REQUEST, &text),
    };
    match entities(&query, server).await {
        Ok(mut entities) => {
            if let Some(reader) = server.reader() {
                reader.keep_own(&mut entities, &server.directory());
            }
            answer::value(StatusCode::OK, &query.table(entities))
        }
        Err(error) => answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// The entities of a table, and perhaps others.
async fn entities(
    query: &CountsQuery,
    server: &NamespaceView,
) -> Result<Vec<QueueInfo>, ShardError> {
    // Looked up alone: a page that follows one entity costs the same however many there are.
    let Some(path) = query.path() else {
        return Ok(report(server, server.namespace()).await?.entities);
    };
    let path = path.to_owned();
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    Ok(match shard.order(Order::Describe { path }).await? {
        Ok(Answer::Entity(info)) => vec![info.queue],
        _ => Vec::new(),
    })
}

/// The overview of a namespace at this moment, or of the entities of a reader in it. That of the
/// whole default namespace tells of the broker too.
pub async fn read(
    server: &ServerState,
    namespace: NamespaceId,
    reader: Option<&Reader>,
) -> Result<Json, ShardError> {
    let mut report = report(server, namespace).await?;
    if let Some(reader) = reader {
        let directory = server.namespaces.directory(namespace);
        let directory = directory.unwrap_or_else(|| Arc::new(Directory::deleted(namespace)));
        reader.keep_own(&mut report.entities, &directory);
        report.fault_rules.clear();
    }
    let mut overview = overview(&report, namespace);
    if namespace == NamespaceId::default() && reader.is_none() {
        add_broker(&mut overview, &report, server);
    }
    Ok(overview)
}

/// The figures of the broker, and of the entities of a namespace.
pub async fn report(server: &ServerState, namespace: NamespaceId) -> Result<Report, ShardError> {
    let question = |answer| Message::Measure(Measured::Of(namespace), answer);
    ask_task(server.placement.of(namespace), question).await
}

fn overview(report: &Report, namespace: NamespaceId) -> Json {
    let all = &report.entities;
    let sum = |count: fn(&QueueInfo) -> u64| all.iter().map(count).sum::<u64>();
    let kinds = |kind| all.iter().filter(|queue| queue.kind == kind).count();
    let fault_rules = report.fault_rules.get(&namespace);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "entities": {
            "queues": kinds(EntityKind::Queue),
            "topics": kinds(EntityKind::Topic),
            "subscriptions": kinds(EntityKind::Subscription),
        },
        "messages": {
            "active": sum(|queue| queue.active),
            "locked": sum(|queue| queue.locked),
            "dead-letter": sum(|queue| queue.dead_letter + queue.transfer_dead_letter),
            "deferred": sum(|queue| queue.deferred),
            "scheduled": sum(|queue| queue.scheduled),
            "bytes": sum(QueueInfo::size),
        },
        "traffic": {
            "arrived": sum(|queue| queue.traffic.arrived(Part::Active)),
            "delivered": sum(|queue| queue.traffic.delivered),
            "completed": sum(|queue| queue.traffic.completed),
            "expired": sum(|queue| queue.traffic.expired),
        },
        "fault-rules": fault_rules.copied().unwrap_or_default(),
        "backlogs": longest(all, |queue| queue.active),
        "dead-letters": longest(all, |queue| queue.dead_letter),
        "alarms": alarms::of_entities(report),
    })
}

fn add_broker(overview: &mut Json, report: &Report, server: &ServerState) {
    let counts = &server.counts;
    overview["connections"] = server.connection_limiter.open_connections().into();
    overview["refused"] = json!({
        "connections": counts.refused.iter().map(|(_, count)| count).sum::<u64>(),
        "credentials": counts.refused_credentials.get() + counts.unauthorized.get(),
    });
    overview["commits"] = json!({
        "groups": report.commits.groups,
        "microseconds": report.commits.commit_us_sum,
    });
    if let Some(free) = report.free_bytes {
        overview["free-bytes"] = free.into();
    }
    overview["alarms"] = json!(alarms::of(report));
}

/// The entities with the most messages, those without left out.
fn longest(all: &[QueueInfo], count: fn(&QueueInfo) -> u64) -> Vec<Json> {
    let mut some: Vec<_> = all.iter().filter(|queue| count(queue) > 0).collect();
    some.sort_by_key(|queue| (std::cmp::Reverse(count(queue)), &queue.path));
    some.truncate(LISTED);
    some.into_iter().map(counts::row).collect()
}
