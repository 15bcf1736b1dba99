//! `railbus queue`, `topic`, `subscription`, `rule`, `policy`, `namespace`, `fault` and `trace`:
//! administration over HTTP.

mod fault;
mod namespace;
mod output;
mod policy;
pub mod request;
mod trace;

use std::process::ExitCode;

use hyper::Method;
use hyper::header::{HeaderName, IF_NONE_MATCH};
use serde_json::{Map, Value};

use crate::arguments::{
    EntityCommand, Kind, PropertyOptions, Queue, RuleCommand, RuleOptions, SubscriptionCommand,
    Topic,
};
use crate::command_error::CommandError;
pub use fault::fault;
pub use namespace::{namespace, path_of as namespace_path, restore_namespace, send};
use output::{ApiResponse, OutputShape};
pub use policy::policy;
use request::{Request, path_of, rule_path, subscription_path};
pub use trace::trace;

type CommandResult = Result<ExitCode, CommandError>;

/// Only makes what is not there.
const NEW: &[(HeaderName, &str)] = &[(IF_NONE_MATCH, "*")];

/// `railbus queue ...`
pub fn queue(command: EntityCommand<PropertyOptions<Queue>>) -> CommandResult {
    entity(command)
}

/// `railbus topic ...`
pub fn topic(command: EntityCommand<PropertyOptions<Topic>>) -> CommandResult {
    entity(command)
}

fn entity<K: Kind>(command: EntityCommand<PropertyOptions<K>>) -> CommandResult {
    let kind = K::KIND.name();
    match command {
        EntityCommand::List(list) => {
            let all = Request::get(String::new()).send(&list.broker)?;
            let list_of_kind = all.get(format!("{kind}s")).cloned().unwrap_or_default();
            ApiResponse(list_of_kind).print(OutputShape::Entities, list.output.json)
        }
        EntityCommand::Show(at) => {
            let found = Request::get(path_of(&at.path)).send(&at.broker)?;
            request::check_kind(&found, kind, &at.path)?;
            ApiResponse(found).print(OutputShape::Entity, at.output.json)
        }
        EntityCommand::Create(change) => {
            let mut body = change.options.given;
            body.insert("kind".to_owned(), kind.into());
            let request = Request::new(Method::PUT, path_of(&change.at.path), NEW, Some(body));
            let made = request.send(&change.at.broker)?;
            ApiResponse(made).print(OutputShape::Entity, change.at.output.json)
        }
        EntityCommand::Update(change) => {
            let mut body = change.options.given;
            body.insert("kind".to_owned(), kind.into());
            let request = Request::new(Method::PATCH, path_of(&change.at.path), &[], Some(body));
            let changed = request.send(&change.at.broker)?;
            ApiResponse(changed).print(OutputShape::Entity, change.at.output.json)
        }
        EntityCommand::Delete(at) => {
            let found = Request::get(path_of(&at.path)).send(&at.broker)?;
            request::check_kind(&found, kind, &at.path)?;
            Request::delete(path_of(&at.path)).send(&at.broker)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
    }
}

/// `railbus subscription ...`
pub fn subscription(command: SubscriptionCommand) -> CommandResult {
    match command {
        SubscriptionCommand::List { topic, list } => {
            let found = Request::get(path_of(&topic)).send(&list.broker)?;
            request::check_kind(&found, "topic", &topic)?;
            let below = found.get("subscriptions").cloned().unwrap_or_default();
            ApiResponse(below).print(OutputShape::Entities, list.output.json)
        }
        SubscriptionCommand::Show(at) => {
            let path = subscription_path(&at.topic, &at.name);
            let found = Request::get(path).send(&at.broker)?;
            ApiResponse(found).print(OutputShape::Entity, at.output.json)
        }
        SubscriptionCommand::Create(change) => {
            let path = subscription_path(&change.at.topic, &change.at.name);
            let body = change.options.given;
            let request = Request::new(Method::PUT, path, NEW, Some(body));
            let made = request.send(&change.at.broker)?;
            ApiResponse(made).print(OutputShape::Entity, change.at.output.json)
        }
        SubscriptionCommand::Update(change) => {
            let path = subscription_path(&change.at.topic, &change.at.name);
            let body = change.options.given;
            let request = Request::new(Method::PATCH, path, &[], Some(body));
            let changed = request.send(&change.at.broker)?;
            ApiResponse(changed).print(OutputShape::Entity, change.at.output.json)
        }
        SubscriptionCommand::Delete(at) => {
            let path = subscription_path(&at.topic, &at.name);
            Request::delete(path).send(&at.broker)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
    }
}

/// `railbus rule ...`, but for the test of one.
pub fn rule(command: RuleCommand) -> CommandResult {
    match command {
        RuleCommand::List {
            topic,
            subscription,
            list,
        } => {
            let path = subscription_path(&topic, &subscription) + "/Rules";
            let found = Request::get(path).send(&list.broker)?;
            let rules = found.get("rules").cloned().unwrap_or_default();
            ApiResponse(rules).print(OutputShape::Rules, list.output.json)
        }
        RuleCommand::Show(at) => {
            let path = rule_path(&at.topic, &at.subscription, &at.name);
            let found = Request::get(path).send(&at.broker)?;
            ApiResponse(found).print(OutputShape::Entity, at.output.json)
        }
        RuleCommand::Create(change) => {
            let at = change.at;
            let path = rule_path(&at.topic, &at.subscription, &at.name);
            let body = rule_of(change.options)?;
            let made = Request::new(Method::PUT, path, NEW, Some(body)).send(&at.broker)?;
            ApiResponse(made).print(OutputShape::Entity, at.output.json)
        }
        RuleCommand::Update(change) => {
            let at = change.at;
            let path = rule_path(&at.topic, &at.subscription, &at.name);
            let body = rule_of(change.options)?;
            let changed = Request::new(Method::PATCH, path, &[], Some(body)).send(&at.broker)?;
            ApiResponse(changed).print(OutputShape::Entity, at.output.json)
        }
        RuleCommand::Delete(at) => {
            let path = rule_path(&at.topic, &at.subscription, &at.name);
            Request::delete(path).send(&at.broker)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
        RuleCommand::Test(arguments) => crate::commands::rule_test::run(arguments),
    }
}

fn rule_of(options: RuleOptions) -> Result<Map<String, Value>, CommandError> {
    let mut rule = Map::new();
    let filter = match (options.expression, options.correlation) {
        (Some(sql), _) => Some(serde_json::json!({ "sql": sql })),
        (None, Some(json)) => {
            let fields: Value = serde_json::from_str(&json).map_err(CommandError::Correlation)?;
            Some(serde_json::json!({ "correlation": fields }))
        }
        (None, None) if options.everything || options.nothing => Some(options.everything.into()),
        (None, None) => None,
    };
    if let Some(filter) = filter {
        rule.insert("filter".to_owned(), filter);
    }
    if let Some(action) = options.action {
        let action = Some(action).filter(|action| !action.is_empty());
        rule.insert("action".to_owned(), action.into());
    }
    Ok(rule)
}
