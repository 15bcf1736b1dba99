//! JSON with comments: a walk over a parsed file that knows line and path of every value.
//!
//! Names of members are compared without regard to case, a byte-order mark, comments and trailing
//! commas are tolerated, and `null` is the same as absent. A key that comes twice is an error.
//! (docs/spec/admin.md#12)

use std::collections::HashMap;
use std::path::Path;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::DeserializeOwned;

use super::error::{Error, SourceLocation, line_of};

/// What JSON with comments may contain.
pub const TOLERANT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A value with its location.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    file: &'a Path,
    text: &'a str,
    value: &'a Value<'a>,
    path: String,
}

/// A value that has no parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    Text(&'a str),
    Integer(i64),
    Fraction(f64),
    Boolean(bool),
}

/// Parses `text`.
pub fn parse<'a>(file: &Path, text: &'a str) -> Result<Value<'a>, Error> {
    let location = |line| SourceLocation {
        file: file.to_owned(),
        line,
        path: String::new(),
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &TOLERANT).map_err(|error| {
        Error::Value {
            location: location(Some(error.line_display())),
            message: error.kind().to_string(),
        }
    })?;
    let value = parsed.value.ok_or_else(|| Error::Value {
        location: location(None),
        message: "the file is empty".to_owned(),
    })?;
    check_keys(&Cursor::root(file, text, &value))?;
    Ok(value)
}

/// Refuses a key that an object has twice, for one of its values would be lost.
fn check_keys(value: &Cursor<'_>) -> Result<(), Error> {
    if value.value.as_array().is_some() {
        return value.elements()?.iter().try_for_each(check_keys);
    }
    let Some(object) = value.value.as_object() else {
        return Ok(());
    };
    let mut seen = HashMap::new();
    for member in &object.properties {
        let name = member.name.as_str();
        let member = value.step(name, &member.value);
        // Counting lines takes as long as the file is, so that is left to the error.
        if let Some(first) = seen.insert(name, member.value) {
            return Err(member.twice(name, line_of(value.text, first.start())));
        }
        check_keys(&member)?;
    }
    Ok(())
}

/// Parses `text` into a value of a type.
pub fn read_text<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, Error> {
    let value = parse(file, text)?;
    Cursor::root(file, text, &value).read()
}

impl<'a> Cursor<'a> {
    /// At the root of a parsed file.
    pub fn root(file: &'a Path, text: &'a str, value: &'a Value<'a>) -> Self {
        Self {
            file,
            text,
            value,
            path: String::new(),
        }
    }

    /// Where this value stands.
    pub fn location(&self) -> SourceLocation {
        SourceLocation {
            file: self.file.to_owned(),
            line: Some(self.line()),
            path: self.path.clone(),
        }
    }

    fn line(&self) -> usize {
        line_of(self.text, self.value.start())
    }

    /// An error about this value, whose key was in line `first` already, as `name`.
    fn twice(&self, name: &str, first: usize) -> Error {
        self.error(format!(
            "this key is there twice, first in line {first} as `{name}`"
        ))
    }

