//! `railbus policy`: policies of a running broker.

use hyper::Method;
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value, json};

use super::CommandResult;
use super::output::{ApiResponse, OutputShape};
use super::request::PLAIN;
use crate::arguments::{BrokerArguments, PolicyCommand, PolicyName};
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};

const POLICIES: &str = "/$railbus/policies";

/// `railbus policy ...`
pub fn policy(command: PolicyCommand) -> CommandResult {
    match command {
        PolicyCommand::List(list) => {
            let all = send(&list.broker, Method::GET, POLICIES, None)?;
            let policies = all.get("policies").cloned().unwrap_or_default();
            ApiResponse(policies).print(OutputShape::Policies, list.output.json)
        }
        PolicyCommand::Set(set) => {
            let body = json!({
                "pattern": set.pattern,
                "apply-to": set.apply_to,
                "priority": set.priority,
                "definition": set.definition.0,
            });
            let body = body.as_object().cloned();
            let made = send(&set.at.broker, Method::PUT, &path_of(&set.at), body)?;
            ApiResponse(made).print(OutputShape::Entity, set.at.output.json)
        }
        PolicyCommand::Clear(at) => {
            send(&at.broker, Method::DELETE, &path_of(&at), None)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
    }
}

fn path_of(at: &PolicyName) -> String {
    let layer = if at.operator { "operator" } else { "user" };
    let name = utf8_percent_encode(&at.name, &PLAIN);
    format!("{POLICIES}/{layer}/{name}")
}

fn send(
    broker: &BrokerArguments,
    method: Method,
    path: &str,
    body: Option<Map<String, Value>>,
) -> Result<Value, CommandError> {
    let remote = Remote::new(broker)?;
    let call = Call {
        method,
        body: body.map(|body| Value::Object(body).to_string()),
        ..Call::get(path)
    };
    Ok(runtime()?.block_on(remote.call(call))?)
}
