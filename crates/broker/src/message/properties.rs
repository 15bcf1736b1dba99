//! Properties: what the core itself reads of a stored message: its id and its session.
//!
//! A message is checked on arrival. If it is not readable now, it has neither.

use amqp::message::Sections;
use amqp::validate;
use bytes::Bytes;

use crate::message::id::IdHash;

/// Positions in the properties list. [AMQP 3.2.4]
const MESSAGE_ID: usize = 0;
const GROUP_ID: usize = 10;
const NULL: u8 = 0x40;

/// A message's id and session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Properties {
    /// Encoded.
    pub message_id: Option<Bytes>,
    /// In UTF-8.
    pub session_id: Option<Bytes>,
}

impl Properties {
    /// Of an encoded message.
    pub(crate) fn of(payload: &Bytes) -> Self {
        Self::read(payload).unwrap_or_default()
    }

    /// What duplicates are found by.
    pub(crate) fn id_hash(&self) -> Option<IdHash> {
        self.message_id.as_ref().map(|id| IdHash::of_id(id))
    }

    fn read(payload: &Bytes) -> Option<Self> {
        let sections = Sections::scan(payload).ok()?;
        let section = payload.get(sections.properties)?;
        let mut properties = Self::default();
        for (position, item) in items(section)?.enumerate() {
            match position {
                MESSAGE_ID if *item != [NULL] => {
                    properties.message_id = Some(payload.slice_ref(item));
                }
                GROUP_ID => {
                    properties.session_id = text(item).map(|text| payload.slice_ref(text));
                }
                _ => {}
            }
        }
        Some(properties)
    }
}

/// The encoded items of a section that is a described list or map.
pub(super) fn items(section: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let descriptor = validate::extent(section.get(1..)?).ok()?;
    let list = section.get(1 + descriptor..)?;
    let mut rest = match list {
        [0xc0 | 0xc1, _, _, rest @ ..] | [0xd0 | 0xd1, _, _, _, _, _, _, _, _, rest @ ..] => rest,
        _ => &[],
    };
    Some(std::iter::from_fn(move || {
        let (item, after) = rest.split_at_checked(validate::extent(rest).ok()?)?;
        rest = after;
        (!item.is_empty()).then_some(item)
    }))
}

/// The bytes of an encoded string.
pub(super) fn text(item: &[u8]) -> Option<&[u8]> {
    match item {
        [0xa1, _, text @ ..] | [0xb1, _, _, _, _, text @ ..] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use amqp::Value;
    use amqp::message::Properties as Encoded;
    use bytes::BytesMut;

    use super::*;

    fn message(properties: &Encoded) -> Bytes {
        let mut out = BytesMut::new();
        properties.encode(&mut out);
        out.extend_from_slice(b"\x00\x53\x75\xa0\x02hi");
        out.freeze()
    }

    #[test]
    fn id_and_session_are_found_wherever_they_stand() {
        let properties = Encoded {
            message_id: Some(Value::String("the id".into())),
            subject: Some("s".repeat(300)),
            group_id: Some("session".to_owned()),
            ..Encoded::default()
        };
        let found = Properties::of(&message(&properties));
        assert_eq!(found.message_id.as_deref(), Some(&b"\xa1\x06the id"[..]));
        assert_eq!(found.session_id.as_deref(), Some(&b"session"[..]));
    }

    #[test]
    fn a_message_without_them_or_that_is_none_has_neither() {
        let subject = Encoded {
            subject: Some("only this".to_owned()),
            ..Encoded::default()
        };
        for payload in [
            message(&subject),
            message(&Encoded::default()),
            Bytes::new(),
        ] {
            assert_eq!(Properties::of(&payload), Properties::default());
        }
        for length in 0..40 {
            let whole = message(&subject);
            let cut = whole.slice(..length.min(whole.len()));
            assert_eq!(Properties::of(&cut).session_id, None);
        }
    }
}
