//! `railbus namespace`: namespaces of a running broker.

use std::path::Path;

use hyper::Method;
use hyper::header::{HeaderName, IF_NONE_MATCH};
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value, json};

use super::CommandResult;
use super::output::{ApiResponse, OutputShape};
use super::request::PLAIN;
use crate::arguments::{BrokerArguments, NamespaceCommand, SnapshotName};
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};

const NAMESPACES: &str = "/$railbus/namespaces";
const SNAPSHOTS: &str = "/snapshots";
/// Only makes what is not there.
const NEW: &[(HeaderName, &str)] = &[(IF_NONE_MATCH, "*")];

/// `railbus namespace ...`
pub fn namespace(command: NamespaceCommand) -> CommandResult {
    match command {
        NamespaceCommand::List(list) => {
            let all = send(&list.broker, Call::get(NAMESPACES))?;
            let namespaces = all.get("namespaces").cloned().unwrap_or_default();
            ApiResponse(namespaces).print(OutputShape::Namespaces, list.output.json)
        }
        NamespaceCommand::Show(at) => {
            let found = send(&at.broker, Call::get(&path_of(&at.name)))?;
            ApiResponse(found).print(OutputShape::Entity, at.output.json)
        }
        NamespaceCommand::Create(create) => {
            let mut body = Map::new();
            if let Some(like) = create.like {
                body.insert("like".to_owned(), like.into());
            }
            if !create.hosts.is_empty() {
                body.insert("hosts".to_owned(), json!(create.hosts));
            }
            if let Some(lineage) = create.lineage {
                body.insert("lineage".to_owned(), lineage.into());
            }
            if let Some(most) = create.max_entities {
                body.insert("max-entities".to_owned(), most.into());
            }
            if let Some(most) = create.max_connections {
                body.insert("max-connections".to_owned(), most.into());
            }
            if let Some(most) = create.max_bytes {
                body.insert("max-bytes".to_owned(), most.as_u64().into());
            }
            let path = path_of(&create.at.name);
            let call = Call {
                method: Method::PUT,
                path: &path,
                headers: NEW,
                body: Some(Value::Object(body).to_string()),
            };
            let made = send(&create.at.broker, call)?;
            ApiResponse(made).print(OutputShape::Entity, create.at.output.json)
        }
        NamespaceCommand::Delete(at) => {
            let path = path_of(&at.name);
            let call = Call {
                method: Method::DELETE,
                ..Call::get(&path)
            };
            send(&at.broker, call)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
        NamespaceCommand::Reset(at) => {
            let path = path_of(&at.name) + "/reset";
            send(&at.broker, Call::post(&path, String::new()))?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
        NamespaceCommand::Snapshot(SnapshotName { at, snapshot }) => {
            let path = path_of(&at.name) + SNAPSHOTS;
            let body = json!({ "name": snapshot }).to_string();
            let taken = send(&at.broker, Call::post(&path, body))?;
            ApiResponse(taken).print(OutputShape::Entity, at.output.json)
        }
        NamespaceCommand::Snapshots(at) => {
            let all = send(&at.broker, Call::get(&(path_of(&at.name) + SNAPSHOTS)))?;
            let snapshots = all.get("snapshots").cloned().unwrap_or_default();
            ApiResponse(snapshots).print(OutputShape::Snapshots, at.output.json)
        }
        NamespaceCommand::RemoveSnapshot(SnapshotName { at, snapshot }) => {
            let snapshot = utf8_percent_encode(&snapshot, &PLAIN);
            let path = format!("{}{SNAPSHOTS}/{snapshot}", path_of(&at.name));
            let call = Call {
                method: Method::DELETE,
                ..Call::get(&path)
            };
            send(&at.broker, call)?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
        NamespaceCommand::Restore(SnapshotName { at, snapshot }) => {
            let path = path_of(&at.name) + "/restore";
            let body = json!({ "snapshot": snapshot }).to_string();
            send(&at.broker, Call::post(&path, body))?;
            ApiResponse(Value::Null).print(OutputShape::Nothing, at.output.json)
        }
        NamespaceCommand::Fork(fork) => {
            let path = path_of(&fork.at.name) + "/fork";
            let mut body = json!({ "name": fork.new, "hosts": fork.hosts });
            if let Some(snapshot) = fork.snapshot {
                body["snapshot"] = snapshot.into();
            }
            let made = send(&fork.at.broker, Call::post(&path, body.to_string()))?;
            ApiResponse(made).print(OutputShape::Entity, fork.at.output.json)
        }
    }
}

/// Gives a namespace what a backup of one has, and shows what was made if it was not there.
pub fn restore_namespace(
    name: &str,
    backup: &Path,
    broker: &BrokerArguments,
) -> Result<(), CommandError> {
    let path = path_of(name) + "/restore";
    let body = json!({ "backup": backup }).to_string();
    let made = send(broker, Call::post(&path, body))?;
    if made.get("name").is_none() {
        return Ok(());
    }
    ApiResponse(made).print(OutputShape::Entity, false)?;
    Ok(())
}

pub fn path_of(name: &str) -> String {
    format!("{NAMESPACES}/{}", utf8_percent_encode(name, &PLAIN))
}

/// Sends a request and returns the broker's response.
pub fn send(broker: &BrokerArguments, call: Call<'_>) -> Result<Value, CommandError> {
    let remote = Remote::new(broker)?;
    Ok(runtime()?.block_on(remote.call(call))?)
}
