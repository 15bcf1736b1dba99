//! Topics of a `Config.json`: with their subscriptions and rules. (docs/spec/admin.md#12)

use broker::{
    Correlation, FilterDescription, QueueSettings, RuleDescription, SubscriptionSettings, Value,
};
use entity::{HistoryWindow, IdleTime, LockDuration, SubscriptionName, TimeToLive};
use entity::{SubscriptionDefinition, TopicDefinition};

use super::{Reader, checked, defaults, path, set, target};
use crate::config::choice::parse_status;
use crate::config::error::Error;
use crate::config::json::{Cursor, Scalar};

impl Reader {
    pub(super) fn topic(&mut self, topic: &Cursor<'_>) -> Result<(), Error> {
        self.warn_unknown(topic, &["Name", "Properties", "Subscriptions"])?;
        let path = path(&topic.required("Name")?)?;
        let settings = match topic.member("Properties")? {
            Some(properties) => self.topic_settings(&properties)?,
            None => defaults(),
        };
        let mut subscriptions = Vec::new();
        for member in topic.list("Subscriptions")? {
            subscriptions.push(self.subscription(&member)?);
        }
        self.entities.topics.push(TopicDefinition {
            path,
            settings,
            subscriptions,
        });
        Ok(())
    }

    fn topic_settings(&mut self, properties: &Cursor<'_>) -> Result<QueueSettings, Error> {
        const KNOWN: [&str; 5] = [
            "AutoDeleteOnIdle",
            "DefaultMessageTimeToLive",
            "DuplicateDetectionHistoryTimeWindow",
            "RequiresDuplicateDetection",
            "Status",
        ];
        self.warn_unknown(properties, &KNOWN)?;
        let mut settings = defaults();
        set(
            properties,
            "RequiresDuplicateDetection",
            &mut settings.requires_duplicate_detection,
            Cursor::boolean,
        )?;
        set(
            properties,
            "DuplicateDetectionHistoryTimeWindow",
            &mut settings.duplicate_detection_history_time_window,
            |value| checked(value, |text| HistoryWindow::parse(text).map(|it| it.0)),
        )?;
        lifetimes(properties, &mut settings)?;
        Ok(settings)
    }

    fn subscription(&mut self, member: &Cursor<'_>) -> Result<SubscriptionDefinition, Error> {
        self.warn_unknown(member, &["Name", "Properties", "Rules"])?;
        let name = checked(&member.required("Name")?, SubscriptionName::parse)?;
        let settings = match member.member("Properties")? {
            Some(properties) => self.subscription_settings(&properties)?,
            None => SubscriptionSettings {
                queue: defaults(),
                ..SubscriptionSettings::default()
            },
        };
        let mut rules = Vec::new();
        for rule in member.list("Rules")? {
            rules.push(self.rule(&rule)?);
        }
        Ok(SubscriptionDefinition {
            name: name.into_string(),
            settings,
            rules: (!rules.is_empty()).then_some(rules),
        })
    }

    fn subscription_settings(
        &mut self,
        properties: &Cursor<'_>,
    ) -> Result<SubscriptionSettings, Error> {
        const KNOWN: [&str; 10] = [
            "AutoDeleteOnIdle",
            "DeadLetteringOnFilterEvaluationExceptions",
            "DeadLetteringOnMessageExpiration",
            "DefaultMessageTimeToLive",
            "ForwardDeadLetteredMessagesTo",
            "ForwardTo",
            "LockDuration",
            "MaxDeliveryCount",
            "RequiresSession",
            "Status",
        ];
        self.warn_unknown(properties, &KNOWN)?;
        let mut settings = SubscriptionSettings {
            queue: defaults(),
            ..SubscriptionSettings::default()
        };
        let queue = &mut settings.queue;
        let boolean = |name, value: &mut bool| set(properties, name, value, Cursor::boolean);
        boolean(
            "DeadLetteringOnFilterEvaluationExceptions",
            &mut settings.dead_lettering_on_filter_evaluation_exceptions,
        )?;
        boolean(
            "DeadLetteringOnMessageExpiration",
            &mut queue.dead_lettering_on_message_expiration,
        )?;
        boolean("RequiresSession", &mut queue.requires_session)?;
        set(
            properties,
            "LockDuration",
            &mut queue.lock_duration,
            |value| checked(value, |text| LockDuration::parse(text).map(|it| it.0)),
        )?;
        super::delivery_count_of(properties, queue)?;
        lifetimes(properties, queue)?;
        set(properties, "ForwardTo", &mut queue.forward_to, target)?;
        set(
            properties,
            "ForwardDeadLetteredMessagesTo",
            &mut queue.forward_dead_lettered_messages_to,
            target,
        )?;
        Ok(settings)
    }

