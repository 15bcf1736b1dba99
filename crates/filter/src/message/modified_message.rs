//! Modified message: a message with the changes of an action so far.
//!
//! Names are looked up as filters look them up, so `SET` changes the property that a filter would
//! read, under the name it has. A new property gets the name in the statement.

use amqp::items::{self, Item};

use crate::action::action_error::ActionError;
use crate::expression::dialect::Dialect;
use crate::expression::fields::{Fields, PropertyLookup, same_name};
use crate::expression::tree::Path;
use crate::message::Message;
use crate::message::changes::{Changes, Conversion, SystemChange};
use crate::message::property::Property;
use crate::message::session_id::fold_session_id;
use crate::values::ticks;
use crate::values::value::{Value, ValueKind};

/// Most characters of an id. (docs/spec/entities.md#4)
const MAX_ID: usize = 128;
/// Most bytes of a property's name or value. (docs/spec/entities.md#4)
const MAX_PROPERTY: usize = 32 << 10;

/// Searching the changed properties costs one unit per this many.
const PROPERTIES_PER_UNIT: usize = 8;

/// One application property.
struct Entry<'b> {
    name: String,
    /// As it came, encoded.
    original: Option<&'b [u8]>,
    set: Option<SetValue>,
    is_removed: bool,
}

/// The value that an application property was set to.
struct SetValue {
    typed: amqp::Value,
    /// The value as expressions see it.
    value: Value<'static>,
}

pub(crate) struct ModifiedMessage<'m, 'b> {
    message: &'m Message<'b>,
    /// Each name once; made when the first application property is changed.
    user: Option<Vec<Entry<'b>>>,
    /// In the order of the first change of each; unknown is removed.
    system: Vec<(Property, Value<'static>)>,
}

impl<'m, 'b> ModifiedMessage<'m, 'b> {
    pub(crate) fn new(message: &'m Message<'b>) -> Self {
        Self {
            message,
            user: None,
            system: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, path: &Path, value: Value<'static>) -> Result<(), ActionError> {
        match path {
            Path::System(property) => self.set_system(*property, value),
            // A property without a value is removed. (docs/spec/entities.md#17.10)
            Path::User(_) if value.is_unknown() => {
                self.remove(path);
                Ok(())
            }
            Path::User(name) => self.set_user(name, value),
        }
    }

    pub(crate) fn remove(&mut self, path: &Path) {
        match path {
            Path::System(property) => self.put_system(*property, Value::Unknown),
            Path::User(name) => {
                let entries = self.entries();
                if let Some(place) = find(entries, name, Dialect::Sql) {
                    entries[place].set = None;
                    entries[place].is_removed = true;
                }
            }
        }
    }

    fn set_user(&mut self, name: &str, value: Value<'static>) -> Result<(), ActionError> {
        let is_large = matches!(&value, Value::Text(text) if text.len() > MAX_PROPERTY);
        if is_large || name.len() > MAX_PROPERTY {
            return Err(ActionError::TooLarge(name.to_owned(), MAX_PROPERTY));
        }
        let entries = self.entries();
        if let Some(place) = find(entries, name, Dialect::Sql) {
            let conversion = entries[place].conversion();
            entries[place].set = Some(SetValue::new(&conversion, value));
            return Ok(());
        }
        let set = Some(SetValue::new(&Conversion::None, value));
        match entries.iter_mut().find(|entry| entry.name == name) {
            // It was removed, and what it was does not matter any more.
            Some(entry) => (entry.set, entry.is_removed) = (set, false),
            None => entries.push(Entry {
                name: name.to_owned(),
                original: None,
                set,
                is_removed: false,
            }),
        }
        Ok(())
    }

    fn entries(&mut self) -> &mut Vec<Entry<'b>> {
        let message = self.message;
        self.user.get_or_insert_with(|| {
            let properties = message.user_properties();
            let mut entries: Vec<Entry<'b>> = Vec::new();
            let mut seen = std::collections::BTreeSet::new();
            for (name, item) in properties.entries() {
                if seen.insert(*name) {
                    entries.push(Entry {
                        name: (*name).to_owned(),
                        original: Some(item),
                        set: None,
                        is_removed: false,
                    });
                }
            }
            entries
        })
    }

    fn set_system(&mut self, property: Property, value: Value<'static>) -> Result<(), ActionError> {
        if property == Property::ScheduledEnqueueTimeUtc {
            // Accepted and without effect. (docs/spec/entities.md#17.10)
            return Ok(());
        }
        let value = match (property, value) {
            (_, Value::Unknown) => Value::Unknown,
            (Property::TimeToLive, value) => Value::Duration(time_to_live(&value)?),
            (property, value) => text_for(property, value)?,
        };
        self.put_system(property, value);
        Ok(())
    }

    fn put_system(&mut self, property: Property, value: Value<'static>) {
        if property == Property::ScheduledEnqueueTimeUtc {
            return;
        }
        match self.system.iter_mut().find(|(known, _)| *known == property) {
            Some((_, known)) => *known = value,
            None => self.system.push((property, value)),
        }
    }

    /// The changes in all, if they agree with each other.
    pub(crate) fn finish(self) -> Result<Changes, ActionError> {
        self.check_partition()?;
        let mut changes = Changes::default();
        for (property, value) in self.system {
            changes.set_system(SystemChange::of(property, value));
        }
        for entry in self.user.into_iter().flatten() {
            match (entry.is_removed, entry.set) {
                (true, _) if entry.original.is_some() => changes.remove_user(entry.name),
                (true, _) => {}
                (false, Some(set)) => changes.set_user(entry.name, set.typed),
                (false, None) => {}
            }
        }
        Ok(changes)
    }

