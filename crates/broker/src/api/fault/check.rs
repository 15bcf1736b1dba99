//! Check: whether fault rules make sense, before a namespace has them.
//!
//! A rule that no operation can match is refused: it would be a test that tests nothing. An error
//! names the rule, the member, its value and what is allowed.

use std::fmt::Display;

use filter::Selector;

use crate::api::entity_error::EntityError;
use crate::api::fault::{
    FaultEffect, FaultMatch, FaultOperation, FaultRule, HttpFault, MAX_FAULTS, list,
};
use crate::api::http_pattern::HttpPattern;

/// The most bytes of a rule's name, and of what it compares with.
const MAX_TEXT: usize = 256;
/// The most characters of a condition, as of any. (docs/spec/entities.md#4)
const MAX_FILTER: usize = 1_024;
/// The longest delay: an hour, in milliseconds.
const MAX_DELAY: u64 = 3_600_000;
/// The highest rate of a throttle.
const MAX_RATE: u32 = 1_000_000;
/// The operations that bring messages, or are about some that are handed out.
const OF_MESSAGES: &[FaultOperation] = &[
    FaultOperation::Receive,
    FaultOperation::Send,
    FaultOperation::Schedule,
    FaultOperation::Complete,
    FaultOperation::Abandon,
    FaultOperation::Defer,
    FaultOperation::DeadLetter,
    FaultOperation::Renew,
    FaultOperation::ReceiveDeferred,
    FaultOperation::Publish,
];
/// The operations that name a session, or may bring messages of one.
const OF_SESSIONS: &[FaultOperation] = &[
    FaultOperation::AcceptSession,
    FaultOperation::Receive,
    FaultOperation::Send,
    FaultOperation::Schedule,
    FaultOperation::Complete,
    FaultOperation::Abandon,
    FaultOperation::Defer,
    FaultOperation::DeadLetter,
    FaultOperation::ReceiveDeferred,
    FaultOperation::Peek,
    FaultOperation::BatchDelete,
    FaultOperation::RenewSession,
    FaultOperation::GetSessionState,
    FaultOperation::SetSessionState,
    FaultOperation::Publish,
];
/// The operations of the namespace and of no entity.
const WITHOUT_ENTITY: &[FaultOperation] = &[
    FaultOperation::Declare,
    FaultOperation::Commit,
    FaultOperation::Rollback,
];

/// Whether the rules can be those of a namespace.
///
/// # Errors
/// The index of the first that cannot, and what is wrong about it.
pub fn check_faults(rules: &[FaultRule]) -> Result<(), (usize, EntityError)> {
    for (index, rule) in rules.iter().enumerate() {
        if index == MAX_FAULTS {
            let (limit, what) = (MAX_FAULTS, "fault rules of a namespace");
            return Err((index, EntityError::TooMany { limit, what }));
        }
        rule.check().map_err(|error| (index, error))?;
        if rules[..index].iter().any(|other| other.name == rule.name) {
            let text = format!("fault '{}': it is listed twice", rule.name);
            return Err((index, EntityError::Invalid(text)));
        }
    }
    Ok(())
}

impl FaultRule {
    /// Whether it makes sense by itself.
    ///
    /// # Errors
    /// Names the rule and what is wrong about it.
    pub fn check(&self) -> Result<(), EntityError> {
        let Self {
            name,
            matches,
            effect,
        } = self;
        let invalid = |text: String| Err(EntityError::Invalid(format!("fault '{name}': {text}")));
        if !(1..=MAX_TEXT).contains(&name.len()) || name.chars().any(char::is_control) {
            let text = format!("a name has 1 to {MAX_TEXT} bytes and no control characters");
            return Err(EntityError::Invalid(format!("fault: {text}")));
        }
        let texts = [
            ("entity", &matches.entity),
            ("client", &matches.client),
            ("key", &matches.key),
            ("session", &matches.session),
            ("message-id", &matches.message_id),
        ];
        for (member, text) in texts {
            if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
                return invalid(format!("{member} has at most {MAX_TEXT} bytes"));
            }
        }
        if let Some(filter) = &matches.filter {
            if filter.chars().count() > MAX_FILTER {
                return invalid(format!("filter has at most {MAX_FILTER} characters"));
            }
            if let Err(error) = Selector::of_filter(filter) {
                return invalid(format!("filter: {error}"));
            }
        }
        if let Some(http) = &matches.http
            && let Err(text) = check_http(http, matches, *effect)
        {
            return invalid(text);
        }
        if !(0.0..=1.0).contains(&matches.probability) {
            return invalid("probability is from 0 to 1".to_owned());
        }
        for (member, count) in [("every", Some(matches.every)), ("times", matches.times)] {
            if count == Some(0) {
                return invalid(outside(member, 0, u64::MAX));
            }
        }
        if let (Some(from), Some(until)) = (matches.from, matches.until)
            && from >= until
        {
            return invalid(format!("until: {until} is not after from, which is {from}"));
        }
        match *effect {
            FaultEffect::DelayMs(delay) if delay > MAX_DELAY => {
                return invalid(format!(
                    "delay-ms: {delay} is above the maximum of {MAX_DELAY}"
                ));
            }
            FaultEffect::DelayAnswerMs(delay) if !(1..=MAX_DELAY).contains(&delay) => {
                return invalid(outside("delay-answer-ms", delay, MAX_DELAY));
            }
            FaultEffect::WithholdCreditMs(time) if !(1..=MAX_DELAY).contains(&time) => {
                let text = outside("withhold-credit-ms", time, MAX_DELAY);
                return invalid(text);
            }
            FaultEffect::ThrottlePerSecond(rate) if !(1..=MAX_RATE).contains(&rate) => {
                let text = outside("throttle-per-second", rate, MAX_RATE);
                return invalid(text);
            }
            _ => {}
        }
        let mut operations = matches.operations.iter();
        if let Some(operation) = operations.find(|operation| !effect.is_possible(**operation)) {
            let scope = effect.scope();
            return invalid(format!(
                "operations: {operation} is not possible; the effect is {scope}"
            ));
        }
        check_place(matches).or_else(invalid)?;
        check_contents(self).or_else(invalid)
    }
}

