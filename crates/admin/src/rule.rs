//! Rules: their descriptions, in and out. (docs/spec/admin.md#5.4, #7)

use amqp::Value;
use broker::{
    Correlation, CorrelationField, DEFAULT_RULE, FilterDescription, OriginalValue, RuleDescription,
    RuleError,
};
use entity::time;

use crate::error::Error;
use crate::typed;
use crate::xml::{Element, INSTANCE, SERVICE_BUS, Writer};

/// The compatibility level of the language, as SDKs send it.
const COMPATIBILITY: &str = "20";

/// The rule that a `RuleDescription` or a `DefaultRuleDescription` describes. `named` is what the
/// path calls it; a default rule says itself. `address` is that of the request.
pub(crate) fn read(
    element: &Element,
    named: Option<&str>,
    address: &str,
) -> Result<RuleDescription, Error> {
    let own = element.value("Name").unwrap_or(DEFAULT_RULE);
    let name = named.unwrap_or(own);
    let mut rule = RuleDescription {
        name: name.to_owned(),
        ..RuleDescription::default()
    };
    if let Some(filter) = element.child("Filter") {
        rule.filter = read_filter(filter)?;
        match &mut rule.filter {
            FilterDescription::Correlation(fields) => {
                (fields.properties, rule.filter_texts) = read_values(filter, "Properties")?;
            }
            FilterDescription::Sql(_) => {
                (rule.filter_parameters, rule.filter_texts) = read_values(filter, "Parameters")?;
            }
            FilterDescription::True | FilterDescription::False | FilterDescription::Selector(_) => {
            }
        }
    }
    if let Some(action) = element.child("Action") {
        rule.action = read_action(action)?;
        if rule.action.is_some() {
            (rule.action_parameters, rule.action_texts) = read_values(action, "Parameters")?;
        }
    }
    rule.check().map_err(|error| match error {
        RuleError::Name(error) => Error::name(&error.in_request(address.to_owned())),
        other => Error::rule(&other),
    })?;
    Ok(rule)
}

/// Without its values.
fn read_filter(filter: &Element) -> Result<FilterDescription, Error> {
    let kind = filter.kind.as_deref().unwrap_or("SqlFilter");
    match kind {
        "TrueFilter" => Ok(FilterDescription::True),
        "FalseFilter" => Ok(FilterDescription::False),
        "SqlFilter" => {
            let text = filter.child("SqlExpression");
            let text =
                text.ok_or_else(|| Error::value("Filter", "the SqlExpression is missing"))?;
            Ok(FilterDescription::Sql(text.text.clone()))
        }
        "CorrelationFilter" => {
            let mut correlation = Box::new(Correlation::default());
            for field in CorrelationField::ALL {
                let text = filter.child(field.element).map(|child| child.text.clone());
                *(field.slot)(&mut correlation) = text.filter(|text| !text.is_empty());
            }
            Ok(FilterDescription::Correlation(correlation))
        }
        _ => Err(Error::value(
            "Filter",
            format!("the type '{kind}' is not known"),
        )),
    }
}

/// Without its values.
fn read_action(action: &Element) -> Result<Option<String>, Error> {
    let kind = action.kind.as_deref().unwrap_or("EmptyRuleAction");
    match kind {
        "EmptyRuleAction" => Ok(None),
        // One without an expression is none, as over AMQP. (docs/spec/amqp.md#7.4)
        "SqlRuleAction" => {
            let text = action.child("SqlExpression").map(|child| &child.text);
            Ok(text.filter(|text| !text.trim().is_empty()).cloned())
        }
        _ => Err(Error::value(
            "Action",
            format!("the type '{kind}' is not known"),
        )),
    }
}

/// Keys and values, and how the values were written.
type Values = (Vec<(String, Value)>, Vec<OriginalValue>);

fn read_values(element: &Element, list: &str) -> Result<Values, Error> {
    let entries = element
        .child(list)
        .into_iter()
        .flat_map(|list| &list.children);
    let entries = entries.filter(|entry| entry.name == "KeyValueOfstringanyType");
    let (mut values, mut texts) = Values::default();
    for entry in entries {
        let key = entry.child("Key").map(|key| key.text.clone());
        let key = key.ok_or_else(|| Error::value(list, "a Key is missing"))?;
        let value = entry.child("Value");
        let value = value.ok_or_else(|| Error::value(list, format!("'{key}' has no Value")))?;
        let parsed = typed::parse(value).map_err(|why| Error::value(list, why))?;
        texts.extend(typed::original(&key, value, &parsed));
        values.push((key, parsed));
    }
    Ok((values, texts))
}

/// Writes a rule's description, always with an action. (Two SDKs need one.)
pub(crate) fn write(writer: &mut Writer, rule: &RuleDescription) {
    let attributes = [("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)];
    writer.open("RuleDescription", &attributes);
    write_filter(writer, rule);
    match &rule.action {
        None => writer.empty("Action", &[("i:type", "EmptyRuleAction")]),
        Some(text) => {
            let parameters = (&*rule.action_parameters, &*rule.action_texts);
            write_sql(writer, "Action", "SqlRuleAction", text, parameters);
        }
    }
    writer.text("CreatedAt", time::text(rule.created));
    writer.text("Name", &rule.name);
    writer.close("RuleDescription");
}

fn write_filter(writer: &mut Writer, rule: &RuleDescription) {
    let texts = &*rule.filter_texts;
    let none = (&[][..], &[][..]);
    match &rule.filter {
        FilterDescription::True => write_sql(writer, "Filter", "TrueFilter", "1=1", none),
        FilterDescription::False => write_sql(writer, "Filter", "FalseFilter", "1=0", none),
        FilterDescription::Sql(text) | FilterDescription::Selector(text) => {
            let parameters = (&*rule.filter_parameters, texts);
            write_sql(writer, "Filter", "SqlFilter", text, parameters);
        }
        FilterDescription::Correlation(fields) => write_correlation(writer, fields, texts),
    }
}

/// Values, and how they were written.
type ValuesAndTexts<'a> = (&'a [(String, Value)], &'a [OriginalValue]);

fn write_sql(
    writer: &mut Writer,
    name: &str,
    kind: &str,
    text: &str,
    parameters: ValuesAndTexts<'_>,
) {
    writer.open(name, &[("i:type", kind)]);
    writer.text("SqlExpression", text);
    writer.text("CompatibilityLevel", COMPATIBILITY);
    write_values(writer, "Parameters", parameters);
    writer.close(name);
}

fn write_correlation(writer: &mut Writer, fields: &Correlation, texts: &[OriginalValue]) {
    writer.open("Filter", &[("i:type", "CorrelationFilter")]);
    for field in CorrelationField::ALL {
        writer.optional(field.element, field.of(fields));
    }
    write_values(writer, "Properties", (&fields.properties, texts));
    writer.close("Filter");
}

fn write_values(writer: &mut Writer, list: &str, (values, texts): ValuesAndTexts<'_>) {
    if values.is_empty() {
        return;
    }
    writer.open(list, &[]);
    for (key, value) in values {
        writer.open("KeyValueOfstringanyType", &[]);
        writer.text("Key", key);
        let original = texts.iter().find(|text| text.key == *key);
        typed::write(writer, "Value", value, original);
        writer.close("KeyValueOfstringanyType");
    }
    writer.close(list);
}