    /// An error about this value.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::Value {
            location: self.location(),
            message: message.into(),
        }
    }

    /// An error about the value at `path` from here, or about this one if nothing is there.
    pub fn error_at(&self, path: &str, message: String) -> Error {
        let location = self.at(path).map_or_else(
            || SourceLocation {
                path: path.to_owned(),
                ..self.location()
            },
            |value| value.location(),
        );
        Error::Value { location, message }
    }

    /// The member `name`, unless it is absent or null. It is an error if there are two that differ
    /// only in case.
    pub fn member(&self, name: &str) -> Result<Option<Self>, Error> {
        let members = self.object()?.properties.iter();
        let mut found = members.filter(|member| member.name.as_str().eq_ignore_ascii_case(name));
        let Some(member) = found.next() else {
            return Ok(None);
        };
        let value = self.step(name, &member.value);
        if let Some(second) = found.next() {
            let second = self.step(second.name.as_str(), &second.value);
            return Err(second.twice(member.name.as_str(), value.line()));
        }
        Ok(Some(value).filter(|value| !value.is_null()))
    }

    /// The member `name`, which must be there.
    pub fn required(&self, name: &str) -> Result<Self, Error> {
        self.member(name)?
            .ok_or_else(|| self.error(format!("`{name}` is missing")))
    }

    /// The elements of the member `name`; none if it is absent.
    pub fn list(&self, name: &str) -> Result<Vec<Self>, Error> {
        match self.member(name)? {
            Some(list) => list.elements(),
            None => Ok(Vec::new()),
        }
    }

    /// The elements of this array.
    pub fn elements(&self) -> Result<Vec<Self>, Error> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.error("a list is expected here"))?;
        let element = |(index, value)| Self {
            value,
            path: format!("{}[{index}]", self.path),
            ..self.clone()
        };
        Ok(array.elements.iter().enumerate().map(element).collect())
    }

    /// The text of this string.
    pub fn string(&self) -> Result<&'a str, Error> {
        self.value
            .as_string_lit()
            .map(|text| &*text.value)
            .ok_or_else(|| self.error("a text is expected here"))
    }

    /// This truth value.
    pub fn boolean(&self) -> Result<bool, Error> {
        let boolean = self.value.as_boolean_lit().map(|boolean| boolean.value);
        boolean.ok_or_else(|| self.error("true or false is expected here"))
    }

    /// This whole number.
    pub fn integer(&self) -> Result<i128, Error> {
        let number = self
            .value
            .as_number_lit()
            .and_then(|number| number.value.parse().ok());
        number.ok_or_else(|| self.error("a whole number is expected here"))
    }

    /// The members of this object, each a text, a number or a truth value. Names as they are.
    pub fn scalars(&self) -> Result<Vec<(String, Scalar<'a>)>, Error> {
        let members = self.object()?.properties.iter();
        let members = members.map(|member| {
            let name = member.name.as_str();
            let value = self.step(name, &member.value).scalar()?;
            Ok((name.to_owned(), value))
        });
        members.collect()
    }

    fn scalar(&self) -> Result<Scalar<'a>, Error> {
        if let Some(text) = self.value.as_string_lit() {
            return Ok(Scalar::Text(&text.value));
        }
        if let Some(boolean) = self.value.as_boolean_lit() {
            return Ok(Scalar::Boolean(boolean.value));
        }
        let number = self.value.as_number_lit().map(|number| number.value);
        let whole = number.and_then(|number| number.parse().ok());
        let fraction = number.and_then(|number| number.parse().ok());
        let scalar = whole
            .map(Scalar::Integer)
            .or(fraction.map(Scalar::Fraction));
        scalar.ok_or_else(|| self.error("a text, a number, true or false is expected here"))
    }

    /// Members of this object whose names are not in `known`.
    pub fn unknown(&self, known: &[&str]) -> Result<Vec<Self>, Error> {
        let is_unknown = |name: &str| !known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let members = self
            .object()?
            .properties
            .iter()
            .filter(|member| is_unknown(member.name.as_str()));
        Ok(members
            .map(|member| self.step(member.name.as_str(), &member.value))
            .collect())
    }

    /// The value at `path`, such as `queues[2].name`, from here.
    pub fn at(&self, path: &str) -> Option<Self> {
        path.split(['.', '['])
            .try_fold(self.clone(), |value, step| match step.strip_suffix(']') {
                Some(index) => value.elements().ok()?.into_iter().nth(index.parse().ok()?),
                None => value.member(step).ok()?,
            })
    }

    /// Reads this value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let value: serde_json::Value = self.value.clone().into();
        serde_path_to_error::deserialize(value)
            .map_err(|error| self.error_at(&error.path().to_string(), error.inner().to_string()))
    }

    fn object(&self) -> Result<&'a Object<'a>, Error> {
        self.value
            .as_object()
            .ok_or_else(|| self.error("an object is expected here"))
    }

    fn is_null(&self) -> bool {
        self.value.as_null_keyword().is_some()
    }

    fn step(&self, name: &str, value: &'a Value<'a>) -> Self {
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Self {
            value,
            path,
            ..self.clone()
        }
    }
}
