//! Batch: several messages in one request, as JSON. (docs/spec/admin.md#11)
//!
//! Each entry becomes its message before the next one is read, and counts are bounded during
//! reading, so a request uses little more memory than its bytes.

use std::collections::BTreeMap;
use std::fmt;

use amqp::Value;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::broker_properties::SenderProperties;
use super::new_message::NewMessage;
use crate::error::Error;

/// As many as in a batch over AMQP.
const MAX_MESSAGES: usize = 16_384;
/// Properties of one message.
const MAX_PROPERTIES: usize = 4_096;

/// One message. Unknown names are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Entry {
    body: String,
    broker_properties: SenderProperties,
    #[serde(deserialize_with = "properties")]
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

/// The messages of a batch as `encode` makes them, all or none.
pub(super) fn read(
    body: &[u8],
    encode: impl FnMut(NewMessage) -> Result<Bytes, Error>,
) -> Result<Vec<Bytes>, Error> {
    let mut refused = None;
    let messages = Messages {
        encode,
        refused: &mut refused,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = messages.deserialize(&mut json);
    let read = read.and_then(|messages| json.end().map(|()| messages));
    read.map_err(|error| {
        let text = "Bad Request. The batch is not understood";
        refused.unwrap_or_else(|| Error::bad(text).quoting(error))
    })
}

/// Makes messages of entries as they are read.
struct Messages<'a, F> {
    encode: F,
    /// The error of the first message that is refused.
    refused: &'a mut Option<Error>,
}

impl<'de, F: FnMut(NewMessage) -> Result<Bytes, Error>> DeserializeSeed<'de> for Messages<'_, F> {
    type Value = Vec<Bytes>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(NewMessage) -> Result<Bytes, Error>> Visitor<'de> for Messages<'_, F> {
    type Value = Vec<Bytes>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(entry) = entries.next_element::<Entry>()? {
            if messages.len() >= MAX_MESSAGES {
                let text = format!("a batch has at most {MAX_MESSAGES} messages");
                return Err(A::Error::custom(text));
            }
            match (self.encode)(entry.into_message()) {
                Ok(message) => messages.push(message),
                Err(error) => {
                    *self.refused = Some(error);
                    return Err(A::Error::custom("a message is refused"));
                }
            }
        }
        Ok(messages)
    }
}

fn properties<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, Scalar>, D::Error> {
    struct Properties;

    impl<'de> Visitor<'de> for Properties {
        type Value = BTreeMap<String, Scalar>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("properties by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((name, value)) = entries.next_entry()? {
                if found.len() >= MAX_PROPERTIES {
                    let text = format!("a message has at most {MAX_PROPERTIES} properties");
                    return Err(A::Error::custom(text));
                }
                found.insert(name, value);
            }
            Ok(found)
        }
    }

    json.deserialize_map(Properties)
}

impl Entry {
    fn into_message(self) -> NewMessage {
        let properties = self.user_properties.into_iter();
        NewMessage {
            broker_properties: self.broker_properties,
            content_type: None,
            properties: properties
                .map(|(name, value)| (Value::String(name), value.value()))
                .collect(),
            body: Bytes::from(self.body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> Result<usize, String> {
        let mut made = 0;
        let read = read(body.as_bytes(), |_| {
            made += 1;
            Ok(Bytes::new())
        });
        let read = read.map_err(|error| format!("{error:?}"));
        assert!(made <= MAX_MESSAGES, "more were made than may be");
        read.map(|messages| messages.len())
    }

    fn entries(count: usize) -> String {
        format!("[{}]", vec!["{}"; count].join(","))
    }

    #[test]
    fn a_batch_has_so_many_messages_and_no_more() {
        assert_eq!(check(&entries(MAX_MESSAGES)), Ok(MAX_MESSAGES));
        let refused = check(&entries(400_000)).unwrap_err();
        assert!(refused.contains("at most 16384 messages"), "{refused}");
    }

    #[test]
    fn a_message_has_so_many_properties_and_no_more() {
        let with = |count: usize| {
            let properties: Vec<_> = (0..count).map(|n| format!("\"p{n}\":1")).collect();
            format!(r#"[{{"UserProperties":{{{}}}}}]"#, properties.join(","))
        };
        assert_eq!(check(&with(MAX_PROPERTIES)), Ok(1));
        let refused = check(&with(MAX_PROPERTIES + 1)).unwrap_err();
        assert!(refused.contains("at most 4096 properties"), "{refused}");
    }

    #[test]
    fn what_is_no_list_of_messages_is_refused() {
        for body in ["", "{}", "[1]", "[{}", "[{}]x", r#"[{"Body":1}]"#] {
            assert!(check(body).is_err(), "{body}");
        }
    }
}
