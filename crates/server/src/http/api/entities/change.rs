//! Creates, changes and deletes entities and rules.
//!
//! A description is read as a file's is, so the same values are valid. Properties that a file
//! cannot express (the metadata) keep their values.

use access::Unauthorized;
use broker::{
    Answer, EntityDescription, EntityError, EntityInfo, EntityKind, EntityPath, Order,
    QueueSettings, RuleDescription, RuleError, SubscriptionSettings,
};
use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::show::{self, describe};
use super::{ApiError, ResourcePath};
use crate::namespaces::namespace;
use crate::shard::shard_client::ShardClient;
use entity::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use entity::{RuleConfig, fault};
use entity::{of_queue, of_rule, of_subscription, of_topic};

type ChangeResult = Result<(StatusCode, Json), ApiError>;
/// Whether the client may have messages forwarded to an entity.
type AllowTarget<'a> = dyn Fn(&str) -> Result<(), Unauthorized> + Sync + 'a;

/// Deletes what is at `resource`.
pub async fn delete(shard_client: &mut ShardClient, resource: &ResourcePath) -> ChangeResult {
    let order = match resource {
        ResourcePath::Everything | ResourcePath::Rules { .. } => {
            let text = "only an entity or a rule can be deleted";
            return Err(ApiError::Bad(text.to_owned()));
        }
        ResourcePath::Rule { subscription, name } => Order::RemoveRule {
            subscription: subscription.clone(),
            name: name.clone(),
        },
        ResourcePath::Entity(_) | ResourcePath::Subscription { .. } => Order::Remove {
            path: resource.entity().unwrap_or_default(),
        },
    };
    shard_client.order(order).await??;
    Ok((StatusCode::OK, Json::Object(Default::default())))
}

/// Makes what is at `resource`, or gives it another description.
pub async fn put(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    json: Json,
    may_be_there: bool,
    allow: &AllowTarget<'_>,
) -> ChangeResult {
    match resource {
        ResourcePath::Everything | ResourcePath::Rules { .. } => {
            let text =
                "PUT is possible for an entity or a rule; POST /$railbus/apply takes a whole file";
            Err(ApiError::Bad(text.to_owned()))
        }
        ResourcePath::Rule { subscription, name } => {
            let rule = read_rule(name, json)?;
            put_rule(shard_client, subscription, rule, may_be_there).await
        }
        ResourcePath::Entity(_) | ResourcePath::Subscription { .. } => {
            let path = resource.entity().unwrap_or_default();
            let current = match describe(shard_client, &path).await {
                Ok(info) if may_be_there => Some(info),
                Ok(info) => return Err(EntityError::Exists(info.queue.kind).into()),
                Err(ApiError::Entity(EntityError::NotFound)) => None,
                Err(error) => return Err(error),
            };
            let description = Description::read(resource, json, current.as_ref())?;
            description.check_targets(current.as_ref(), allow)?;
            match current {
                Some(info) => update(shard_client, &path, description, &info).await,
                None => create(shard_client, &path, description).await,
            }
        }
    }
}

/// Changes the properties that `json` has; null takes one away. [RFC 7396]
pub async fn patch(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    json: Json,
    allow: &AllowTarget<'_>,
) -> ChangeResult {
    let Json::Object(patch) = json else {
        return Err(ApiError::Bad("the body is not a JSON object".to_owned()));
    };
    match resource {
        ResourcePath::Everything | ResourcePath::Rules { .. } => {
            let text = "only an entity or a rule can be changed";
            Err(ApiError::Bad(text.to_owned()))
        }
        ResourcePath::Rule { subscription, name } => {
            let order = Order::DescribeRule {
                subscription: subscription.clone(),
                name: name.clone(),
            };
            let Answer::Rule(rule) = shard_client.order(order).await?? else {
                return Err(ApiError::Unexpected);
            };
            let mut whole = of_rule(&rule);
            merge(&mut whole, patch);
            let rule = read_rule(name, Json::Object(whole))?;
            put_rule(shard_client, subscription, rule, true).await
        }
        ResourcePath::Entity(_) | ResourcePath::Subscription { .. } => {
            let path = resource.entity().unwrap_or_default();
            let info = describe(shard_client, &path).await?;
            let mut whole = match info.queue.kind {
                EntityKind::Queue => of_queue(&info.queue.settings),
                EntityKind::Topic => of_topic(&info.queue.settings),
                EntityKind::Subscription => of_subscription(&namespace::settings_of(&info)),
            };
            merge(&mut whole, patch);
            let description = Description::read(resource, Json::Object(whole), Some(&info))?;
            description.check_targets(Some(&info), allow)?;
            update(shard_client, &path, description, &info).await
        }
    }
}

