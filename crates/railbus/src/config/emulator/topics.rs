//! Topics of a `Config.json`: with their subscriptions and rules. (docs/spec/admin.md#12)

use broker::{
    Correlation, EntityKind, FilterDescription, RuleDescription, SubscriptionSettings, Value,
};
use entity::{SubscriptionDefinition, SubscriptionName, TopicDefinition};

use super::{Reader, checked, path};
use crate::config::error::Error;
use crate::config::json::{Cursor, Scalar};

impl Reader {
    pub(super) fn topic(&mut self, topic: &Cursor<'_>) -> Result<(), Error> {
        self.warn_unknown(topic, &["Name", "Properties", "Subscriptions"])?;
        let path = path(&topic.required("Name")?)?;
        let settings = self.settings(EntityKind::Topic, topic)?.settings;
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

    fn subscription(&mut self, member: &Cursor<'_>) -> Result<SubscriptionDefinition, Error> {
        self.warn_unknown(member, &["Name", "Properties", "Rules"])?;
        let name = checked(&member.required("Name")?, SubscriptionName::parse)?;
        let description = self.settings(EntityKind::Subscription, member)?;
        let dead_lettering = description.dead_lettering_on_filter_evaluation_exceptions;
        let mut rules = Vec::new();
        for rule in member.list("Rules")? {
            rules.push(self.rule(&rule)?);
        }
        Ok(SubscriptionDefinition {
            name: name.into_string(),
            settings: SubscriptionSettings {
                queue: description.settings,
                dead_lettering_on_filter_evaluation_exceptions: dead_lettering,
            },
            rules: (!rules.is_empty()).then_some(rules),
        })
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

fn amqp_value(value: Scalar<'_>) -> Value {
    match value {
        Scalar::Text(text) => Value::from(text),
        Scalar::Integer(number) => Value::Long(number),
        Scalar::Fraction(number) => Value::Double(number),
        Scalar::Boolean(yes) => Value::Bool(yes),
    }
}
