//! Entities and rules as JSON: their properties, and their present state.

use broker::{Answer, EntityInfo, EntityKind, Order, QueueInfo, QueueSettings, RuleDescription};
use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::{ApiError, ResourcePath};
use crate::namespaces::namespace;
use crate::namespaces::namespace::{NamespaceSnapshot, SubscriptionSnapshot};
use crate::shard::shard_client::ShardClient;
use entity::time::checked_text;
use entity::{Properties, named, of_queue, of_rule, of_subscription, of_topic};

/// What is at `resource`. Entities without a limit of their own take messages of `most` bytes.
pub async fn resource(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    most: u64,
) -> Result<(StatusCode, Json), ApiError> {
    let json = match resource {
        ResourcePath::Everything => everything(&NamespaceSnapshot::make(shard_client).await?),
        ResourcePath::Rules { subscription } => {
            describe(shard_client, subscription).await?;
            let rules = namespace::rules(shard_client, subscription).await?;
            json!({"rules": rules.iter().map(rule).collect::<Vec<_>>()})
        }
        ResourcePath::Rule { subscription, name } => {
            let order = Order::DescribeRule {
                subscription: subscription.clone(),
                name: name.clone(),
            };
            match shard_client.order(order).await?? {
                Answer::Rule(found) => Json::Object(rule(&found)),
                _ => return Err(ApiError::Unexpected),
            }
        }
        ResourcePath::Entity(_) | ResourcePath::Subscription { .. } => {
            let path = resource.entity().unwrap_or_default();
            let mut shown = entity(shard_client, &path).await?;
            shown["state"]["unset"] = unset(shard_client, &path, most).await?;
            shown
        }
    };
    Ok((StatusCode::OK, json))
}

/// The entity of a path as it is now.
pub async fn describe(shard_client: &mut ShardClient, path: &str) -> Result<EntityInfo, ApiError> {
    let path = path.to_owned();
    match shard_client.order(Order::Describe { path }).await?? {
        Answer::Entity(info) => Ok(*info),
        _ => Err(ApiError::Unexpected),
    }
}

/// The entity of a path with what is below it.
pub async fn entity(shard_client: &mut ShardClient, path: &str) -> Result<Json, ApiError> {
    let info = describe(shard_client, path).await?;
    let mut shown = match info.queue.kind {
        EntityKind::Queue => queue(&info),
        EntityKind::Topic => {
            let below = namespace::subscriptions(shard_client, path).await?;
            topic(&info, &below)
        }
        EntityKind::Subscription => {
            let rules = namespace::rules(shard_client, path).await?;
            subscription(&SubscriptionSnapshot {
                info: info.clone(),
                rules,
            })
        }
    };
    let (set, policy) = sources(&info);
    if let Some(state) = shown.get_mut("state") {
        state["set"] = set.into();
        state["policy"] = policy;
    }
    shown.insert("kind".to_owned(), info.queue.kind.to_string().into());
    Ok(Json::Object(shown))
}

/// Where an entity's settings come from: the names of those that are not the defaults, and the
/// policies that apply with the settings that are in force because of them.
fn sources(info: &EntityInfo) -> (Vec<String>, Json) {
    let own = properties(info, &info.queue.settings);
    let defaults = properties(info, &QueueSettings::default());
    let differing = |properties: &Properties, from: &Properties| -> Vec<_> {
        let names = properties
            .iter()
            .filter(|(name, value)| from.get(*name) != Some(*value));
        names.map(|(name, _)| name.clone()).collect()
    };
    let Some(policy) = &info.queue.policy else {
        return (differing(&own, &defaults), Json::Null);
    };
    let mut in_force = properties(info, &info.queue.in_force());
    let decided = differing(&in_force, &own);
    in_force.retain(|name, _| decided.contains(name));
    let policy = json!({
        "user": policy.user,
        "operator": policy.operator,
        "settings": in_force,
    });
    (differing(&own, &defaults), policy)
}

