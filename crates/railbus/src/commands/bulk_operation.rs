//! `railbus purge` and `redrive`: delete messages, or move dead letters back to their entity.

use std::process::ExitCode;

use serde_json::{Map, Value};

use crate::arguments::{BulkArguments, MessagePart, PurgeArguments, RedriveArguments};
use crate::command_error::CommandError;
use crate::commands::administration::request::{Request, path_of};
use crate::stdout;

/// Deletes messages and prints their number.
pub fn purge(arguments: &PurgeArguments) -> Result<ExitCode, CommandError> {
    operate(&arguments.bulk, "purge", arguments.part)
}

/// Redrives dead letters and prints their number.
pub fn redrive(arguments: &RedriveArguments) -> Result<ExitCode, CommandError> {
    let part = match arguments.transfer {
        true => MessagePart::TransferDeadLetter,
        false => MessagePart::DeadLetter,
    };
    operate(&arguments.bulk, "redrive", part)
}

fn operate(
    arguments: &BulkArguments,
    operation: &str,
    part: MessagePart,
) -> Result<ExitCode, CommandError> {
    let mut body = Map::new();
    let part = serde_json::to_value(part).expect("a part is a word");
    body.insert("part".to_owned(), part);
    body.insert("filter".to_owned(), arguments.filter.clone().into());
    body.insert("limit".to_owned(), arguments.limit.into());
    body.insert("rate".to_owned(), arguments.rate.into());
    body.insert("dry-run".to_owned(), arguments.dry_run.into());
    let path = format!("{}/{operation}", path_of(&arguments.entity));
    let answer = Request::post(path, body).send(&arguments.broker)?;
    if arguments.json {
        stdout::print_line(answer)?;
    } else {
        stdout::print(text(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each count.
fn text(answer: &Value) -> String {
    let counts = ["selected", "purged", "redriven"].into_iter();
    let counts = counts.filter_map(|name| Some((name, answer.get(name)?.as_u64()?)));
    let kept = answer.get("kept").and_then(Value::as_u64);
    let kept = kept.filter(|kept| *kept > 0).map(|kept| ("kept", kept));
    counts
        .chain(kept)
        .map(|(name, count)| format!("{name} {count}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_a_line_for_each_count() {
        assert_eq!(
            text(&json!({"redriven": 5, "kept": 0, "dry-run": false})),
            "redriven 5\n"
        );
        assert_eq!(
            text(&json!({"redriven": 5, "kept": 1})),
            "redriven 5\nkept 1\n"
        );
        assert_eq!(text(&json!({"selected": 0, "kept": 0})), "selected 0\n");
    }
}
