//! Rules: their descriptions, in and out. (docs/spec/admin.md#5.4, #7)

use amqp::Value;
use broker::{Correlation, DEFAULT_RULE, FilterDescription, RuleDescription};
use entity::time;

use crate::error::Error;
use crate::typed;
use crate::xml::{Element, INSTANCE, SERVICE_BUS, Writer};

/// The compatibility level of the language, as SDKs send it.
const COMPATIBILITY: &str = "20";

/// The rule that a `RuleDescription` or a `DefaultRuleDescription` describes. `named` is what the
/// path calls it; a default rule says itself.
pub(crate) fn read(element: &Element, named: Option<&str>) -> Result<RuleDescription, Error> {
    let own = element.value("Name").unwrap_or(DEFAULT_RULE);
    let name = named.unwrap_or(own);
    let mut rule = RuleDescription {
        name: name.to_owned(),
        ..RuleDescription::default()
    };
    if let Some(filter) = element.child("Filter") {
        (rule.filter, rule.filter_parameters) = read_filter(filter)?;
    }
    if let Some(action) = element.child("Action") {
        (rule.action, rule.action_parameters) = read_action(action)?;
    }
    rule.check().map_err(|error| Error::rule(&error))?;
    Ok(rule)
}

type Parameters = Vec<(String, Value)>;

fn read_filter(filter: &Element) -> Result<(FilterDescription, Parameters), Error> {
    let kind = filter.kind.as_deref().unwrap_or("SqlFilter");
    match kind {
        "TrueFilter" => Ok((FilterDescription::True, Parameters::new())),
        "FalseFilter" => Ok((FilterDescription::False, Parameters::new())),
        "SqlFilter" => {
            let text = expression(filter, "Filter")?;
            Ok((FilterDescription::Sql(text), values(filter, "Parameters")?))
        }
        "CorrelationFilter" => {
            let correlation = Box::new(read_correlation(filter)?);
            Ok((
                FilterDescription::Correlation(correlation),
                Parameters::new(),
            ))
        }
        _ => Err(Error::value(
            "Filter",
            format!("the type '{kind}' is not known"),
        )),
    }
}

fn read_action(action: &Element) -> Result<(Option<String>, Parameters), Error> {
    let kind = action.kind.as_deref().unwrap_or("EmptyRuleAction");
    match kind {
        "EmptyRuleAction" => Ok((None, Parameters::new())),
        "SqlRuleAction" => {
            let text = expression(action, "Action")?;
            Ok((Some(text), values(action, "Parameters")?))
        }
        _ => Err(Error::value(
            "Action",
            format!("the type '{kind}' is not known"),
        )),
    }
}

fn expression(element: &Element, property: &str) -> Result<String, Error> {
    let text = element
        .child("SqlExpression")
        .map(|child| child.text.clone());
    text.ok_or_else(|| Error::value(property, "the SqlExpression is missing"))
}

fn read_correlation(filter: &Element) -> Result<Correlation, Error> {
    let text = |name: &str| {
        let text = filter.child(name).map(|child| child.text.clone());
        text.filter(|text| !text.is_empty())
    };
    Ok(Correlation {
        content_type: text("ContentType"),
        correlation_id: text("CorrelationId"),
        label: text("Label"),
        message_id: text("MessageId"),
        reply_to: text("ReplyTo"),
        reply_to_session_id: text("ReplyToSessionId"),
        session_id: text("SessionId"),
        to: text("To"),
        properties: values(filter, "Properties")?,
    })
}

/// The keys and values of a list.
fn values(element: &Element, list: &str) -> Result<Parameters, Error> {
    let entries = element
        .child(list)
        .into_iter()
        .flat_map(|list| &list.children);
    let entries = entries.filter(|entry| entry.name == "KeyValueOfstringanyType");
    let values = entries.map(|entry| {
        let key = entry.child("Key").map(|key| key.text.clone());
        let key = key.ok_or_else(|| Error::value(list, "a Key is missing"))?;
        let value = entry.child("Value");
        let value = value.ok_or_else(|| Error::value(list, format!("'{key}' has no Value")))?;
        let value = typed::parse(value).map_err(|why| Error::value(list, why))?;
        Ok((key, value))
    });
    values.collect()
}

/// Writes a rule's description, always with an action. (Two SDKs need one.)
pub(crate) fn write(writer: &mut Writer, rule: &RuleDescription) {
    let attributes = [("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)];
    writer.open("RuleDescription", &attributes);
    write_filter(writer, rule);
    match &rule.action {
        None => writer.empty("Action", &[("i:type", "EmptyRuleAction")]),
        Some(text) => {
            let parameters = &rule.action_parameters;
            write_sql(writer, "Action", "SqlRuleAction", text, parameters);
        }
    }
    writer.text("CreatedAt", time::text(rule.created));
    writer.text("Name", &rule.name);
    writer.close("RuleDescription");
}

fn write_filter(writer: &mut Writer, rule: &RuleDescription) {
    let parameters = &rule.filter_parameters;
    match &rule.filter {
        FilterDescription::True => write_sql(writer, "Filter", "TrueFilter", "1=1", &[]),
        FilterDescription::False => write_sql(writer, "Filter", "FalseFilter", "1=0", &[]),
        FilterDescription::Sql(text) => write_sql(writer, "Filter", "SqlFilter", text, parameters),
        FilterDescription::Correlation(fields) => write_correlation(writer, fields),
    }
}

fn write_sql(
    writer: &mut Writer,
    name: &str,
    kind: &str,
    text: &str,
    parameters: &[(String, Value)],
) {
    writer.open(name, &[("i:type", kind)]);
    writer.text("SqlExpression", text);
    writer.text("CompatibilityLevel", COMPATIBILITY);
    write_values(writer, "Parameters", parameters);
    writer.close(name);
}

fn write_correlation(writer: &mut Writer, fields: &Correlation) {
    writer.open("Filter", &[("i:type", "CorrelationFilter")]);
    writer.optional("CorrelationId", fields.correlation_id.as_ref());
    writer.optional("MessageId", fields.message_id.as_ref());
    writer.optional("To", fields.to.as_ref());
    writer.optional("ReplyTo", fields.reply_to.as_ref());
    writer.optional("Label", fields.label.as_ref());
    writer.optional("SessionId", fields.session_id.as_ref());
    writer.optional("ReplyToSessionId", fields.reply_to_session_id.as_ref());
    writer.optional("ContentType", fields.content_type.as_ref());
    write_values(writer, "Properties", &fields.properties);
    writer.close("Filter");
}

fn write_values(writer: &mut Writer, list: &str, values: &[(String, Value)]) {
    if values.is_empty() {
        return;
    }
    writer.open(list, &[]);
    for (key, value) in values {
        writer.open("KeyValueOfstringanyType", &[]);
        writer.text("Key", key);
        typed::write(writer, "Value", value);
        writer.close("KeyValueOfstringanyType");
    }
    writer.close(list);
}
