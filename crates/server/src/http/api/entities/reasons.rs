//! `GET /$railbus/entities/{path}/reasons`: dead letters grouped by their reason.
//!
//! The oldest [`EXAMINED`] dead letters are looked at; `complete` says whether those are all, and
//! `others` how many of them are in no group: their reason is no text, or one of too many.

use std::collections::BTreeMap;

use broker::{Browsed, EntityKind};
use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::messages::{MessagePart, browse};
use super::{ApiError, ResourcePath, show};
use crate::messages::DecodedMessage;
use crate::shard::shard_client::ShardClient;

/// Dead letters that are looked at, at most.
const EXAMINED: u64 = 10_000;
/// Reasons that are told apart; senders may make up any number.
const REASONS: usize = 200;

/// The dead letters of one reason.
#[derive(Debug)]
struct Group {
    count: u64,
    /// The description of the first.
    description: String,
    first: u64,
    last: u64,
}

/// Shows the groups, the largest first.
pub async fn show(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let queue = show::describe(shard_client, &path).await?.queue;
    if queue.kind == EntityKind::Topic {
        let text = "a topic has no dead letters; its subscriptions do";
        return Err(ApiError::Bad(text.to_owned()));
    }
    let mut groups = BTreeMap::new();
    let (mut examined, mut from, mut others) = (0, 1, 0);
    let complete = loop {
        if examined >= EXAMINED {
            break false;
        }
        let left = EXAMINED - examined;
        let found = browse(shard_client, queue.id, MessagePart::DeadLetter, from, left).await?;
        let Some(last) = found.last() else {
            break true;
        };
        from = last.number.next().0;
        examined += found.len() as u64;
        let is_other = |message: &&Browsed| !add(&mut groups, message);
        others += found.iter().filter(is_other).count();
    };
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
    let groups = groups.iter().map(|(reason, group)| {
        json!({
            "reason": reason,
            "description": group.description,
            "count": group.count,
            "first": group.first,
            "last": group.last,
        })
    });
    let groups: Vec<_> = groups.collect();
    let answer = json!({
        "reasons": groups,
        "others": others,
        "examined": examined,
        "complete": complete,
    });
    Ok((StatusCode::OK, answer))
}

/// Counts a dead letter with those of its reason. Returns whether it has a group.
fn add(groups: &mut BTreeMap<Option<String>, Group>, message: &Browsed) -> bool {
    let facts = DecodedMessage::read(&servicebus::browsed(message));
    let facts = facts.map(|decoded| decoded.json(0)).unwrap_or_default();
    let property = |name: &str| facts.get("properties")?.get(name);
    let text = |name: &str| Some(property(name)?.as_str()?.to_owned());
    let reason = text("DeadLetterReason");
    let is_no_text =
        reason.is_none() && property("DeadLetterReason").is_some_and(|it| !it.is_null());
    if is_no_text || groups.len() >= REASONS && !groups.contains_key(&reason) {
        return false;
    }
    let number = message.number.0;
    let group = groups.entry(reason).or_insert_with(|| Group {
        count: 0,
        description: text("DeadLetterErrorDescription").unwrap_or_default(),
        first: number,
        last: number,
    });
    group.count += 1;
    group.last = number;
    true
}
