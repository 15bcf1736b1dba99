//! Reading: from bytes to a tree, within bounds.

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use super::{Element, INSTANCE, XmlError, is_character};

const MAX_DEPTH: usize = 16;
const MAX_ELEMENTS: usize = 20_000;
const MAX_ATTRIBUTES: usize = 32;

/// The only element at the outermost level of a body.
pub(crate) fn parse(body: &[u8]) -> Result<Element, XmlError> {
    let text = std::str::from_utf8(body).map_err(|_| XmlError::Encoding)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.chars().all(is_character) {
        return Err(XmlError::Character);
    }
    let mut reader = NsReader::from_str(text);
    let mut tree = Tree::default();
    loop {
        let event = reader.read_event().map_err(|error| malformed(&error))?;
        match event {
            Event::Start(start) => tree.open(element(&start, reader.resolver())?)?,
            Event::Empty(start) => {
                tree.open(element(&start, reader.resolver())?)?;
                tree.close()?;
            }
            Event::End(_) => tree.close()?,
            Event::Text(text) => tree.text(&text.xml10_content())?,
            Event::CData(text) => tree.text(&text.xml10_content())?,
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) if is_character(character) => {
                    tree.text(character.encode_utf8(&mut [0; 4]))?;
                }
                Ok(Some(_)) => return Err(XmlError::Character),
                Ok(None) => tree.text(known_entity(&reference.xml10_content())?)?,
                Err(error) => return Err(malformed(&error)),
            },
            Event::DocType(_) => return Err(XmlError::DocumentType),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            Event::Eof => return tree.finish(),
        }
    }
}

fn malformed(error: &quick_xml::Error) -> XmlError {
    XmlError::Malformed(error.to_string())
}

/// The five that need no definition.
fn known_entity(name: &str) -> Result<&'static str, XmlError> {
    Ok(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "apos" => "'",
        "quot" => "\"",
        _ => return Err(XmlError::UnknownEntity(name.to_owned())),
    })
}

/// An element as its tag says.
fn element(start: &BytesStart<'_>, resolver: &NamespaceResolver) -> Result<Element, XmlError> {
    let mut element = Element {
        name: start.local_name().into_inner().to_owned(),
        ..Element::default()
    };
    for (count, attribute) in start.attributes().enumerate() {
        if count == MAX_ATTRIBUTES {
            return Err(XmlError::TooManyAttributes(MAX_ATTRIBUTES));
        }
        let attribute = attribute.map_err(|error| XmlError::Malformed(error.to_string()))?;
        let (namespace, name) = resolver.resolve_attribute(attribute.key);
        if namespace != ResolveResult::Bound(Namespace(INSTANCE)) {
            continue;
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| malformed(&error))?;
        match name.into_inner() {
            "type" => {
                let local = value.rsplit(':').next().unwrap_or_default();
                element.kind = Some(local.trim().to_owned());
            }
            "nil" => element.is_nil = matches!(value.trim(), "true" | "1"),
            _ => {}
        }
    }
    Ok(element)
}

/// A tree that grows at its last leaf.
#[derive(Default)]
struct Tree {
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    fn open(&mut self, element: Element) -> Result<(), XmlError> {
        self.elements += 1;
        if self.root.is_some() {
            return Err(XmlError::Trailing);
        } else if self.elements > MAX_ELEMENTS {
            return Err(XmlError::TooManyElements(MAX_ELEMENTS));
        } else if self.open.len() == MAX_DEPTH {
            return Err(XmlError::TooDeep(MAX_DEPTH));
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlError> {
        let element = self.open.pop().ok_or(XmlError::Trailing)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if !text.trim().is_empty() && self.root.is_some() => {
                return Err(XmlError::Trailing);
            }
            None if !text.trim().is_empty() => {
                return Err(XmlError::Malformed("it begins with text".to_owned()));
            }
            None => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Element, XmlError> {
        if !self.open.is_empty() {
            return Err(XmlError::Unfinished);
        }
        self.root.ok_or(XmlError::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str, expected: &XmlError) {
        assert_eq!(parse(body.as_bytes()).as_ref(), Err(expected), "{body}");
    }

    #[test]
    fn prefixes_are_the_clients_business() {
        let body = r#"<?xml version="1.0"?><ns0:entry xmlns:ns0="http://www.w3.org/2005/Atom">
            <Filter xmlns:p4="http://www.w3.org/2001/XMLSchema-instance" p4:type="x:SqlFilter" type="no"
            ><a>1 &lt; &#50;<![CDATA[ & 3]]></a><b p4:nil="true"/></Filter></ns0:entry>"#;
        let entry = parse(body.as_bytes()).unwrap();
        assert_eq!(entry.name, "entry");
        let filter = entry.child("Filter").unwrap();
        assert_eq!(filter.kind.as_deref(), Some("SqlFilter"));
        assert_eq!(filter.value("a"), Some("1 < 2 & 3"));
        assert_eq!(filter.child("b"), None);
    }

    #[test]
    fn the_last_of_equal_elements_counts() {
        let entry = parse(b"<e><a>1</a><a>2</a><a> </a></e>").unwrap();
        assert_eq!(entry.value("a"), None);
        let entry = parse(b"<e><a>1</a><a>2</a></e>").unwrap();
        assert_eq!(entry.value("a"), Some("2"));
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let bomb = r#"<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><b>&b;</b>"#;
        refused(bomb, &XmlError::DocumentType);
        refused("<b>&b;</b>", &XmlError::UnknownEntity("b".to_owned()));
        refused(
            r#"<!DOCTYPE b SYSTEM "file:///etc/passwd"><b/>"#,
            &XmlError::DocumentType,
        );
    }

    #[test]
    fn what_is_no_document_is_refused() {
        refused("", &XmlError::Empty);
        refused("<a>", &XmlError::Unfinished);
        refused("<a/><b/>", &XmlError::Trailing);
        refused("<a/>b", &XmlError::Trailing);
        refused("<a>\u{1}</a>", &XmlError::Character);
        refused("<a>&#1;</a>", &XmlError::Character);
        assert_eq!(parse(&[b'<', 0xff]), Err(XmlError::Encoding));
        for body in [
            "a",
            "<a></b>",
            "<a b></a>",
            "<a b='1' b='1'/>",
            "<a>&x</a>",
            "</a>",
        ] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn depth_elements_and_attributes_are_bounded() {
        let deep = "<a>".repeat(17) + &"</a>".repeat(17);
        refused(&deep, &XmlError::TooDeep(16));
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        refused(&many, &XmlError::TooManyElements(MAX_ELEMENTS));
        let attributes: String = (0..33).map(|n| format!(" a{n}=''")).collect();
        refused(
            &format!("<a{attributes}/>"),
            &XmlError::TooManyAttributes(32),
        );
    }
}
