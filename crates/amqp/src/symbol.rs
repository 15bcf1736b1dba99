//! Symbol: AMQP's name type, an ASCII string from a constrained domain. [AMQP 1.6.21]
//!
//! Most symbols in use are constants, so those cost no allocation.

use std::borrow::Cow;
use std::fmt;

/// A symbolic name such as `amqp:not-found`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Symbol(Cow<'static, str>);

impl Symbol {
    /// A symbol that is known when compiling.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Symbol {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl From<&'static str> for Symbol {
    fn from(name: &'static str) -> Self {
        Self::new(name)
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