/// Whether an operation can be on the entity and by the client that a rule names.
fn check_place(matches: &FaultMatch) -> Result<(), String> {
    for (member, text) in [("client", &matches.client), ("key", &matches.key)] {
        if text.as_ref().is_some_and(String::is_empty) {
            return Err(format!(
                "{member}: '' is empty; it has 1 to {MAX_TEXT} bytes"
            ));
        }
    }
    let Some(entity) = &matches.entity else {
        return Ok(());
    };
    if entity.split('/').any(str::is_empty) {
        return Err(format!(
            "entity: '{entity}' is no path: between its slashes are one or more names"
        ));
    }
    if let Some((path, "$deadletterqueue")) = entity.to_lowercase().rsplit_once('/') {
        let path = &entity[..path.len()];
        return Err(format!(
            "entity: '{entity}': a rule for '{path}' is for its dead-letter queues too"
        ));
    }
    let mut operations = matches.operations.iter();
    let has_entity = operations.any(|operation| !WITHOUT_ENTITY.contains(operation));
    match matches.operations.is_empty() || has_entity {
        true => Ok(()),
        false => Err(format!(
            "entity: its operations are on no entity: {}",
            list(&matches.operations)
        )),
    }
}

/// Whether a rule that compares messages or sessions is for an operation that has some.
fn check_contents(rule: &FaultRule) -> Result<(), String> {
    let matches = &rule.matches;
    let (id, filter) = (matches.message_id.is_some(), matches.filter.is_some());
    let (message, session) = ("is about messages", "names a session");
    let members = [
        ("message-id", id, message, OF_MESSAGES),
        ("filter", filter, message, OF_MESSAGES),
        ("session", matches.session.is_some(), session, OF_SESSIONS),
    ];
    for (member, is_said, does, possible) in members {
        if is_said && !possible.iter().any(|operation| rule.is_for(*operation)) {
            return Err(format!(
                "{member}: none of the rule's operations {does}; those that do are {}",
                list(possible)
            ));
        }
    }
    Ok(())
}

/// Says which end of its range, from 1 to `most`, a value is beyond.
fn outside<T: Copy + Display + PartialOrd>(member: &str, value: T, most: T) -> String {
    match value > most {
        true => format!("{member}: {value} is above the maximum of {most}"),
        false => format!("{member}: {value} is below the minimum of 1"),
    }
}

/// Whether a rule for HTTP requests says nothing that they do not have.
fn check_http(http: &str, matches: &FaultMatch, effect: FaultEffect) -> Result<(), String> {
    if http.len() > MAX_TEXT {
        return Err(format!("http has at most {MAX_TEXT} bytes"));
    }
    HttpPattern::parse(http).map_err(|error| format!("http: {error}"))?;
    let others = [
        ("entity", matches.entity.is_some()),
        ("operations", !matches.operations.is_empty()),
        ("client", matches.client.is_some()),
        ("session", matches.session.is_some()),
        ("message-id", matches.message_id.is_some()),
        ("filter", matches.filter.is_some()),
    ];
    if let Some((other, _)) = others.iter().find(|(_, is_said)| *is_said) {
        return Err(format!("{other}: a rule with http has none"));
    }
    match HttpFault::of(effect) {
        Some(_) => Ok(()),
        None => Err("the effect of a rule with http is refuse or disconnect".to_owned()),
    }
}
