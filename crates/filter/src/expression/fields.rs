//! Fields: the properties that a program reads, of a message as received or as changed by an
//! action.

use crate::expression::dialect::Dialect;
use crate::message::property::Property;
use crate::values::value::Value;

/// The result of looking up an application property by name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PropertyLookup<'a> {
    Missing,
    Null,
    /// Unknown if it is of a type that filters do not know.
    Value(Value<'a>),
}

impl<'a> PropertyLookup<'a> {
    pub(crate) fn into_value(self) -> Value<'a> {
        match self {
            Self::Missing | Self::Null => Value::Unknown,
            Self::Value(value) => value,
        }
    }
}

/// A message whose properties can be read.
pub(crate) trait Fields {
    /// The application property called `name`: in any case for SQL, if there is none in its own;
    /// in its own for JMS. Of several that differ in case, the one whose name sorts first.
    fn user<'a>(&'a self, name: &str, dialect: Dialect) -> PropertyLookup<'a>;

    /// A property that is not the application's; unknown if it is not set.
    fn system(&self, property: Property) -> Value<'_>;

    /// The cost in fuel of looking up one application property.
    fn cost(&self) -> usize;
}

/// Whether two names are equal without regard to case.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    if left.is_ascii() && right.is_ascii() {
        return left.eq_ignore_ascii_case(right);
    }
    folded(left).eq(folded(right))
}

/// A name without its case.
pub(crate) fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase)
}
