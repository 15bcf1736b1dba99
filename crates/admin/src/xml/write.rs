//! Writing: elements one after the other, without whitespace between them.
//!
//! Names and prefixes are literal constants, because one client compares them as text
//! (docs/spec/admin.md#4.1). Texts are escaped, and characters that XML does not allow are
//! replaced.

use std::borrow::Cow;

use quick_xml::escape::{escape, partial_escape};

use super::is_character;

/// A document that grows at its end.
#[derive(Debug, Default)]
pub(crate) struct Writer(String);

impl Writer {
    /// A start tag with attributes.
    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.0.push('>');
    }

    /// An end tag.
    pub(crate) fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.0.push_str("/>");
    }

    /// An element with a text.
    pub(crate) fn text(&mut self, name: &str, text: impl AsRef<str>) {
        self.text_with(name, &[], text);
    }

    /// An element with a text, if there is one.
    pub(crate) fn optional(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// An element with attributes and a text.
    pub(crate) fn text_with(
        &mut self,
        name: &str,
        attributes: &[(&str, &str)],
        text: impl AsRef<str>,
    ) {
        self.open(name, attributes);
        self.0
            .push_str(&partial_escape(replace_invalid(text.as_ref())));
        self.close(name);
    }

    /// An element with a number.
    pub(crate) fn number(&mut self, name: &str, number: u64) {
        self.text(name, number.to_string());
    }

    /// An element with `true` or `false`.
    pub(crate) fn boolean(&mut self, name: &str, value: bool) {
        self.text(name, if value { "true" } else { "false" });
    }

    /// The text written so far.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.0.push('<');
        self.0.push_str(name);
        for (key, value) in attributes {
            self.0.push(' ');
            self.0.push_str(key);
            self.0.push_str("=\"");
            self.0.push_str(&escape(replace_invalid(value)));
            self.0.push('"');
        }
    }
}

/// `text` with nothing but characters of XML.
fn replace_invalid(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_character) {
        return Cow::Borrowed(text);
    }
    let replaced = text.chars().map(|character| {
        if is_character(character) {
            character
        } else {
            char::REPLACEMENT_CHARACTER
        }
    });
    Cow::Owned(replaced.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut writer = Writer::default();
        writer.open("a", &[("b", "<\"&")]);
        writer.text("c", "1 < 2 & \u{1}");
        writer.empty("d", &[]);
        writer.close("a");
        let expected = "<a b=\"&lt;&quot;&amp;\"><c>1 &lt; 2 &amp; \u{fffd}</c><d/></a>";
        assert_eq!(writer.finish(), expected);
    }
}
