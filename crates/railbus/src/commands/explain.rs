//! `railbus explain`: why messages of a queue or subscription are not delivered.

use std::process::ExitCode;

use serde_json::Value;

use crate::arguments::ExplainArguments;
use crate::command_error::CommandError;
use crate::commands::administration::request::{Request, path_of};
use crate::commands::administration::{namespace_path, send};
use crate::remote::Call;
use crate::stdout;

/// Prints a line for each reason, the one that stands in the way most first.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode, CommandError> {
    let part = serde_json::to_value(arguments.part).expect("a part is a word");
    let part = part.as_str().unwrap_or_default();
    let mut path = format!("{}/explain?part={part}", path_of(&arguments.entity));
    if let Some(number) = arguments.sequence {
        path += &format!("&sequence={number}");
    }
    let answer = match &arguments.namespace {
        None => Request::get(path).send(&arguments.broker)?,
        Some(name) => {
            let path = format!("{}/entities{path}", namespace_path(name));
            send(&arguments.broker, Call::get(&path))?
        }
    };
    if arguments.output.json {
        stdout::print_line(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reasons = answer.get("reasons").and_then(Value::as_array);
    for reason in reasons.into_iter().flatten() {
        let member = |name: &str| reason.get(name).and_then(Value::as_str).unwrap_or_default();
        stdout::print_line(format_args!("{}: {}", member("code"), member("text")))?;
    }
    Ok(ExitCode::SUCCESS)
}