/// The settings that an entity has no value for: null, or the value that the broker has for it.
async fn unset(shard_client: &mut ShardClient, path: &str, most: u64) -> Result<Json, ApiError> {
    let info = describe(shard_client, path).await?;
    let own = properties(&info, &info.queue.settings);
    let names = named(info.queue.kind).map(|(name, _)| name);
    let mut unset: Properties = names
        .filter(|name| !own.contains_key(*name))
        .map(|name| (name.to_owned(), Json::Null))
        .collect();
    if let Some(value) = unset.get_mut("max-message-size") {
        *value = most.into();
    }
    if let Some(value) = unset.get_mut("expiry") {
        // That of a policy is shown as the policy's.
        let activity = shard_client.activity(info.queue.id, 0).await?;
        *value = activity.map_or(Json::Null, |activity| json!(activity.expiry));
    }
    Ok(unset.into())
}

/// These settings as properties of the entity.
fn properties(info: &EntityInfo, settings: &QueueSettings) -> Properties {
    match info.queue.kind {
        EntityKind::Queue => of_queue(settings),
        EntityKind::Topic => of_topic(settings),
        EntityKind::Subscription => {
            let mut of = namespace::settings_of(info);
            of.queue = settings.clone();
            of_subscription(&of)
        }
    }
}

/// A rule with its name.
pub fn rule(rule: &RuleDescription) -> Properties {
    let mut shown = of_rule(rule);
    shown.insert("name".to_owned(), rule.name.clone().into());
    shown
}

fn everything(snapshot: &NamespaceSnapshot) -> Json {
    let queues: Vec<_> = snapshot.queues.iter().map(queue).collect();
    let topics = snapshot.topics.iter();
    let topics: Vec<_> = topics
        .map(|found| topic(&found.info, &found.subscriptions))
        .collect();
    json!({"queues": queues, "topics": topics})
}

fn queue(info: &EntityInfo) -> Properties {
    let mut shown = of_queue(&info.queue.settings);
    complete(&mut shown, info.queue.path.clone(), info);
    shown
}

fn topic(info: &EntityInfo, below: &[SubscriptionSnapshot]) -> Properties {
    let mut shown = of_topic(&info.queue.settings);
    complete(&mut shown, info.queue.path.clone(), info);
    let below: Vec<_> = below.iter().map(subscription).map(Json::Object).collect();
    shown.insert("subscriptions".to_owned(), below.into());
    shown
}

fn subscription(found: &SubscriptionSnapshot) -> Properties {
    let SubscriptionSnapshot { info, rules } = found;
    let mut shown = of_subscription(&namespace::settings_of(info));
    let name = namespace::last_segment(&info.queue.path);
    complete(&mut shown, name.to_owned(), info);
    if let (Some(of), Some(state)) = (&info.client_affine, shown.get_mut("state")) {
        state["client-affine"] = json!({
            "client-id": of.client_id,
            "is-durable": of.is_durable,
            "is-shared": of.is_shared,
            "selector": of.selector,
        });
    }
    let rules: Vec<_> = rules.iter().map(rule).map(Json::Object).collect();
    shown.insert("rules".to_owned(), rules.into());
    shown
}

fn complete(shown: &mut Properties, name: String, info: &EntityInfo) {
    shown.insert("name".to_owned(), name.into());
    shown.insert("state".to_owned(), state(&info.queue));
}

/// What is in an entity. Sizes are bytes.
fn state(queue: &QueueInfo) -> Json {
    json!({
        "active": queue.active,
        "dead-letter": queue.dead_letter,
        "deferred": queue.deferred,
        "scheduled": queue.scheduled,
        "transfer": queue.transfer,
        "transfer-dead-letter": queue.transfer_dead_letter,
        "bytes": queue.size(),
        "created": checked_text(queue.created),
        "updated": checked_text(queue.updated),
        "accessed": queue.accessed.and_then(checked_text),
    })
}
