//! `GET /$railbus/connections`: the AMQP connections, each with its client and its links.
//! `DELETE /$railbus/connections/{id}` closes one with `amqp:connection:forced`, once it is
//! answered what the broker was given. (docs/spec/admin.md#17)
//!
//! `?from=` the id to begin with and `?count=` a maximum, both optional; `next` is the id to
//! continue from, or null at the end. A connection that does not answer within [`ANSWER_TIME`],
//! since the broker waits for its disk, is listed without its links.

use std::time::Duration;

use amqp::performative::Role;
use broker::{ConnectionId, Wall};
use dialect::ClientRefusal;
use endpoint::LinkState;
use entity::time::checked_text;
use hyper::{Request, StatusCode};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, timeout_at};

use crate::connection::open_connections::{ConnectionReport, OpenConnection};
use crate::http::request::query;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::log::audit::Changes;
use crate::server::server_state::ServerState;

const PREFIX: &str = "/$railbus/connections/";
/// Connections of an answer, unless it is asked for fewer or more.
const COUNT: u64 = 50;
/// Connections of an answer at most.
const MOST: u64 = 100;
/// The most time that connections have to answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Answers a request for the list.
pub async fn respond<T>(request: &Request<T>, server: &ServerState) -> Response {
    match parse(request.uri().query().unwrap_or_default()) {
        Ok((from, count)) => list(from, count, server).await,
        Err(text) => answer::error(StatusCode::BAD_REQUEST, &text),
    }
}

/// Closes the connection of a path.
pub fn close(path: &str, server: &ServerState) -> Response {
    let id = path.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
    let found = id.and_then(|id| server.open_connections.get(ConnectionId(id)));
    let Some(connection) = found else {
        let text = "there is no such connection; /$railbus/connections lists those that are open";
        return answer::error(StatusCode::NOT_FOUND, text);
    };
    connection.close();
    let mut response = answer::value(StatusCode::ACCEPTED, &json!({}));
    let change = format!(
        "close connection {} of {}",
        connection.id.0, connection.peer
    );
    response.extensions_mut().insert(Changes(vec![change]));
    response
}

fn parse(query: &str) -> Result<(ConnectionId, usize), String> {
    let (mut from, mut count) = (0, COUNT);
    for (name, value) in query::parameters(query) {
        let value = value?;
        match name {
            "from" => from = query::number(name, &value, 0..=u64::MAX)?,
            "count" => count = query::number(name, &value, 1..=MOST)?,
            other => {
                return Err(format!(
                    "unknown parameter `{other}`: the parameters are from and count"
                ));
            }
        }
    }
    Ok((
        ConnectionId(from),
        usize::try_from(count).unwrap_or(usize::MAX),
    ))
}

async fn list(from: ConnectionId, count: usize, server: &ServerState) -> Response {
    let (total, mut page) = server.open_connections.page(from, count + 1);
    let next = page.get(count).map(|connection| connection.id.0);
    page.truncate(count);
    let asked: Vec<_> = page
        .iter()
        .map(|connection| connection.describe())
        .collect();
    let deadline = Instant::now() + ANSWER_TIME;
    let mut connections = Vec::new();
    for (connection, answer) in page.iter().zip(asked) {
        let report = timeout_at(deadline, answer).await;
        connections.push(row(connection, report.ok().and_then(Result::ok)));
    }
    let body = json!({"connections": connections, "total": total, "next": next});
    answer::value(StatusCode::OK, &body)
}

fn row(connection: &OpenConnection, report: Option<ConnectionReport>) -> Json {
    let mut row = json!({
        "id": connection.id.0,
        "peer": connection.peer.to_string(),
        "tls": connection.is_tls,
        "since": checked_text(connection.since),
    });
    let (Some(members), Some(report)) = (row.as_object_mut(), report) else {
        return row;
    };
    let state = report.state;
    let links = state.links.iter();
    let links = links.map(|(link, address)| link_row(link, address.as_deref()));
    members.insert("container-id".to_owned(), state.container_id.into());
    members.insert("clients".to_owned(), state.client_names.into());
    members.insert("links".to_owned(), links.collect());
    members.insert("link-count".to_owned(), state.link_count.into());
    members.insert("errors".to_owned(), report.errors.into());
    if let Some((at, refusal)) = report.last_error {
        members.insert("last-error".to_owned(), error_row(at, &refusal));
    }
    row
}

fn link_row(link: &LinkState, address: Option<&str>) -> Json {
    json!({
        "link": link.link.0,
        "name": link.name,
        "address": address,
        "role": match link.peer_role {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        },
        "credit": link.credit,
        "unsettled": link.unsettled,
    })
}

fn error_row(at: Wall, refusal: &ClientRefusal) -> Json {
    json!({
        "time": checked_text(at),
        "condition": refusal.condition.to_string(),
        "text": refusal.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_which_connections() {
        assert_eq!(parse(""), Ok((ConnectionId(0), 50)));
        assert_eq!(parse("from=7&count=3"), Ok((ConnectionId(7), 3)));
        assert!(parse("count=101").unwrap_err().contains("from 1 to 100"));
        assert!(parse("id=1").unwrap_err().contains("unknown parameter"));
    }
}