/// What nests here is a value: a filter is replaced as a whole.
fn merge(whole: &mut serde_json::Map<String, Json>, patch: serde_json::Map<String, Json>) {
    for (name, value) in patch {
        match value {
            Json::Null => whole.remove(&name),
            value => whole.insert(name, value),
        };
    }
}

async fn put_rule(
    shard_client: &mut ShardClient,
    subscription: &str,
    rule: RuleDescription,
    may_be_there: bool,
) -> ChangeResult {
    let (subscription, rule) = (subscription.to_owned(), Box::new(rule));
    let replace = Order::ReplaceRule {
        subscription: subscription.clone(),
        rule: rule.clone(),
    };
    let create = Order::CreateRule { subscription, rule };
    let (status, answer) = match shard_client.order(create).await? {
        Ok(answer) => (StatusCode::CREATED, answer),
        Err(EntityError::Rule(RuleError::Exists(_))) if may_be_there => {
            (StatusCode::OK, shard_client.order(replace).await??)
        }
        Err(error) => return Err(error.into()),
    };
    match answer {
        Answer::Rule(rule) => Ok((status, Json::Object(show::rule(&rule)))),
        _ => Err(ApiError::Unexpected),
    }
}

/// An entity as it is to be.
struct Description {
    path: EntityPath,
    settings: QueueSettings,
    dead_lettering_on_filter_evaluation_exceptions: bool,
    rules: Option<Vec<RuleDescription>>,
}

impl Description {
    /// What `json` describes; a queue unless it says otherwise or `current` is something else.
    fn read(
        resource: &ResourcePath,
        mut json: Json,
        current: Option<&EntityInfo>,
    ) -> Result<Self, ApiError> {
        let known = current.map(|info| info.queue.kind.to_string());
        let said = json.as_object_mut().and_then(|object| {
            // The state is read-only.
            object.remove("state");
            object.remove("kind")
        });
        if let ResourcePath::Subscription { topic, name } = resource {
            return Self::subscription(topic, read(name, json)?, current.is_some());
        }
        let said = said.as_ref().and_then(Json::as_str);
        let kind = said.or(known.as_deref()).unwrap_or("queue");
        if let Some(known) = known.as_deref().filter(|known| *known != kind) {
            return Err(ApiError::Bad(format!(
                "kind is {kind}, but the entity is a {known}"
            )));
        }
        let path = resource.entity().unwrap_or_default();
        match kind {
            "queue" => Ok(Self::queue(read(&path, json)?)),
            "topic" => Self::topic(read(&path, json)?),
            other => Err(ApiError::Bad(format!(
                "kind `{other}` is neither queue nor topic"
            ))),
        }
    }

    /// What a single queue can have wrong depends on whether it is there: the broker says it.
    fn queue(definition: QueueDefinition) -> Self {
        Self::of(EntityPath::Queue(definition.path), definition.settings)
    }

    fn topic(definition: TopicDefinition) -> Result<Self, ApiError> {
        if !definition.subscriptions.is_empty() {
            let text = "subscriptions: a topic is put without them; each has a path of its own";
            return Err(ApiError::Bad(text.to_owned()));
        }
        Ok(Self::of(
            EntityPath::Topic(definition.path),
            definition.settings,
        ))
    }

