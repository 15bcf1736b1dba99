//! The tester: the result of a new rule for a message. It needs no entity: the request has the
//! message and everything that the broker would know of it.

use amqp::Value;
use broker::FilterDescription;
use filter::{
    Candidate, Changes, Environment, HeaderSizeExceeded, Message, Parameters, Property, RuleError,
    SystemChange,
};
use serde::{Deserialize, Serialize};

use super::{Filter, MessageDescription, TypedValue};

/// A rule and a message. A filter that is not told is true.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Test {
    /// What selects the message.
    #[serde(default)]
    pub filter: Filter,
    /// What is done to the copy, in SQL.
    #[serde(default)]
    pub action: Option<String>,
    /// What is published.
    pub message: MessageDescription,
}

/// What the rule makes of the message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Whether the message is selected.
    pub verdict: Verdict,
    /// Why there is no match, or what cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// As which a subscription would dead-letter the message.
    #[serde(rename = "dead-letter-reason", skip_serializing_if = "Option::is_none")]
    pub dead_letter_reason: Option<&'static str>,
    /// What the action changes in its copy.
    pub changes: Vec<Change>,
}

/// Whether the message is selected.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The filter is true.
    Match,
    /// The filter is false or unknown.
    NoMatch,
    /// The filter or the action cannot be evaluated on this message.
    Error,
}

/// One property before and after the action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// As expressions name it: `sys.Label`, or the application's name.
    pub property: String,
    /// None if the message does not have it.
    pub before: Option<TypedValue>,
    /// None if the action removes it.
    pub after: Option<TypedValue>,
}

