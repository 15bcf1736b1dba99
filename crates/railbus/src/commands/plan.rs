//! `railbus config plan` and `apply`: make a running broker's entities equal to a file.
//!
//! The broker makes the plan and carries it out, completely or not at all.

use std::process::ExitCode;

use entity::of_file;
use entity::plan::Plan;
use hyper::StatusCode;
use serde_json::Value;

use crate::arguments::PlanArguments;
use crate::command_error::CommandError;
use crate::commands::check;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Error, Remote};
use crate::stdout;

/// Prints the changes without applying them. The exit code shows whether there are any.
pub fn show(arguments: &PlanArguments) -> Result<ExitCode, CommandError> {
    let plan = ask(arguments, "/$railbus/plan")?;
    print(&plan, arguments.json)?;
    Ok(match (plan.refused.is_empty(), plan.changes.is_empty()) {
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(1),
        (false, _) => ExitCode::from(2),
    })
}

/// Makes it so, and prints what has changed.
pub fn apply(arguments: &PlanArguments) -> Result<ExitCode, CommandError> {
    let mut plan = ask(arguments, "/$railbus/apply")?;
    if plan.refused.is_empty() {
        print(&plan, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.json {
        plan.changes.clear();
    }
    print(&plan, arguments.json)?;
    Ok(ExitCode::from(2))
}

fn ask(arguments: &PlanArguments, path: &str) -> Result<Plan, CommandError> {
    let entities = check::read(&arguments.file)?;
    if !entities.namespaces.is_empty() {
        eprintln!("railbus: a plan is for one namespace; [[namespaces]] of the file are left out");
    }
    let remote = Remote::new(&arguments.broker)?;
    let mut body = of_file(&entities.queues, &entities.topics, &entities.policies);
    body.insert("authoritative".to_owned(), arguments.authoritative.into());
    let body = Value::Object(body).to_string();
    let answered = runtime()?.block_on(remote.ask(Call::post(path, body)));
    let authority = remote.broker.authority;
    match answered {
        Ok(body) => read(&body).map_err(|error| protocol(authority, &error)),
        // A plan that cannot be carried out.
        Err(Error::Answered { status, body, .. }) if status == StatusCode::CONFLICT => {
            read(&body).map_err(|error| protocol(authority, &error))
        }
        Err(error) => Err(error.explained().into()),
    }
}

fn read(body: &[u8]) -> serde_json::Result<Plan> {
    serde_json::from_slice(body)
}

fn protocol(authority: String, error: &serde_json::Error) -> CommandError {
    let reason = error.to_string();
    Error::Protocol { authority, reason }.into()
}

/// One line for each change on stdout, and for each refusal on stderr.
fn print(plan: &Plan, json: bool) -> Result<(), CommandError> {
    if json {
        let text = serde_json::to_string(plan).expect("a plan is JSON");
        return stdout::print_line(text);
    }
    for change in &plan.changes {
        stdout::print_line(change)?;
    }
    for refused in &plan.refused {
        eprintln!("railbus: {refused}");
    }
    if plan.changes.is_empty() && plan.refused.is_empty() {
        stdout::print_line("nothing changes")?;
    }
    Ok(())
}
