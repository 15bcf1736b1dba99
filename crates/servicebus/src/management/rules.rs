//! Add-rule, remove-rule and enumerate-rules: the rules of a subscription.
//! (docs/spec/amqp.md#7.3, #7.4)

use amqp::{Error, Map, Value, encode, value};
use broker::{
    Command, Correlation, CorrelationField, FilterDescription, RequestId, RuleDescription,
    RuleError,
};

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::pending_requests::PendingOperation;
use crate::request_response::response::{self, Status};

/// The assumed size of an answer before its rules are known.
const USUAL_BYTES: usize = 1 << 20;

/// Descriptors. Their widths differ. (docs/spec/amqp.md#7.4)
const RULE: u64 = 0x0000_0137_0000_0004;
const EMPTY_ACTION: u64 = 0x0000_0137_0000_0005;
const SQL_ACTION: u64 = 0x0000_0137_0000_0006;
const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
const FALSE_FILTER: u64 = 0x0000_0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;
/// The compatibility level of the language, as SDKs send it.
const COMPATIBILITY: i32 = 20;

pub(super) fn read_add(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let name = needed_name(body)?;
    let Some(description) = body.get("rule-description").and_then(Value::as_map) else {
        let text = "The argument 'rule-description' must be a map.";
        return Err(errors::bad_argument(text));
    };
    let rule = RuleDescription {
        name: name.to_owned(),
        filter: filter(description)?,
        action: action(description)?,
        ..RuleDescription::default()
    };
    let (entity, rule) = (entity_ref.id, Box::new(rule));
    Ok(operation(Box::new(move |request| Command::AddRule {
        request,
        entity,
        rule,
    })))
}

pub(super) fn read_remove(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let (entity, name) = (entity_ref.id, needed_name(body)?.to_owned());
    Ok(operation(Box::new(move |request| Command::RemoveRule {
        request,
        entity,
        name,
    })))
}

pub(super) fn read_list(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let count = |key: &str, default: i64| {
        let count = body.integer(key)?.unwrap_or(default);
        let text = format!("The argument '{key}' must not be negative.");
        usize::try_from(count).map_err(|_| errors::bad_argument(text))
    };
    let (skip, top) = (count("skip", 0)?, count("top", 100)?);
    let entity = entity_ref.id;
    let command = Box::new(move |request| Command::ListRules {
        request,
        entity,
        skip,
        top,
    });
    Ok(Prepared {
        command,
        count: top,
        answer: USUAL_BYTES,
        without_bodies: false,
    })
}

fn operation(command: super::CommandBuilder) -> Prepared {
    Prepared {
        command,
        count: 1,
        answer: 0,
        without_bodies: false,
    }
}

fn needed_name(body: &Body) -> Result<&str, Error> {
    let text = "The argument 'rule-name' is missing.";
    body.text("rule-name")?
        .ok_or_else(|| errors::bad_argument(text))
}

/// The one filter of a description.
fn filter(description: &Map) -> Result<FilterDescription, Error> {
    let sql = member(description, "sql-filter")?;
    let correlation = member(description, "correlation-filter")?;
    match (sql, correlation) {
        (Some(sql), None) => Ok(match expression(sql)? {
            // How SDKs write these two.
            "1=1" => FilterDescription::True,
            "1=0" => FilterDescription::False,
            text => FilterDescription::Sql(text.to_owned()),
        }),
        (None, Some(fields)) => {
            let correlation = correlation_of(fields)?;
            Ok(FilterDescription::Correlation(Box::new(correlation)))
        }
        _ => Err(errors::bad_argument(
            "A rule needs either a 'sql-filter' or a 'correlation-filter'.",
        )),
    }
}

fn action(description: &Map) -> Result<Option<String>, Error> {
    let Some(action) = member(description, "sql-rule-action")? else {
        return Ok(None);
    };
    // A map without an expression is how a client writes that there is no action.
    if matches!(
        value::lookup(action, "expression"),
        None | Some(Value::Null)
    ) {
        return Ok(None);
    }
    let text = expression(action)?;
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn member<'a>(map: &'a Map, key: &str) -> Result<Option<&'a Map>, Error> {
    match value::lookup(map, key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map)),
        Some(_) => {
            let text = format!("The member '{key}' must be a map.");
            Err(errors::bad_argument(text))
        }
    }
}

