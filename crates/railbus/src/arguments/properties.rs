//! Options for the properties of entities: one for each row of [`entity::PROPERTIES`] that files
//! have, called as there. The broker checks the values.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::str::FromStr;

use broker::{EntityDescription, EntityKind};
use clap::builder::{BoolValueParser, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use entity::{Property, Slot};
use serde_json::{Map, Value};

/// A kind of entity as a type, since options belong to types.
pub trait Kind: Clone + Debug + Send + Sync + 'static {
    /// The kind.
    const KIND: EntityKind;
}

/// Queues.
#[derive(Clone, Debug)]
pub struct Queue;
/// Topics.
#[derive(Clone, Debug)]
pub struct Topic;
/// Subscriptions.
#[derive(Clone, Debug)]
pub struct Subscription;

impl Kind for Queue {
    const KIND: EntityKind = EntityKind::Queue;
}

impl Kind for Topic {
    const KIND: EntityKind = EntityKind::Topic;
}

impl Kind for Subscription {
    const KIND: EntityKind = EntityKind::Subscription;
}

/// The properties that were given, as files have them; null takes one away.
#[derive(Clone, Debug)]
pub struct PropertyOptions<K> {
    /// By name.
    pub given: Map<String, Value>,
    kind: PhantomData<K>,
}

impl<K: Kind> Args for PropertyOptions<K> {
    fn augment_args(command: Command) -> Command {
        command.args(entity::named(K::KIND).map(|(name, property)| option(name, property)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: Kind> FromArgMatches for PropertyOptions<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = entity::named(K::KIND).filter_map(|(name, _)| {
            let value = matches.get_one::<Value>(name)?;
            Some((name.to_owned(), value.clone()))
        });
        Ok(Self {
            given: given.collect(),
            kind: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.given.extend(Self::from_arg_matches(matches)?.given);
        Ok(())
    }
}

fn option(name: &'static str, property: &'static Property) -> Arg {
    let option = Arg::new(name).long(name).help(property.help);
    let texts = || StringValueParser::new().map(text);
    match (property.slot)(&mut EntityDescription::default()) {
        Slot::Flag(_) => option
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(BoolValueParser::new().map(Value::from)),
        Slot::Duration(..) => option.value_name("DURATION").value_parser(duration),
        Slot::Count(_) => option.value_name("COUNT").value_parser(number::<u32>),
        Slot::Megabytes(_) => option.value_name("MEGABYTES").value_parser(number::<u32>),
        Slot::Bytes(_) => option.value_name("SIZE").value_parser(texts()),
        Slot::Target(..) => option.value_name("PATH").value_parser(texts()),
        Slot::Text(_) => option.value_name("TEXT").value_parser(texts()),
        Slot::Limit(_) => option.value_name("COUNT").value_parser(number::<u64>),
        Slot::RetryBackoff(_) => option.value_name("BACKOFF").value_parser(backoff),
        slot @ Slot::Overflow(_) => option.value_name("OVERFLOW").value_parser(choice(&slot)),
        slot @ Slot::Status(_) => option.value_name("STATUS").value_parser(choice(&slot)),
        slot @ Slot::Expiry(_) => option.value_name("EXPIRY").value_parser(choice(&slot)),
    }
}

/// One of the values that a property can have, or an empty text.
fn choice(slot: &Slot<'_>) -> impl TypedValueParser<Value = Value> {
    let choices = slot.choices().iter().chain(&[""]);
    PossibleValuesParser::new(choices).map(text)
}

/// An empty text takes a property away.
fn text(text: String) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

/// A number; an empty text takes a property away.
fn number<N: FromStr + Into<Value>>(text: &str) -> Result<Value, N::Err> {
    match text {
        "" => Ok(Value::Null),
        text => text.parse().map(N::into),
    }
}

/// A duration; an empty text takes a property away.
fn duration(text: &str) -> Result<Value, String> {
    match text {
        "" => Ok(Value::Null),
        text => typed(text),
    }
}

/// `min=1s,max=1m,factor=2` as files have it; an empty text takes it away.
fn backoff(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let pairs = text.split(',').map(|pair| {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("`{pair}` is not KEY=VALUE"))?;
        let value = match key {
            "factor" => number::<u64>(value).map_err(|error| error.to_string())?,
            _ => typed(value)?,
        };
        Ok((key.to_owned(), value))
    });
    pairs.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

/// A duration as people type it, as files have it.
fn typed(text: &str) -> Result<Value, String> {
    let millis = match text {
        "never" => entity::duration::NEVER,
        text => entity::duration::parse_typed(text)?,
    };
    Ok(entity::duration::text(millis).into())
}