    fn rule(&mut self, rule: &Cursor<'_>) -> Result<RuleDescription, Error> {
        self.warn_unknown(rule, &["Name", "Properties"])?;
        let name = rule.required("Name")?;
        let properties = rule.required("Properties")?;
        let known = ["FilterType", "CorrelationFilter", "SqlFilter", "Action"];
        self.warn_unknown(&properties, &known)?;
        let filter_type = properties.required("FilterType")?;
        let filter = match filter_type.string()? {
            sql if sql.eq_ignore_ascii_case("sql") => {
                FilterDescription::Sql(self.expression(&properties.required("SqlFilter")?)?)
            }
            correlation if correlation.eq_ignore_ascii_case("correlation") => {
                let fields = self.correlation(&properties.required("CorrelationFilter")?)?;
                FilterDescription::Correlation(Box::new(fields))
            }
            other => {
                let text = format!("`{other}` is no type of filter: `Sql` or `Correlation` is");
                return Err(filter_type.error(text));
            }
        };
        let action = properties.member("Action")?;
        let action = action.map(|action| self.expression(&action)).transpose()?;
        Ok(RuleDescription {
            name: name.string()?.to_owned(),
            filter,
            action,
            ..RuleDescription::default()
        })
    }

    fn expression(&mut self, member: &Cursor<'_>) -> Result<String, Error> {
        self.warn_unknown(member, &["SqlExpression"])?;
        Ok(member.required("SqlExpression")?.string()?.to_owned())
    }

    fn correlation(&mut self, member: &Cursor<'_>) -> Result<Correlation, Error> {
        const KNOWN: [&str; 9] = [
            "ContentType",
            "CorrelationId",
            "Label",
            "MessageId",
            "Properties",
            "ReplyTo",
            "ReplyToSessionId",
            "SessionId",
            "To",
        ];
        self.warn_unknown(member, &KNOWN)?;
        let text = |name: &str| {
            let member = member.member(name)?;
            let text = member.map(|member| member.string().map(str::to_owned));
            text.transpose()
        };
        let mut properties = Vec::new();
        if let Some(object) = member.member("Properties")? {
            for (name, value) in object.scalars()? {
                properties.push((name, amqp_value(value)));
            }
        }
        Ok(Correlation {
            content_type: text("ContentType")?,
            correlation_id: text("CorrelationId")?,
            label: text("Label")?,
            message_id: text("MessageId")?,
            reply_to: text("ReplyTo")?,
            reply_to_session_id: text("ReplyToSessionId")?,
            session_id: text("SessionId")?,
            to: text("To")?,
            properties,
        })
    }
}

/// What topics and subscriptions have in common.
fn lifetimes(properties: &Cursor<'_>, settings: &mut QueueSettings) -> Result<(), Error> {
    set(
        properties,
        "DefaultMessageTimeToLive",
        &mut settings.default_message_time_to_live,
        |value| checked(value, |text| TimeToLive::parse(text).map(|it| it.0)),
    )?;
    set(
        properties,
        "AutoDeleteOnIdle",
        &mut settings.auto_delete_on_idle,
        |value| checked(value, |text| IdleTime::parse(text).map(|it| it.0)),
    )?;
    set(properties, "Status", &mut settings.status, |value| {
        checked(value, parse_status)
    })
}

fn amqp_value(value: Scalar<'_>) -> Value {
    match value {
        Scalar::Text(text) => Value::from(text),
        Scalar::Integer(number) => Value::Long(number),
        Scalar::Fraction(number) => Value::Double(number),
        Scalar::Boolean(yes) => Value::Bool(yes),
    }
}
