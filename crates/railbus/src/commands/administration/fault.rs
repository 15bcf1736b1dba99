//! `railbus fault`: the fault rules of a namespace of a running broker.

use hyper::Method;
use serde_json::{Value, json};

use super::CommandResult;
use super::namespace::{path_of, send};
use super::output::{ApiResponse, OutputShape};
use crate::arguments::{FaultCommand, FaultsOf};
use crate::remote::Call;

/// `railbus fault ...`
pub fn fault(command: FaultCommand) -> CommandResult {
    match command {
        FaultCommand::List(of) => ask(&of, Method::GET, None),
        FaultCommand::Clear(of) => ask(&of, Method::DELETE, None),
        FaultCommand::Add(add) => {
            let matches = add.matches.map(|it| it.0).unwrap_or_default();
            let rule = json!({"name": add.name, "match": matches, "effect": add.effect});
            ask(&add.at, Method::POST, Some(rule.to_string()))
        }
    }
}

/// Prints the rules that there are then.
fn ask(of: &FaultsOf, method: Method, body: Option<String>) -> CommandResult {
    let path = path_of(&of.namespace) + "/faults";
    let call = Call {
        method,
        body,
        ..Call::get(&path)
    };
    let answer = send(&of.broker, call)?;
    let faults = answer.get("faults").cloned().unwrap_or(Value::Null);
    ApiResponse(faults).print(OutputShape::Faults, of.output.json)
}