/// Why there is nothing to test.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, thiserror::Error)]
#[error("the {part}: {reason}")]
pub struct TestError {
    /// `filter`, `action` or `message`.
    #[serde(rename = "in")]
    pub part: &'static str,
    /// What is wrong.
    #[serde(rename = "error")]
    pub reason: String,
    /// The character of an expression at which it goes wrong, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

impl Test {
    /// Tests the rule on the message as if it was published at `now`, in milliseconds since the
    /// Unix epoch.
    ///
    /// # Errors
    /// When the filter or the action is none, or the message cannot be.
    pub fn run(self, now: i64) -> Result<Report, TestError> {
        let bytes = self.message.encode();
        let facts = self.message.facts(now);
        let message = Message::read(&bytes, facts).map_err(|error| TestError {
            part: "message",
            reason: error.to_string(),
            position: None,
        })?;
        let candidate = match &self.filter.0 {
            FilterDescription::True => Candidate::True,
            FilterDescription::False => Candidate::False,
            FilterDescription::Sql(text) | FilterDescription::Selector(text) => {
                Candidate::Sql(text)
            }
            FilterDescription::Correlation(fields) => Candidate::Correlation((**fields).clone()),
        };
        let environment = Environment {
            seed: u128::from(now.unsigned_abs()),
            ..Environment::default()
        };
        let (action, parameters) = (self.action.as_deref(), Parameters::NONE);
        let verdict = filter::test(candidate, action, &parameters, &message, environment);
        report(verdict, &self.message, &message)
    }
}

fn report(
    verdict: filter::Verdict,
    description: &MessageDescription,
    message: &Message<'_>,
) -> Result<Report, TestError> {
    use filter::Verdict as Found;
    let unparsed = |part, error: &filter::ParseError| TestError {
        part,
        reason: error.to_string(),
        position: Some(error.position),
    };
    match verdict {
        Found::BadFilter(error) => Err(unparsed("filter", &error)),
        Found::BadAction(error) => Err(unparsed("action", &error)),
        Found::BadCorrelation(error) => Err(TestError {
            part: "filter",
            reason: error.to_string(),
            position: None,
        }),
        Found::Match(None) => Ok(Report::new(Verdict::Match)),
        Found::Match(Some(changes)) => Ok(applied(&changes, description, message)),
        Found::NoMatch => Ok(Report::no_match("the filter is false")),
        Found::Unknown => Ok(Report::no_match("the filter is unknown")),
        Found::Failed(error) => Ok(failed(&error)),
    }
}

/// The copy is made, since it may turn out too large.
fn applied(changes: &Changes, description: &MessageDescription, message: &Message<'_>) -> Report {
    match changes.apply(message) {
        Ok(_) => Report {
            changes: list(changes, description),
            ..Report::new(Verdict::Match)
        },
        Err(error) => Report {
            reason: Some(error.to_string()),
            dead_letter_reason: Some(HeaderSizeExceeded::REASON),
            ..Report::new(Verdict::Error)
        },
    }
}

fn failed(error: &RuleError) -> Report {
    let part = match error {
        RuleError::Filter(_) => "filter",
        RuleError::Action(_) => "action",
    };
    Report {
        reason: Some(format!("the {part} cannot be evaluated: {error}")),
        dead_letter_reason: Some(error.reason()),
        ..Report::new(Verdict::Error)
    }
}

fn list(changes: &Changes, description: &MessageDescription) -> Vec<Change> {
    let system = changes.system().iter().map(|change| {
        let (property, after) = match change {
            SystemChange::Text(property, text) => (*property, text.as_deref().map(Value::from)),
            SystemChange::TimeToLive(ms) => {
                let ttl = ms.map(|ms| {
                    super::typed_value::duration_of(i64::try_from(ms).unwrap_or(i64::MAX))
                });
                (Property::TimeToLive, ttl)
            }
        };
        Change {
            property: format!("sys.{}", property.name()),
            before: description.system(property),
            after: after.map(TypedValue),
        }
    });
    let user = changes.user().iter().map(|(name, after)| Change {
        property: name.clone(),
        before: description.property(name).cloned(),
        after: after.clone().map(TypedValue),
    });
    system.chain(user).collect()
}

impl Report {
    fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            reason: None,
            dead_letter_reason: None,
            changes: Vec::new(),
        }
    }

    fn no_match(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::new(Verdict::NoMatch)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// Tests at a given time and returns the report or the refusal as JSON.
    fn run(test: Json) -> Result<Json, Json> {
        let test: Test = serde_json::from_value(test).unwrap();
        match test.run(1_000) {
            Ok(report) => Ok(serde_json::to_value(report).unwrap()),
            Err(refusal) => Err(serde_json::to_value(refusal).unwrap()),
        }
    }

    fn check_sql(sql: &str, message: &Json, verdict: &str) {
        let report = run(json!({"filter": {"sql": sql}, "message": message})).unwrap();
        assert_eq!(report["verdict"], verdict, "{sql}: {report}");
    }

    #[test]
    fn every_property_of_a_message_is_seen() {
        let message = json!({
            "message-id": {"type": "uuid", "value": "00010203-0405-0607-0809-0a0b0c0d0e0f"},
            "correlation-id": "c", "to": "t", "reply-to": "r", "subject": "s",
            "content-type": "text/plain", "session-id": "g", "reply-to-session-id": "h",
            "partition-key": "g", "via-partition-key": "v", "time-to-live": "PT1H",
            "enqueued-time": "2026-01-01T00:00:00Z", "sequence-number": 7,
            "enqueued-sequence-number": 5, "dead-letter-source": "q", "body": "hello",
            "properties": {
                "n": 5, "i": {"type": "int", "value": 5}, "d": 1.5, "b": true, "t": "x",
                "at": {"type": "timestamp", "value": "2026-01-01T01:00:00Z"},
                "gone": null,
            },
        });
        for sql in [
            "sys.MessageId = '00010203-0405-0607-0809-0a0b0c0d0e0f'",
            "sys.CorrelationId = 'c' AND sys.To = 't' AND sys.ReplyTo = 'r' AND sys.Label = 's'",
            "sys.ContentType = 'text/plain' AND sys.SessionId = 'g' AND sys.ReplyToSessionId = 'h'",
            "sys.PartitionKey = 'g' AND sys.ViaPartitionKey = 'v'",
            "sys.ExpiresAtUtc - sys.EnqueuedTimeUtc = sys.TimeToLive",
            "sys.SequenceNumber = 7 AND sys.EnqueuedSequenceNumber = 5 AND sys.DeliveryCount = 0",
            "sys.DeadLetterSource = 'q' AND sys.State = 0 AND sys.Size > 100",
            "n = 5 AND i = 5 AND d = 1.5 AND b = TRUE AND t = 'x'",
            "at = sys.ExpiresAtUtc",
            "gone IS NULL AND EXISTS(gone) AND NOT EXISTS(missing)",
        ] {
            check_sql(sql, &message, "match");
        }
        check_sql("sys.ScheduledEnqueueTimeUtc IS NULL", &message, "match");
        let due = json!({"scheduled-enqueue-time": "2026-01-01T00:00:00Z"});
        check_sql("sys.ScheduledEnqueueTimeUtc IS NULL", &due, "no-match");
    }

    #[test]
    fn missing_properties_are_those_of_a_message_published_now() {
        let message =
            json!({"properties": {"now": {"type": "timestamp", "value": "1970-01-01T00:00:01Z"}}});
        check_sql("sys.EnqueuedTimeUtc = now", &message, "match");
        check_sql("sys.SequenceNumber = 1", &message, "match");
        check_sql("sys.EnqueuedSequenceNumber IS NULL", &message, "match");
        check_sql("sys.ExpiresAtUtc IS NULL", &message, "match");
    }

    #[test]
    fn a_time_to_live_may_be_longer_than_a_header_can_tell() {
        let message = json!({"time-to-live": "P60D",
            "properties": {"two-months": {"type": "duration", "value": "P60D"}}});
        check_sql("sys.TimeToLive = [two-months]", &message, "match");
    }

    #[test]
    fn no_match_says_whether_the_filter_is_false_or_unknown() {
        let reason = |filter: Json| run(json!({"filter": filter, "message": {}})).unwrap();
        let check = |filter, reason_: &str| {
            let expected = json!({"verdict": "no-match", "reason": reason_, "changes": []});
            assert_eq!(reason(filter), expected);
        };
        check(json!({"sql": "1 = 2"}), "the filter is false");
        check(json!({"sql": "a = 2"}), "the filter is unknown");
        check(
            json!({"correlation": {"subject": "a"}}),
            "the filter is false",
        );
        check(json!(false), "the filter is false");
    }

    #[test]
    fn an_action_shows_what_it_changes() {
        let report = run(json!({
            "action": "SET sys.Label = 'b'; SET n = n + 1; REMOVE gone; SET sys.To = 'x'; SET new = newid()",
            "message": {"subject": "a", "properties": {"n": {"type": "int", "value": 5}, "gone": "x"}},
        }))
        .unwrap();
        assert_eq!(report["verdict"], "match");
        let changes = report["changes"].as_array().unwrap();
        let expected = [
            json!({"property": "sys.Label", "before": "a", "after": "b"}),
            json!({"property": "sys.To", "before": null, "after": "x"}),
            json!({"property": "gone", "before": "x", "after": null}),
            json!({"property": "n", "before": {"type": "int", "value": 5}, "after": {"type": "int", "value": 6}}),
        ];
        assert_eq!(changes[..4], expected);
        assert_eq!(changes[4]["after"]["type"], "uuid");
    }

    #[test]
    fn every_system_property_that_an_action_sets_shows_what_it_was() {
        let message = json!({"message-id": "1", "correlation-id": "2", "subject": "3", "to": "4",
            "reply-to": "5", "content-type": "6", "session-id": "7", "reply-to-session-id": "8",
            "time-to-live": "PT1H"});
        let names = [
            "MessageId",
            "CorrelationId",
            "Label",
            "To",
            "ReplyTo",
            "ContentType",
            "SessionId",
            "ReplyToSessionId",
        ];
        for (name, number) in names.iter().zip(1..) {
            let action = format!("SET sys.{name} = 'new'");
            let report = run(json!({"action": action, "message": message})).unwrap();
            let change = &report["changes"][0];
            assert_eq!(
                change["before"],
                json!(number.to_string()),
                "{name}: {change}"
            );
        }
        let report = run(json!({"action": "REMOVE sys.TimeToLive", "message": message})).unwrap();
        let before = &report["changes"][0]["before"];
        assert_eq!(*before, json!({"type": "duration", "value": "PT1H"}));
    }

    #[test]
    fn a_time_to_live_is_the_one_that_the_copy_gets() {
        let message = json!({"properties": {"t": "00:10:00", "u": "soon"}});
        let report = run(json!({"action": "SET sys.TimeToLive = t", "message": message})).unwrap();
        let after = &report["changes"][0]["after"];
        assert_eq!(*after, json!({"type": "duration", "value": "PT10M"}));
        let report = run(json!({"action": "SET sys.TimeToLive = u", "message": message})).unwrap();
        assert_eq!(report["dead-letter-reason"], "RuleActionException");
    }

    #[test]
    fn what_can_not_be_evaluated_says_as_what_it_would_be_dead_lettered() {
        let message = json!({"properties": {"t": "x"}});
        assert_eq!(
            run(json!({"filter": {"sql": "t > 5"}, "message": message})).unwrap(),
            json!({
                "verdict": "error",
                "reason": "the filter cannot be evaluated: a text cannot be used with a number here",
                "dead-letter-reason": "FilterException",
                "changes": [],
            })
        );
        let report = run(json!({"action": "SET a = 1 / 0", "message": message})).unwrap();
        assert_eq!(report["dead-letter-reason"], "RuleActionException");
        let text = "x".repeat(30_000);
        let large = json!({"properties": {"t": text, "u": text}});
        let report = run(json!({"action": "SET b = t", "message": large}));
        assert_eq!(report.unwrap()["dead-letter-reason"], "HeaderSizeExceeded");
    }

    #[test]
    fn a_rule_that_is_none_is_refused_with_its_part_and_position() {
        let refusal = |test: Json| run(test).unwrap_err();
        assert_eq!(
            refusal(json!({"filter": {"sql": "n >"}, "message": {}}))["position"],
            4
        );
        let action = refusal(json!({"action": "SET a == 1", "message": {}}));
        assert_eq!(
            (&action["in"], &action["position"]),
            (&json!("action"), &json!(8))
        );
        assert_eq!(
            refusal(json!({"filter": {"correlation": {}}, "message": {}})),
            json!({"in": "filter", "error": "a correlation filter needs at least one field"})
        );
    }

    #[test]
    fn a_message_that_is_none_is_refused() {
        let check = |message: Json, part: &str| {
            let test: Result<Test, _> = serde_json::from_value(json!({"message": message}));
            let error = test.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(json!({"subjetc": "a"}), "unknown field `subjetc`");
        check(json!({"time-to-live": "1h"}), "`1h` is not an ISO 8601");
        check(json!({"enqueued-time": "noon"}), "`noon` is not a time");
        check(json!({"content-type": "ä"}), "ASCII");
        check(json!({"properties": {"a": []}}), "sequence");
        check(json!(5), "invalid type: integer");
    }
}