    /// Both or neither: a partition key is the session's id, whatever the letter case. The empty
    /// id agrees with any key. (docs/spec/entities.md#18)
    fn check_partition(&self) -> Result<(), ActionError> {
        let is_changed = |property| self.system.iter().any(|(changed, _)| *changed == property);
        if !is_changed(Property::PartitionKey) && !is_changed(Property::SessionId) {
            return Ok(());
        }
        let key = self.system(Property::PartitionKey);
        let session = self.system(Property::SessionId);
        let agrees = match (&key, &session) {
            (Value::Unknown, _) | (_, Value::Unknown) => true,
            (Value::Text(key), Value::Text(session)) => {
                let (key, id) = (key.as_bytes(), session.as_bytes());
                session.is_empty() || fold_session_id(key) == fold_session_id(id)
            }
            _ => key == session,
        };
        if agrees {
            return Ok(());
        }
        Err(ActionError::PartitionKeyDiffers)
    }
}

/// The ticks of a time to live, which is a duration or its text. (docs/spec/entities.md#17.10)
fn time_to_live(value: &Value<'_>) -> Result<i64, ActionError> {
    let name = Property::TimeToLive.name();
    let ticks = match value {
        Value::Duration(ticks) => *ticks,
        Value::Text(text) => ticks::of_clock_text(text).ok_or(ActionError::NoDuration(name))?,
        other => return Err(ActionError::WrongKind(name, other.kind())),
    };
    if ticks::to_ms(ticks) > 0 {
        Ok(ticks)
    } else {
        Err(ActionError::OutOfRange(name))
    }
}

/// A value for a property that holds a text.
fn text_for(property: Property, value: Value<'static>) -> Result<Value<'static>, ActionError> {
    let kind = value.kind();
    let Some(text) = value.into_text().filter(|_| kind == ValueKind::Text) else {
        return Err(ActionError::WrongKind(property.name(), kind));
    };
    let is_id = matches!(
        property,
        Property::MessageId
            | Property::SessionId
            | Property::ReplyToSessionId
            | Property::PartitionKey
    );
    if is_id && text.chars().count() > MAX_ID {
        return Err(ActionError::TooLong(property.name(), MAX_ID));
    }
    if text.len() > MAX_PROPERTY {
        return Err(ActionError::TooLarge(
            property.name().to_owned(),
            MAX_PROPERTY,
        ));
    }
    if property == Property::ContentType && !text.is_ascii() {
        // A content type is a symbol. [AMQP 3.2.4]
        return Err(ActionError::OutOfRange(property.name()));
    }
    Ok(Value::Text(text))
}

/// The place of the entry that is found under `name`.
fn find(entries: &[Entry<'_>], name: &str, dialect: Dialect) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (place, entry) in entries.iter().enumerate() {
        if entry.is_removed {
            continue;
        }
        if entry.name == name {
            return Some(place);
        }
        let is_better = best.is_none_or(|best| entry.name < entries[best].name);
        if dialect == Dialect::Sql && is_better && same_name(&entry.name, name) {
            best = Some(place);
        }
    }
    best
}

impl Fields for ModifiedMessage<'_, '_> {
    fn user<'a>(&'a self, name: &str, dialect: Dialect) -> PropertyLookup<'a> {
        let Some(entries) = &self.user else {
            return self.message.user(name, dialect);
        };
        let Some(entry) = find(entries, name, dialect).map(|place| &entries[place]) else {
            return PropertyLookup::Missing;
        };
        match (&entry.set, entry.original) {
            (Some(set), _) => PropertyLookup::Value(set.value.borrowed()),
            (None, Some([items::NULL])) => PropertyLookup::Null,
            (None, Some(item)) => PropertyLookup::Value(Value::of_item(item)),
            (None, None) => PropertyLookup::Missing,
        }
    }

    fn system(&self, property: Property) -> Value<'_> {
        match self.system.iter().find(|(changed, _)| *changed == property) {
            Some((_, value)) => value.borrowed(),
            None => self.message.system(property),
        }
    }

    fn cost(&self) -> usize {
        match &self.user {
            Some(entries) => 1 + entries.len() / PROPERTIES_PER_UNIT,
            None => self.message.cost(),
        }
    }
}

impl Entry<'_> {
    /// To the type of what is there now.
    fn conversion(&self) -> Conversion {
        match (&self.set, self.original) {
            (Some(set), _) => Conversion::LikeScalar(set.typed.clone()),
            (None, Some(item)) => Conversion::to(item),
            (None, None) => Conversion::None,
        }
    }
}

impl SetValue {
    fn new(conversion: &Conversion, value: Value<'static>) -> Self {
        let typed = conversion.convert(value);
        Self {
            value: Value::of_amqp(&typed),
            typed,
        }
    }
}

impl Conversion {
    /// To the type of an encoded value.
    fn to(item: &[u8]) -> Self {
        match items::read(item) {
            Ok(Item::Scalar(value)) => Self::LikeScalar(value),
            Ok(Item::Text(_)) if is_symbol(item) => Self::Symbol,
            _ => Self::None,
        }
    }
}

/// Symbols and strings have format codes of their own. [AMQP 1.6.21]
fn is_symbol(item: &[u8]) -> bool {
    matches!(item, [0xa3 | 0xb3, ..])
}
