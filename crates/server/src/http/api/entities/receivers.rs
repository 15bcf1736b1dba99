//! `GET /$railbus/entities/{path}/receivers`: the receivers of a queue or subscription, the locks
//! that they hold, and its sessions, [`MOST`] of each; all are counted.

use broker::{
    ActiveLock, ActiveReceiver, ActiveSession, EntityError, EntityKind, ReceiveMode, Subqueue,
};
use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::{ApiError, ResourcePath, show};
use crate::shard::shard_client::ShardClient;

/// Entries of each list.
const MOST: usize = 100;

/// Shows them.
pub async fn show(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let queue = show::describe(shard_client, &path).await?.queue;
    if queue.kind == EntityKind::Topic {
        let text = "a topic has no receivers; its subscriptions do";
        return Err(ApiError::Bad(text.to_owned()));
    }
    let activity = shard_client.activity(queue.id, MOST).await?;
    let activity = activity.ok_or(EntityError::NotFound)?;
    let list = |rows: Vec<Json>, total: usize| json!({"first": rows, "total": total});
    let receivers = activity.receivers.iter().map(receiver).collect();
    let locks = activity.locks.iter().map(lock).collect();
    let sessions = activity.sessions.iter().map(session).collect();
    let answer = json!({
        "receivers": list(receivers, activity.receiver_count),
        "locks": list(locks, activity.lock_counts.iter().sum()),
        "sessions": list(sessions, activity.session_count),
    });
    Ok((StatusCode::OK, answer))
}

fn receiver(receiver: &ActiveReceiver) -> Json {
    json!({
        "connection": receiver.id.connection.0,
        "link": receiver.id.link,
        "part": part(receiver.subqueue),
        "mode": match receiver.mode {
            Some(ReceiveMode::PeekLock) => "peek-lock",
            Some(ReceiveMode::LinkLock) => "link-lock",
            Some(ReceiveMode::ReceiveAndDelete) => "receive-and-delete",
            None => "browse",
        },
        "filter": receiver.selector.as_ref().map(|selector| selector.text()),
        "credit": receiver.credit,
        "blocked": receiver.is_blocked,
        "session": receiver.session.as_deref().map(text),
        "waits-for-session": receiver.waits_for_session,
    })
}

fn lock(lock: &ActiveLock) -> Json {
    json!({
        "sequence-number": lock.number.0,
        "part": part(lock.subqueue),
        "connection": lock.connection.0,
        "link": lock.link,
        "left-ms": lock.left_ms,
        "delivery-count": lock.delivery_count,
    })
}

/// A session with its holder, if it has one.
pub fn session(session: &ActiveSession) -> Json {
    let hold = session.hold.as_ref().map(|hold| {
        json!({
            "connection": hold.receiver.connection.0,
            "link": hold.receiver.link,
            "left-ms": hold.left_ms,
            "locked": hold.locked,
            "state-bytes": hold.state_bytes,
        })
    });
    json!({"id": text(&session.id), "hold": hold})
}

/// As the parameter `part` of messages says it.
fn part(subqueue: Subqueue) -> &'static str {
    match subqueue {
        Subqueue::Main => "active",
        Subqueue::DeadLetter => "dead-letter",
        Subqueue::TransferDeadLetter => "transfer-dead-letter",
    }
}

fn text(id: &[u8]) -> String {
    String::from_utf8_lossy(id).into_owned()
}
