//! TOML files: from text to checked values, with line and path in every error.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::error::{Error, SourceLocation, line_of, read};

/// A TOML file that could be read.
pub struct TomlFile<'a, T> {
    pub value: T,
    file: &'a Path,
    text: String,
}

impl<'a, T: DeserializeOwned> TomlFile<'a, T> {
    /// Reads `file`.
    pub fn read(file: &'a Path) -> Result<Self, Error> {
        let text = read(file)?;
        let parse = || {
            let deserializer =
                toml::Deserializer::parse(&text).map_err(|error| (String::new(), error))?;
            serde_path_to_error::deserialize(deserializer)
                .map_err(|error| (error.path().to_string(), error.into_inner()))
        };
        match parse() {
            Ok(value) => Ok(Self { value, file, text }),
            Err((path, error)) => Err(value_error(file, &text, path, &error)),
        }
    }
}

impl<T> TomlFile<'_, T> {
    /// Whether it has not even a comment.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// An error about the value at `path`, such as `queues[2].name`.
    pub fn error(&self, path: String, message: String) -> Error {
        let line = line_of_path(&self.text, &path);
        Error::Value {
            location: SourceLocation {
                file: self.file.to_owned(),
                line,
                path,
            },
            message,
        }
    }
}

fn value_error(file: &Path, text: &str, path: String, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| line_of(text, span.start));
    // A key of the wrong type would be in the library's message.
    let is_secret = path.ends_with("primary-key") || path.ends_with("secondary-key");
    let message = if is_secret {
        "a key is a string".to_owned()
    } else {
        error.message().trim().replace('\n', "; ")
    };
    // The root is written as a dot.
    let path = if path == "." { String::new() } else { path };
    Error::Value {
        location: SourceLocation {
            file: file.to_owned(),
            line,
            path,
        },
        message,
    }
}

/// Where the value at `path` begins.
fn line_of_path(text: &str, path: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut start = None;
    let mut value = DeValue::Table(root.into_inner());
    for step in path
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'))
    {
        let next = match &value {
            DeValue::Array(array) => array.get(step.parse::<usize>().ok()?)?,
            _ => value.get(step)?,
        };
        start = Some(next.span().start);
        value = next.clone().into_inner();
    }
    start.map(|byte| line_of(text, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_at_its_line() {
        let text = "a = 1\n[[queues]]\nname = 'x'\n\n[[queues]]\nname = 'y'\n";
        assert_eq!(line_of_path(text, "a"), Some(1));
        assert_eq!(line_of_path(text, "queues[1].name"), Some(6));
        assert_eq!(line_of_path(text, "queues[2].name"), None);
    }
}
