//! XML: the body of a request as a tree of elements, and the body of a response as text.
//!
//! Names are compared by their local parts, whatever prefixes a client uses; `i:type` and `i:nil`
//! are found by their namespace. A document type is refused, so a document cannot define entities
//! and a body never grows when it is parsed. Depth, elements and attributes are bounded.

mod read;
mod write;

pub(crate) use read::parse;
pub(crate) use write::Writer;

/// The namespace of `type` and `nil`.
pub(crate) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The namespace of typed values.
pub(crate) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The other one.
pub(crate) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
pub(crate) const ATOM: &str = "http://www.w3.org/2005/Atom";
/// The namespace of descriptions.
pub(crate) const SERVICE_BUS: &str =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The namespace of counts.
pub(crate) const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";

/// Why a body is no document that could be understood.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum XmlError {
    #[error("it is not UTF-8")]
    Encoding,
    #[error("{0}")]
    Malformed(String),
    #[error("it has a document type, and none is accepted")]
    DocumentType,
    #[error("the entity &{0}; is not known")]
    UnknownEntity(String),
    #[error("a character in it is none of XML's")]
    Character,
    #[error("it is deeper than {0} elements")]
    TooDeep(usize),
    #[error("it has more than {0} elements")]
    TooManyElements(usize),
    #[error("an element has more than {0} attributes")]
    TooManyAttributes(usize),
    #[error("it has no element")]
    Empty,
    #[error("there is something after its end")]
    Trailing,
    #[error("it ends too early")]
    Unfinished,
}

/// An element of a body.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Element {
    /// Without its prefix.
    pub name: String,
    /// The local part of `i:type`.
    pub kind: Option<String>,
    /// Whether it has `i:nil`.
    pub is_nil: bool,
    /// All of its own characters.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The last child of that name that is not nil.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        let mut found = self.children.iter().rev();
        found.find(|child| child.name == name && !child.is_nil)
    }

    /// The text of a child without the space around it, if there is any.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let text = self.child(name)?.text.trim();
        (!text.is_empty()).then_some(text)
    }
}

/// Whether XML 1.0 has this character.
pub(crate) fn is_character(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}