fn expression(map: &Map) -> Result<&str, Error> {
    let text = value::lookup(map, "expression").and_then(crate::request_response::text);
    text.ok_or_else(|| errors::bad_argument("The member 'expression' must be text."))
}

fn correlation_of(fields: &Map) -> Result<Correlation, Error> {
    let text = |key: &str| match value::lookup(fields, key) {
        None | Some(Value::Null) => Ok(None),
        Some(found) => match crate::request_response::text(found) {
            Some(text) => Ok(Some(text.to_owned())),
            None => {
                let text = format!("The member '{key}' must be text.");
                Err(errors::bad_argument(text))
            }
        },
    };
    let mut properties = Vec::new();
    for (key, value) in member(fields, "properties")?.into_iter().flatten() {
        let Some(key) = crate::request_response::text(key) else {
            let text = "The names of properties must be text.";
            return Err(errors::bad_argument(text));
        };
        properties.push((key.to_owned(), value.clone()));
    }
    let mut correlation = Correlation {
        properties,
        ..Correlation::default()
    };
    for field in CorrelationField::ALL {
        *(field.slot)(&mut correlation) = text(field.key)?;
    }
    Ok(correlation)
}

/// A rule as it is listed.
fn shown(rule: &RuleDescription) -> Value {
    let filter = match &rule.filter {
        FilterDescription::Sql(text) | FilterDescription::Selector(text) => sql(SQL_FILTER, text),
        FilterDescription::True => described(TRUE_FILTER, Vec::new()),
        FilterDescription::False => described(FALSE_FILTER, Vec::new()),
        FilterDescription::Correlation(fields) => {
            let properties = fields.properties.iter();
            let properties = properties.map(|(key, value)| (Value::from(&**key), value.clone()));
            let texts = CorrelationField::ALL.iter().map(|field| field.of(fields));
            let texts = texts.map(|text| text.cloned().map_or(Value::Null, Value::String));
            let properties = [Value::Map(properties.collect())];
            described(CORRELATION_FILTER, texts.chain(properties).collect())
        }
    };
    let action = match &rule.action {
        Some(expression) => sql(SQL_ACTION, expression),
        None => described(EMPTY_ACTION, Vec::new()),
    };
    let created = i64::try_from(rule.created.0).unwrap_or(i64::MAX);
    let fields = vec![
        filter,
        action,
        Value::from(&*rule.name),
        Value::Timestamp(created),
    ];
    described(RULE, fields)
}

fn sql(code: u64, expression: &str) -> Value {
    described(
        code,
        vec![Value::from(expression), Value::Int(COMPATIBILITY)],
    )
}

fn described(code: u64, fields: Vec<Value>) -> Value {
    Value::described(code, Value::List(fields))
}

impl Client {
    /// The broker has added or removed a rule.
    pub(crate) fn handle_rule_changed(
        &mut self,
        request: RequestId,
        result: Result<(), RuleError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_rule(&pending, &error),
            Ok(()) => self.answer_request(&pending, Status::ok(), response::empty_map),
        }
    }

    fn refuse_rule(&mut self, pending: &PendingOperation, error: &RuleError) {
        let error = errors::rule(error, &self.entity_name(pending.request_link));
        self.refuse_request(pending, error);
    }

    /// The broker has listed rules. None is 204 with an empty map.
    pub(crate) fn handle_rules(
        &mut self,
        request: RequestId,
        result: Result<Vec<RuleDescription>, RuleError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_rule(&pending, &error),
            Ok(rules) if rules.is_empty() => {
                self.answer_request(&pending, Status::no_content(), response::empty_map);
            }
            Ok(rules) => {
                let rules = rules.iter().map(|rule| {
                    let entry = (Value::from("rule-description"), shown(rule));
                    Value::Map(vec![entry])
                });
                let map = [(Value::from("rules"), Value::List(rules.collect()))];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
