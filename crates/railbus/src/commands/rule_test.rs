//! `railbus rule test`: the result of a rule for a message, with the broker's engine and without a
//! broker.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::FilterDescription;
use entity::rules::{
    Change, CorrelationFields, Filter, MessageDescription, Report, Test, TypedValue, Verdict,
};
use serde::Serialize;

use crate::arguments::RuleTestArguments;
use crate::command_error::CommandError;
use crate::config;
use crate::table::table;

/// Prints the result of the rule for the message; the exit code shows it too.
pub fn run(arguments: RuleTestArguments) -> Result<ExitCode, CommandError> {
    let json = arguments.json;
    let report = match test(arguments)?.run(now()) {
        Ok(report) => report,
        Err(refusal) => {
            if json {
                print_json(&refusal);
            }
            return Err(refusal.into());
        }
    };
    if json {
        print_json(&report);
    } else {
        print!("{}", format_report(&report));
    }
    Ok(match report.verdict {
        Verdict::Match => ExitCode::SUCCESS,
        Verdict::NoMatch => ExitCode::from(1),
        Verdict::Error => ExitCode::from(2),
    })
}

fn test(arguments: RuleTestArguments) -> Result<Test, CommandError> {
    let filter = match (arguments.expression, arguments.correlation) {
        (Some(text), _) => FilterDescription::Sql(text),
        (None, Some(json)) => {
            let fields: Result<CorrelationFields, _> = serde_json::from_str(&json);
            fields.map_err(CommandError::Correlation)?.into()
        }
        (None, None) => FilterDescription::True,
    };
    Ok(Test {
        filter: Filter(filter),
        action: arguments.action,
        message: message(&arguments.message)?,
    })
}

fn message(file: &Path) -> Result<MessageDescription, CommandError> {
    if file != Path::new("-") {
        return Ok(config::read_text(file, &config::read(file)?)?);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(CommandError::Stdin)?;
    Ok(config::read_text(Path::new("stdin"), &text)?)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn print_json(answer: &impl Serialize) {
    let text = serde_json::to_string(answer).expect("an answer is JSON");
    println!("{text}");
}

/// The verdict in one line, and a line for each change.
fn format_report(report: &Report) -> String {
    let verdict = match report.verdict {
        Verdict::Match => "match",
        Verdict::NoMatch => "no match",
        Verdict::Error => "error",
    };
    let mut text = verdict.to_owned();
    if let Some(reason) = &report.reason {
        text.push_str(": ");
        text.push_str(reason);
    }
    text.push('\n');
    if let Some(reason) = report.dead_letter_reason {
        text.push_str(&format!(
            "a subscription would dead-letter the message as {reason}\n"
        ));
    }
    if !report.changes.is_empty() {
        text.push_str(&columns(&report.changes));
    }
    text
}

fn columns(changes: &[Change]) -> String {
    let format_report = |value: &Option<TypedValue>| match value {
        Some(value) => value.to_string(),
        None => "-".to_owned(),
    };
    let rows = changes.iter().map(|change| {
        [
            change.property.clone(),
            format_report(&change.before),
            format_report(&change.after),
        ]
    });
    table(["property", "before", "after"], rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests a rule on a message in a file, and shows what is printed.
    fn check(change: impl FnOnce(&mut RuleTestArguments), expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("message.json");
        let text = r#"{"subject": "red", // with a comment
            "properties": {"n": 5, "long-name": {"type": "int", "value": 7}}}"#;
        std::fs::write(&file, text).unwrap();
        let mut arguments = RuleTestArguments {
            expression: None,
            correlation: None,
            action: None,
            message: file,
            json: false,
        };
        change(&mut arguments);
        let report = test(arguments).unwrap().run(0).unwrap();
        assert_eq!(format_report(&report), expected);
    }

    #[test]
    fn the_verdict_is_one_line() {
        let sql = |text: &str| Some(text.to_owned());
        check(|rule| rule.expression = sql("n = 5"), "match\n");
        check(
            |rule| rule.expression = sql("n = 6"),
            "no match: the filter is false\n",
        );
        check(
            |rule| rule.correlation = sql(r#"{"subject": "red", "properties": {"n": 5}}"#),
            "match\n",
        );
        check(
            |rule| rule.expression = sql("n > 'a'"),
            "error: the filter cannot be evaluated: a number cannot be used with a text here\n\
             a subscription would dead-letter the message as FilterException\n",
        );
    }

    #[test]
    fn changes_are_a_table() {
        check(
            |rule| {
                let action = "SET sys.Label = 'blue'; REMOVE n; SET [long-name] = 8; SET new = 1.5";
                rule.action = Some(action.to_owned());
            },
            "match\n\
             property   before  after\n\
             sys.Label  'red'   'blue'\n\
             long-name  int 7   int 8\n\
             n          5       -\n\
             new        -       1.5\n",
        );
    }

    #[test]
    fn an_error_in_the_message_names_file_line_and_path() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("message.json");
        let check = |text: &str, expected: &str| {
            std::fs::write(&file, text).unwrap();
            let error = message(&file).unwrap_err().to_string();
            let directory = format!("{}/", directory.path().display());
            assert!(
                error.replace(&directory, "").starts_with(expected),
                "{error}"
            );
        };
        check(
            "{\n\"properties\": {\n\"n\": {\"type\": \"byte\", \"value\": 500}}}",
            "message.json:3: properties.n: 500 is no byte",
        );
        check(
            "{\"subjetc\": 5}",
            "message.json:1: subjetc: unknown field `subjetc`",
        );
        check("{\n\"subject\": }", "message.json:2: ");
        check("", "message.json: the file is empty");
    }
}
