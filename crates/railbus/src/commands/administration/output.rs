//! Output of entities and rules: tables for people, or the broker's JSON.

use std::process::ExitCode;

use entity::duration::NEVER_TEXT;
use serde_json::Value;

use crate::command_error::CommandError;
use crate::stdout;
use crate::table::table;

/// A response of the broker.
#[derive(Debug)]
pub struct ApiResponse(pub Value);

/// What it is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OutputShape {
    /// Several entities, each in a row.
    Entities,
    /// Several rules, each in a row.
    Rules,
    /// Several policies, each in a row.
    Policies,
    /// Several namespaces, each in a row.
    Namespaces,
    /// Several snapshots, each in a row.
    Snapshots,
    /// Several fault rules, each in a row.
    Faults,
    /// One entity or rule, each property in a row.
    Entity,
    /// There is nothing to be said.
    Nothing,
}

impl ApiResponse {
    /// Prints it.
    pub fn print(&self, output_shape: OutputShape, json: bool) -> Result<ExitCode, CommandError> {
        match (output_shape, json) {
            (OutputShape::Nothing, true) => stdout::print_line("{}")?,
            (_, true) => stdout::print_line(&self.0)?,
            (_, false) => stdout::print(self.text(output_shape))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, output_shape: OutputShape) -> String {
        match output_shape {
            OutputShape::Nothing => String::new(),
            OutputShape::Entity => properties(&self.0),
            OutputShape::Entities => {
                let head = [
                    "name",
                    "status",
                    "active",
                    "dead-letter",
                    "scheduled",
                    "bytes",
                ];
                let rows = self.each(|entity| {
                    let state = |name: &str| format_value(&entity["state"][name]);
                    [
                        format_value(&entity["name"]),
                        format_value(&entity["status"]),
                        state("active"),
                        state("dead-letter"),
                        state("scheduled"),
                        state("bytes"),
                    ]
                });
                table(head, rows)
            }
            OutputShape::Rules => {
                let rows = self.each(|rule| {
                    let action = format_value(&rule["action"]);
                    [format_value(&rule["name"]), filter(&rule["filter"]), action]
                });
                table(["name", "filter", "action"], rows)
            }
            OutputShape::Policies => {
                let head = [
                    "name",
                    "layer",
                    "apply-to",
                    "priority",
                    "pattern",
                    "definition",
                ];
                let rows = self.each(|policy| head.map(|name| format_value(&policy[name])));
                table(head, rows)
            }
            OutputShape::Faults => {
                let head = ["name", "match", "effect", "matched", "injected"];
                let rows = self.each(|fault| head.map(|name| format_value(&fault[name])));
                table(head, rows)
            }
            OutputShape::Snapshots => {
                let head = ["name", "created", "entities", "messages", "bytes"];
                let rows = self.each(|snapshot| head.map(|name| format_value(&snapshot[name])));
                table(head, rows)
            }
            OutputShape::Namespaces => {
                let head = ["name", "entities", "created"];
                let rows = self.each(|namespace| head.map(|name| format_value(&namespace[name])));
                table(head, rows)
            }
        }
    }

    fn each<Row>(&self, row: impl Fn(&Value) -> Row) -> Vec<Row> {
        self.0.as_array().into_iter().flatten().map(row).collect()
    }
}

/// A row for each property; what is below an entity has rows of its own.
fn properties(entity: &Value) -> String {
    let mut rows = Vec::new();
    let members = entity.as_object().into_iter().flatten();
    for (name, value) in members {
        match (&**name, value) {
            ("state", Value::Object(state)) => {
                let state = state.iter().filter(|(_, value)| !value.is_null());
                rows.extend(
                    state.map(|(name, value)| [format!("state.{name}"), format_value(value)]),
                );
            }
            ("subscriptions", Value::Array(list)) => {
                rows.extend(
                    list.iter()
                        .map(|it| ["subscription".to_owned(), format_value(&it["name"])]),
                );
            }
            ("rules", Value::Array(list)) => {
                let rule = |rule: &Value| {
                    format!(
                        "{}: {}",
                        format_value(&rule["name"]),
                        filter(&rule["filter"])
                    )
                };
                rows.extend(list.iter().map(|it| ["rule".to_owned(), rule(it)]));
            }
            ("filter", value) => rows.push([name.clone(), filter(value)]),
            (_, value) => rows.push([name.clone(), format_value(value)]),
        }
    }
    table(["property", "value"], rows)
}

/// An SQL filter is its text, any other as files have it.
fn filter(filter: &Value) -> String {
    match &filter["sql"] {
        Value::String(sql) => sql.clone(),
        _ => format_value(filter),
    }
}

/// Texts as they are, what is missing as a dash, anything else as JSON.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text == NEVER_TEXT => "never".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entities_are_rows_with_their_counts() {
        let state = json!({"active": 5, "dead-letter": 0, "scheduled": 1, "bytes": 99});
        let list = json!([{"name": "orders", "status": "active", "state": state}]);
        assert_eq!(
            ApiResponse(list).text(OutputShape::Entities),
            "name    status  active  dead-letter  scheduled  bytes\n\
             orders  active  5       0            1          99\n"
        );
    }

    #[test]
    fn one_entity_has_a_row_for_each_property() {
        let entity = json!({
            "name": "s", "lock-duration": "PT1M", "requires-session": false,
            "state": {"active": 5, "accessed": null},
            "rules": [{"name": "a", "filter": {"sql": "n > 1"}}, {"name": "b", "filter": true}],
        });
        assert_eq!(
            ApiResponse(entity).text(OutputShape::Entity),
            "property          value\n\
             lock-duration     PT1M\n\
             name              s\n\
             requires-session  false\n\
             rule              a: n > 1\n\
             rule              b: true\n\
             state.active      5\n"
        );
    }

    #[test]
    fn rules_are_rows_with_their_texts() {
        let list =
            json!([{"name": "a", "filter": {"correlation": {"to": "x"}}, "action": "SET a = 1"}]);
        assert_eq!(
            ApiResponse(list).text(OutputShape::Rules),
            "name  filter                      action\n\
             a     {\"correlation\":{\"to\":\"x\"}}  SET a = 1\n"
        );
    }
}
