//! Batch: several messages in one request, as JSON. (Admin contract 11)

use std::collections::BTreeMap;

use amqp::Value;
use bytes::Bytes;
use serde::Deserialize;

use super::broker_properties::Given;
use super::draft::Draft;
use crate::error::Error;

/// As many as in a batch over AMQP.
const MOST: usize = 16_384;

/// One message. Names that are not known are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Entry {
    body: String,
    broker_properties: Given,
    user_properties: BTreeMap<String, Scalar>,
}

/// A property keeps the type that it has in JSON.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    Null(()),
}

impl Scalar {
    fn value(self) -> Value {
        match self {
            Self::Flag(flag) => Value::Bool(flag),
            Self::Whole(number) => Value::Long(number),
            Self::Number(number) => Value::Double(number),
            Self::Text(text) => Value::String(text),
            Self::Null(()) => Value::Null,
        }
    }
}

/// The messages of a batch, all or none.
pub(super) fn read(body: &[u8]) -> Result<Vec<Draft>, Error> {
    let entries: Vec<Entry> = serde_json::from_slice(body).map_err(|error| {
        Error::bad(format!(
            "Bad Request. The batch is not understood: {error}."
        ))
    })?;
    if entries.len() > MOST {
        return Err(Error::bad(format!(
            "Bad Request. A batch has at most {MOST} messages."
        )));
    }
    Ok(entries.into_iter().map(Entry::draft).collect())
}

impl Entry {
    fn draft(self) -> Draft {
        let properties = self.user_properties.into_iter();
        Draft {
            given: self.broker_properties,
            content_type: None,
            properties: properties
                .map(|(name, value)| (Value::String(name), value.value()))
                .collect(),
            body: Bytes::from(self.body),
        }
    }
}
