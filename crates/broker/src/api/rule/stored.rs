//! How the store keeps a rule: as it was described, in JSON, by its name without its case.

use amqp::{Value, decode as amqp_decode, encode as amqp_encode};
use bytes::{Bytes, BytesMut};
use filter::Correlation;
use serde::{Deserialize, Serialize};
use store::{Entry, EntryKey, SequenceNumber, StoreError};

use super::{FilterDescription, OriginalValue, RuleDescription};
use crate::api::time::Wall;

/// A place for each name. They are short, so the key is.
pub(crate) fn key_of(name: &str) -> EntryKey {
    EntryKey::new(name.to_lowercase().into_bytes(), SequenceNumber(0))
}

/// Names and values, as AMQP encodes them.
type StoredValues = Vec<(String, Vec<u8>)>;

/// A rule as JSON has it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct StoredRule {
    name: String,
    filter: StoredFilter,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    filter_parameters: StoredValues,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    action_parameters: StoredValues,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    filter_texts: Vec<OriginalValue>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    action_texts: Vec<OriginalValue>,
    created: u64,
    place: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredFilter {
    True,
    False,
    Sql(String),
    Selector(String),
    Correlation(Box<StoredCorrelation>),
}

#[derive(Debug, Deserialize, Serialize)]
struct StoredCorrelation {
    content_type: Option<String>,
    correlation_id: Option<String>,
    label: Option<String>,
    message_id: Option<String>,
    reply_to: Option<String>,
    reply_to_session_id: Option<String>,
    session_id: Option<String>,
    to: Option<String>,
    properties: StoredValues,
}

/// A rule as the value of its entry.
pub(crate) fn encode(rule: &RuleDescription) -> Bytes {
    let json = serde_json::to_vec(&StoredRule::of(rule)).expect("a rule is plain data");
    Bytes::from(json)
}

/// What an entry says.
pub(crate) fn decode(entry: &Entry) -> Result<RuleDescription, StoreError> {
    let damaged = |detail: String| StoreError::Corrupt {
        what: "a rule".to_owned(),
        detail,
    };
    let stored: StoredRule =
        serde_json::from_slice(&entry.value).map_err(|error| damaged(error.to_string()))?;
    stored.describe().map_err(damaged)
}

impl StoredRule {
    pub(crate) fn of(rule: &RuleDescription) -> Self {
        let filter = match &rule.filter {
            FilterDescription::True => StoredFilter::True,
            FilterDescription::False => StoredFilter::False,
            FilterDescription::Sql(text) => StoredFilter::Sql(text.clone()),
            FilterDescription::Selector(text) => StoredFilter::Selector(text.clone()),
            FilterDescription::Correlation(fields) => {
                StoredFilter::Correlation(Box::new(StoredCorrelation::of(fields)))
            }
        };
        Self {
            name: rule.name.clone(),
            filter,
            filter_parameters: encoded(&rule.filter_parameters),
            action: rule.action.clone(),
            action_parameters: encoded(&rule.action_parameters),
            filter_texts: rule.filter_texts.clone(),
            action_texts: rule.action_texts.clone(),
            created: rule.created.0,
            place: rule.place,
        }
    }

    /// The rule.
    pub(crate) fn describe(self) -> Result<RuleDescription, String> {
        let filter = match self.filter {
            StoredFilter::True => FilterDescription::True,
            StoredFilter::False => FilterDescription::False,
            StoredFilter::Sql(text) => FilterDescription::Sql(text),
            StoredFilter::Selector(text) => FilterDescription::Selector(text),
            StoredFilter::Correlation(fields) => {
                FilterDescription::Correlation(Box::new(fields.fields()?))
            }
        };
        Ok(RuleDescription {
            name: self.name,
            filter,
            filter_parameters: decoded(self.filter_parameters)?,
            action: self.action,
            action_parameters: decoded(self.action_parameters)?,
            filter_texts: self.filter_texts,
            action_texts: self.action_texts,
            created: Wall(self.created),
            place: self.place,
        })
    }
}

/// What the texts and values of a correlation filter take, in bytes.
pub(super) fn bytes_of(fields: &Correlation) -> usize {
    let stored = StoredCorrelation::of(fields);
    let texts = [
        &stored.content_type,
        &stored.correlation_id,
        &stored.label,
        &stored.message_id,
        &stored.reply_to,
        &stored.reply_to_session_id,
        &stored.session_id,
        &stored.to,
    ];
    let texts = texts.into_iter().flatten().map(String::len);
    let properties = stored.properties.iter();
    let properties = properties.map(|(name, value)| name.len() + value.len());
    texts.chain(properties).sum()
}

/// What names and values take, in bytes.
pub(super) fn bytes_of_values<'a>(values: impl Iterator<Item = &'a (String, Value)>) -> usize {
    values
        .map(|(name, value)| name.len() + encoded_value(value).len())
        .sum()
}

fn encoded(values: &[(String, Value)]) -> StoredValues {
    let values = values.iter();
    values
        .map(|(name, value)| (name.clone(), encoded_value(value)))
        .collect()
}

fn encoded_value(value: &Value) -> Vec<u8> {
    let mut encoded = BytesMut::new();
    amqp_encode::value(&mut encoded, value);
    encoded.to_vec()
}

fn decoded(values: StoredValues) -> Result<Vec<(String, Value)>, String> {
    let values = values.into_iter().map(|(name, value)| {
        let value = amqp_decode::value(&Bytes::from(value));
        let value = value.map_err(|error| error.to_string())?;
        Ok((name, value))
    });
    values.collect()
}

impl StoredCorrelation {
    fn of(fields: &Correlation) -> Self {
        Self {
            content_type: fields.content_type.clone(),
            correlation_id: fields.correlation_id.clone(),
            label: fields.label.clone(),
            message_id: fields.message_id.clone(),
            reply_to: fields.reply_to.clone(),
            reply_to_session_id: fields.reply_to_session_id.clone(),
            session_id: fields.session_id.clone(),
            to: fields.to.clone(),
            properties: encoded(&fields.properties),
        }
    }

    fn fields(self) -> Result<Correlation, String> {
        Ok(Correlation {
            content_type: self.content_type,
            correlation_id: self.correlation_id,
            label: self.label,
            message_id: self.message_id,
            reply_to: self.reply_to,
            reply_to_session_id: self.reply_to_session_id,
            session_id: self.session_id,
            to: self.to,
            properties: decoded(self.properties)?,
        })
    }
}
