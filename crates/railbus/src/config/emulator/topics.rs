//! Topics of a `Config.json`: with their subscriptions and rules. (docs/spec/admin.md#12)

use broker::{
    Correlation, CorrelationField, EntityKind, FilterDescription, RuleDescription,
    SubscriptionSettings, Value,
};
use entity::{SubscriptionDefinition, SubscriptionName, TopicDefinition};

use super::{Reader, checked, path, refuse_unknown};
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
                self.warn_unchosen(&properties, "CorrelationFilter", "Sql")?;
                FilterDescription::Sql(self.expression(&properties.required("SqlFilter")?)?)
            }
            other if other.eq_ignore_ascii_case("correlation") => {
                self.warn_unchosen(&properties, "SqlFilter", "Correlation")?;
                let fields = correlation(&properties.required("CorrelationFilter")?)?;
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

    /// Warns of the filter that the type does not choose.
    fn warn_unchosen(
        &mut self,
        properties: &Cursor<'_>,
        name: &str,
        chosen: &str,
    ) -> Result<(), Error> {
        if let Some(filter) = properties.member(name)? {
            self.entities.warnings.push(format!(
                "{}: this filter has no effect, since the FilterType is {chosen}",
                filter.location()
            ));
        }
        Ok(())
    }

    fn expression(&mut self, member: &Cursor<'_>) -> Result<String, Error> {
        self.warn_unknown(member, &["SqlExpression"])?;
        Ok(member.required("SqlExpression")?.string()?.to_owned())
    }
}

fn correlation(filter: &Cursor<'_>) -> Result<Correlation, Error> {
    const PROPERTIES: &str = "Properties";
    let names = CorrelationField::ALL.iter().map(|field| field.element);
    let known: Vec<_> = names.chain([PROPERTIES]).collect();
    refuse_unknown(filter, &known)?;
    let mut correlation = Correlation::default();
    for field in CorrelationField::ALL {
        if let Some(text) = filter.member(field.element)? {
            *(field.slot)(&mut correlation) = Some(text.string()?.to_owned());
        }
    }
    if let Some(object) = filter.member(PROPERTIES)? {
        let properties = object.scalars()?.into_iter();
        let properties = properties.map(|(name, value)| (name, amqp_value(value)));
        correlation.properties = properties.collect();
    }
    Ok(correlation)
}

fn amqp_value(value: Scalar<'_>) -> Value {
    match value {
        Scalar::Text(text) => Value::from(text),
        Scalar::Integer(number) => Value::Long(number),
        Scalar::Fraction(number) => Value::Double(number),
        Scalar::Boolean(yes) => Value::Bool(yes),
    }
}