    fn subscription(
        topic: &str,
        definition: SubscriptionDefinition,
        is_there: bool,
    ) -> Result<Self, ApiError> {
        if is_there && definition.rules.is_some() {
            let text =
                "rules: those of an existing subscription are put one by one, each at its path";
            return Err(ApiError::Bad(text.to_owned()));
        }
        let of_topic = TopicDefinition {
            path: topic.to_owned(),
            settings: QueueSettings::default(),
            subscriptions: vec![definition.clone()],
        };
        fault::check(&[], &[of_topic]).map_err(bad)?;
        let SubscriptionDefinition {
            name,
            settings,
            rules,
        } = definition;
        let topic = topic.to_owned();
        let SubscriptionSettings {
            queue,
            dead_lettering_on_filter_evaluation_exceptions,
        } = settings;
        Ok(Self {
            dead_lettering_on_filter_evaluation_exceptions,
            rules,
            ..Self::of(EntityPath::Subscription { topic, name }, queue)
        })
    }

    /// Whether the client may forward to each target that the entity does not have yet.
    fn check_targets(
        &self,
        current: Option<&EntityInfo>,
        allow: &AllowTarget<'_>,
    ) -> Result<(), Unauthorized> {
        let targets = |settings: &QueueSettings| {
            [
                settings.forward_to.clone(),
                settings.forward_dead_lettered_messages_to.clone(),
            ]
        };
        let old = current.map_or([None, None], |info| targets(&info.queue.settings));
        let new = targets(&self.settings).into_iter().zip(old);
        let mut changed = new.filter(|(new, old)| new != old);
        changed.try_for_each(|(new, _)| new.map_or(Ok(()), |target| allow(&target)))
    }

    fn of(path: EntityPath, settings: QueueSettings) -> Self {
        Self {
            path,
            settings,
            dead_lettering_on_filter_evaluation_exceptions: true,
            rules: None,
        }
    }
}

async fn create(shard_client: &mut ShardClient, path: &str, wanted: Description) -> ChangeResult {
    let order = Order::Create {
        path: wanted.path,
        description: Box::new(EntityDescription {
            settings: wanted.settings,
            dead_lettering_on_filter_evaluation_exceptions: wanted
                .dead_lettering_on_filter_evaluation_exceptions,
            ..EntityDescription::default()
        }),
        rules: wanted.rules,
    };
    shard_client.order(order).await??;
    Ok((StatusCode::CREATED, show::entity(shard_client, path).await?))
}

async fn update(
    shard_client: &mut ShardClient,
    path: &str,
    wanted: Description,
    current: &EntityInfo,
) -> ChangeResult {
    let order = Order::Update {
        entity: current.queue.id,
        description: Box::new(EntityDescription {
            settings: wanted.settings,
            dead_lettering_on_filter_evaluation_exceptions: wanted
                .dead_lettering_on_filter_evaluation_exceptions,
            store_only: (*current.store_only).clone(),
        }),
    };
    shard_client.order(order).await??;
    Ok((StatusCode::OK, show::entity(shard_client, path).await?))
}

fn read_rule(name: &str, json: Json) -> Result<RuleDescription, ApiError> {
    let rule = RuleDescription::from(read::<RuleConfig>(name, json)?);
    rule.check().map_err(EntityError::from)?;
    Ok(rule)
}

/// A description as a file has it, with the name that its path says.
fn read<T: DeserializeOwned>(name: &str, mut json: Json) -> Result<T, ApiError> {
    if let Some(object) = json.as_object_mut() {
        let said = object.insert("name".to_owned(), name.into());
        let said = said.as_ref().and_then(Json::as_str);
        if let Some(other) = said.filter(|said| !said.eq_ignore_ascii_case(name)) {
            return Err(ApiError::Bad(format!(
                "name is '{}', but the path names '{name}': nothing can be renamed",
                other.escape_debug()
            )));
        }
    }
    serde_json::from_value(json).map_err(|error| ApiError::Bad(error.to_string()))
}

fn bad(fault: fault::Fault) -> ApiError {
    ApiError::Bad(fault.message)
}
