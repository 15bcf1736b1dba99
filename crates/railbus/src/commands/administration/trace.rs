//! `railbus trace`: what has happened to messages of a running broker.

use std::process::ExitCode;

use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::CommandResult;
use super::namespace::{path_of, send};
use super::request::PLAIN;
use crate::arguments::TraceArguments;
use crate::remote::Call;
use crate::stdout;
use crate::table::table;

/// Prints a line for each event, and how far back the record reaches.
pub fn trace(arguments: &TraceArguments) -> CommandResult {
    let path = request_path(arguments);
    let history = send(&arguments.broker, Call::get(&path))?;
    if arguments.output.json {
        stdout::print_line(history)?;
    } else {
        stdout::print(shown(&history))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn request_path(arguments: &TraceArguments) -> String {
    let plain = |text: &str| utf8_percent_encode(text, &PLAIN).to_string();
    let mut path = path_of(&arguments.namespace);
    if let Some(id) = &arguments.message_id {
        path += &format!("/messages/{}", plain(id));
    }
    let sequence = arguments.sequence.map(|number| number.to_string());
    let parameters = [
        ("entity", &arguments.entity),
        ("sequence", &sequence),
        ("session", &arguments.session),
    ];
    let given = parameters
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", plain(value.as_ref()?))));
    let query: Vec<_> = given.collect();
    format!("{path}/history?{}", query.join("&"))
}

fn shown(history: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    if history["recorded"] != true {
        let namespace = text(history, "namespace");
        return format!(
            "nothing is recorded in the namespace {namespace}: start the broker with `lineage = \
             true` in railbus.toml, or make the namespace with --lineage true\n"
        );
    }
    let events = history["events"].as_array().map_or(&[][..], Vec::as_slice);
    let rows = events.iter().map(|event| {
        let number = event["sequence-number"].as_u64();
        let number = number
            .map(|number| format!(" #{number}"))
            .unwrap_or_default();
        let message = text(event, "entity") + &number;
        [text(event, "at"), message, text(event, "text")]
    });
    let mut shown = match events {
        [] => String::new(),
        _ => table(["time", "message", "event"], rows.collect()),
    };
    let since = text(history, "since");
    shown += &match (events, history["complete"] == true) {
        ([], _) => format!("nothing is known of it; recorded since {since}\n"),
        (_, true) => format!("recorded since {since}\n"),
        (_, false) => format!("recorded since {since}: there may have been more before\n"),
    };
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(history: &Value, expected: &str) {
        assert_eq!(shown(history), expected);
    }

    #[test]
    fn a_history_is_a_table_and_how_far_back_it_reaches() {
        let event = json!({
            "at": "2026-11-27T15:00:00Z", "entity": "orders", "sequence-number": 7,
            "code": "expired", "text": "its time to live was over",
        });
        let since = "2026-11-27T14:00:00Z";
        check(
            &json!({"recorded": true, "since": since, "complete": false, "events": [event]}),
            "time                  message    event\n\
             2026-11-27T15:00:00Z  orders #7  its time to live was over\n\
             recorded since 2026-11-27T14:00:00Z: there may have been more before\n",
        );
        check(
            &json!({"recorded": true, "since": since, "complete": false, "events": []}),
            "nothing is known of it; recorded since 2026-11-27T14:00:00Z\n",
        );
        let off = shown(&json!({"namespace": "shop", "recorded": false, "events": []}));
        assert!(
            off.starts_with("nothing is recorded in the namespace shop"),
            "{off}"
        );
    }
}
