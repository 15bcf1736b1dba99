//! `/metrics`: the state of the broker in the text format of Prometheus. `docs/metrics.md`
//! explains every name; a test compares this file with it.
//!
//! Labels are an entity's path, the name of a namespace and a few fixed words: an entity has 23
//! series, and 30 more once its messages are received; only the first 2,000 entities have any, so
//! the page is bounded. A scrape shows existing counters and keeps nothing.

mod entities;
mod labeled_latencies;
mod log2_histogram;
mod page;
mod server;
mod shard;
mod store;

use std::fmt;

use hyper::{Method, StatusCode};

use super::response::answer;
use super::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;
use crate::shard::Message;
use crate::shard::report::{MEASURED_ENTITIES, Measured, Report};
use crate::shard::shard_client::{ShardError, ask_task};
use page::Page;

/// What OpenMetrics text is called.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers a request. The caller has the right to manage.
pub async fn respond(method: &Method, server: &NamespaceView) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return answer::method_not_allowed("GET, HEAD");
    }
    match page(server).await {
        Ok(text) => answer::text(StatusCode::OK, TEXT, text),
        Err(error @ PageError::Shard(_)) => {
            answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
        }
        Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Encoding(#[from] fmt::Error),
}

/// The page as text.
pub async fn page(server: &ServerState) -> Result<String, PageError> {
    let report = ask_task(server.placement.of_broker(), |answer| {
        Message::Measure(Measured::Oldest(MEASURED_ENTITIES), answer)
    })
    .await?;
    Ok(encode(&report, server)?)
}

fn encode(report: &Report, server: &ServerState) -> Result<String, fmt::Error> {
    let mut page = Page::new();
    entities::add(&mut page, report, &|id| server.namespaces.name(id));
    shard::add(&mut page, report);
    store::add(&mut page, report);
    server::add(&mut page, report, server);
    page.into_text()
}
