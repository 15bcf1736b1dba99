//! Sending: builds messages from the command line, and waits until the broker accepts each.

use std::io::{BufRead, Read};

use amqp::{Role, Source};
use bytes::Bytes;
use entity::duration;
use entity::rules::MessageDescription;
use serde_json::{Map, Value, json};

use super::Error;
use super::client::{Client, target};
use crate::arguments::SendArguments;
use crate::command_error::CommandError;

/// Messages whose outcome may be waited for at a time.
const WINDOW: usize = 64;

/// The messages that a command line asks for, encoded.
pub fn messages(arguments: &SendArguments) -> Result<Vec<Bytes>, CommandError> {
    let description = describe(arguments).map_err(Error::Message)?;
    let bodies = bodies(arguments)?;
    let messages = bodies.iter().map(|body| description.encode_with(body));
    Ok(messages.collect())
}

fn bodies(arguments: &SendArguments) -> Result<Vec<Vec<u8>>, CommandError> {
    let stdin = || std::io::stdin().lock();
    let body = match (&arguments.body, &arguments.file) {
        (Some(body), _) => body.clone().into_bytes(),
        (None, Some(file)) => std::fs::read(file).map_err(|error| CommandError::Read {
            path: file.clone(),
            error,
        })?,
        (None, None) if arguments.lines => {
            let lines = stdin().lines().collect::<Result<Vec<_>, _>>();
            let lines = lines.map_err(CommandError::Stdin)?.into_iter();
            return Ok(lines.map(String::into_bytes).collect());
        }
        (None, None) => {
            let mut body = Vec::new();
            stdin()
                .read_to_end(&mut body)
                .map_err(CommandError::Stdin)?;
            body
        }
    };
    Ok(vec![body; arguments.count as usize])
}

/// As files describe messages.
fn describe(arguments: &SendArguments) -> serde_json::Result<MessageDescription> {
    let mut message = Map::new();
    for (name, text) in [
        ("message-id", &arguments.message_id),
        ("session-id", &arguments.session_id),
        ("subject", &arguments.subject),
        ("correlation-id", &arguments.correlation_id),
        ("content-type", &arguments.content_type),
    ] {
        if let Some(text) = text {
            message.insert(name.to_owned(), text.clone().into());
        }
    }
    if let Some(millis) = arguments.time_to_live {
        message.insert("time-to-live".to_owned(), duration::text(millis).into());
    }
    if let Some(millis) = arguments.delay {
        let delay = jiff::SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
        let due = jiff::Timestamp::now().saturating_add(delay);
        let due = due.unwrap_or(jiff::Timestamp::MAX);
        message.insert("scheduled-enqueue-time".to_owned(), due.to_string().into());
    }
    let properties = arguments.properties.iter();
    let properties: Map<_, _> = properties
        .map(|(name, text)| (name.clone(), property(text)))
        .collect();
    message.insert("properties".to_owned(), json!(properties));
    serde_json::from_value(Value::Object(message))
}

/// A number or a truth value if it is one, and a text otherwise.
fn property(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        _ => text.into(),
    }
}

/// Sends messages in order; returns when all of them are taken.
pub async fn send(client: &mut Client, entity: &str, messages: &[Bytes]) -> Result<(), Error> {
    let attach = client.link(Role::Sender, Source::default(), target(entity));
    let link = client.attach(attach, entity).await?;
    let mut taken = 0_u128;
    for (message, cookie) in messages.iter().zip(0_u128..) {
        if cookie - taken >= WINDOW as u128 {
            client.wait_until_accepted(link, taken).await?;
            taken += 1;
        }
        client.send(link, cookie, message).await?;
    }
    for cookie in taken..messages.len() as u128 {
        client.wait_until_accepted(link, cookie).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_what_it_looks_like() {
        assert_eq!(property("5"), json!(5));
        assert_eq!(property("1.5"), json!(1.5));
        assert_eq!(property("true"), json!(true));
        assert_eq!(property("\"5\""), json!("\"5\""));
        assert_eq!(property("red"), json!("red"));
        assert_eq!(property("{}"), json!("{}"));
    }
}
