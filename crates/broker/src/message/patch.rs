//! Patch: application properties and message annotations changed since a message arrived, and
//! where it came from.
//!
//! The message itself is kept as it was received; abandoning, deferring and dead-lettering only
//! add to its patch. A later value of a key replaces the earlier one in its place. What senders
//! of changes can put in is bounded by [`MAX_BYTES`]; decoding trusts no length.

use std::collections::BTreeMap;

use amqp::message::{Sections, descriptor, encode_map_section};
use amqp::{Value, decode, encode};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::api::additions::Additions;
use crate::api::death::Deaths;
use crate::api::outcome::DeadLettering;
use crate::message::route::Route;

/// Properties to add or overwrite: key and encoded AMQP value.
pub(crate) type Changes = Vec<(String, Bytes)>;

/// The most that a patch may take once encoded. Reasons set by the broker come on top.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// The properties that tell why a message is a dead letter.
const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";

/// Where the length of a key would say that something else follows; keys are shorter.
const ANNOTATIONS: u16 = u16::MAX - 2;
const DEATHS: u16 = u16::MAX - 1;
const SOURCE: u16 = u16::MAX;

/// All changes of one message, each key once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Patch {
    changes: Changes,
    annotations: Changes,
    deaths: Option<Deaths>,
    /// The entity whose dead letter it was when it was forwarded.
    source: Option<String>,
}

/// The changes do not fit in a patch.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct TooLarge;

impl Patch {
    /// `old` with `changes` merged in.
    pub(crate) fn merged(old: Option<&Self>, changes: Changes) -> Result<Self, TooLarge> {
        // Checked first so that merging is never about more than a patch may hold.
        check(encoded_len(&changes))?;
        let merged = Self::overlaid(old, changes);
        check(encoded_len(&merged.changes))?;
        Ok(merged)
    }

    /// `old` with message annotations merged in.
    pub(crate) fn annotated(old: Option<&Self>, annotations: Changes) -> Result<Self, TooLarge> {
        check(encoded_len(&annotations))?;
        let mut merged = old.cloned().unwrap_or_default();
        merged.annotations = overlaid(std::mem::take(&mut merged.annotations), annotations);
        check(encoded_len(&merged.annotations))?;
        Ok(merged)
    }

    /// `old` with the reason why the broker itself dead-letters a message.
    pub(crate) fn with_reason(old: Option<&Self>, reason: &str, description: &str) -> Self {
        let changes = vec![
            (REASON.to_owned(), encoded_text(reason)),
            (DESCRIPTION.to_owned(), encoded_text(description)),
        ];
        Self::overlaid(old, changes)
    }

    fn overlaid(old: Option<&Self>, changes: Changes) -> Self {
        let mut merged = old.cloned().unwrap_or_default();
        merged.changes = overlaid(std::mem::take(&mut merged.changes), changes);
        merged
    }

    /// What is left without the changes of some properties.
    pub(crate) fn without(mut self, keys: &[&str]) -> Self {
        self.changes.retain(|(key, _)| !keys.contains(&&**key));
        self
    }

    /// Names the entity out of whose dead-letter queue the message is forwarded.
    pub(crate) fn set_source(&mut self, source: &str) {
        self.source = Some(source.to_owned());
    }

    /// The entity out of whose dead-letter queue it was forwarded.
    pub(crate) fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Says by which route the message goes on.
    pub(crate) fn route(&mut self, route: &Route, hides_further_keys: bool) {
        let mut annotations = route.annotations();
        if hides_further_keys {
            annotations.push(Route::no_further_keys());
        }
        self.annotations = overlaid(std::mem::take(&mut self.annotations), annotations);
    }

    /// Why the message is a dead letter, in its own words.
    pub(crate) fn dead_letter_reason(&self) -> Option<String> {
        self.text(REASON)
    }

    /// All of these words.
    pub(crate) fn dead_lettering(&self) -> DeadLettering {
        DeadLettering {
            reason: self.text(REASON),
            description: self.text(DESCRIPTION),
        }
    }

    fn text(&self, property: &str) -> Option<String> {
        let (_, value) = self.changes.iter().find(|(key, _)| key == property)?;
        Some(decode::value(value).ok()?.as_text()?.to_owned())
    }

    /// What the message has died of before it came to its queue.
    pub(crate) fn deaths(&self) -> Option<&Deaths> {
        self.deaths.as_ref()
    }

    pub(crate) fn deaths_mut(&mut self) -> &mut Deaths {
        self.deaths.get_or_insert_default()
    }

    /// Whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What it takes once encoded.
    pub(crate) fn bytes(&self) -> usize {
        self.encode().len()
    }

    /// The message annotations as a receiver is told.
    pub(crate) fn annotations(&self) -> &Changes {
        &self.annotations
    }

    /// All that a receiver is told of it.
    pub(crate) fn additions(&self) -> Additions {
        Additions {
            changes: self.changes.clone(),
            annotations: self.annotations.clone(),
            deaths: self.deaths.clone(),
            dead_letter_source: self.source.clone(),
        }
    }

    /// `payload` with these changes made to its application properties.
    pub(crate) fn applied(&self, payload: &Bytes) -> Bytes {
        applied(&self.changes, payload)
    }

    /// As the store keeps it: for each change the key's length in 2 bytes, the key, the value's
    /// length in 4 bytes, the value. What else there is comes last, each as the value of a key that
    /// cannot be.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        put_changes(&mut out, &self.changes);
        if !self.annotations.is_empty() {
            let mut annotations = BytesMut::new();
            put_changes(&mut annotations, &self.annotations);
            put_part(&mut out, ANNOTATIONS, &annotations);
        }
        if let Some(deaths) = &self.deaths {
            let deaths = serde_json::to_vec(deaths).expect("deaths are plain data");
            put_part(&mut out, DEATHS, &deaths);
        }
        if let Some(source) = &self.source {
            put_part(&mut out, SOURCE, source.as_bytes());
        }
        out.freeze()
    }

    /// What [`encode`](Self::encode) wrote; `None` for anything else.
    pub(crate) fn decode(stored: &Bytes) -> Option<Self> {
        let mut rest = stored.clone();
        let mut patch = Self {
            changes: take_changes(&mut rest)?,
            ..Self::default()
        };
        let mut last = 0;
        while !rest.is_empty() {
            let part = rest.try_get_u16().ok()?;
            if part <= last {
                return None;
            }
            last = part;
            let mut value = take_value(&mut rest)?;
            match part {
                ANNOTATIONS => {
                    patch.annotations = take_changes(&mut value)?;
                    if patch.annotations.is_empty() || !value.is_empty() {
                        return None;
                    }
                }
                DEATHS => patch.deaths = serde_json::from_slice(&value).ok()?,
                SOURCE => patch.source = Some(std::str::from_utf8(&value).ok()?.to_owned()),
                _ => return None,
            }
        }
        Some(patch)
    }
}

/// `old` with `changes` merged in.
fn overlaid(old: Changes, changes: Changes) -> Changes {
    let mut merged: Changes = Vec::with_capacity(old.len() + changes.len());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (key, value) in old.into_iter().chain(changes) {
        match places.get(&key) {
            Some(&place) => merged[place].1 = value,
            None => {
                places.insert(key.clone(), merged.len());
                merged.push((key, value));
            }
        }
    }
    merged
}

fn put_changes(out: &mut BytesMut, changes: &Changes) {
    for (key, value) in changes {
        out.put_u16(u16::try_from(key.len()).expect("keys fit in a patch"));
        out.put_slice(key.as_bytes());
        put_value(out, value);
    }
}

fn put_part(out: &mut BytesMut, part: u16, value: &[u8]) {
    out.put_u16(part);
    put_value(out, value);
}

fn put_value(out: &mut BytesMut, value: &[u8]) {
    out.put_u32(u32::try_from(value.len()).expect("values fit in a patch"));
    out.put_slice(value);
}

/// The changes up to the end, or to a key that cannot be.
fn take_changes(rest: &mut Bytes) -> Option<Changes> {
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let key_len = rest.clone().try_get_u16().ok()?;
        if key_len >= ANNOTATIONS {
            break;
        }
        rest.advance(2);
        let key = take(rest, usize::from(key_len))?;
        let key = std::str::from_utf8(&key).ok()?.to_owned();
        // Their own allocation: a slice would pin what the store read.
        let value = Bytes::copy_from_slice(&take_value(rest)?);
        changes.push((key, value));
    }
    Some(changes)
}

fn take_value(rest: &mut Bytes) -> Option<Bytes> {
    let len = rest.try_get_u32().ok()?;
    take(rest, usize::try_from(len).ok()?)
}

fn take(rest: &mut Bytes, len: usize) -> Option<Bytes> {
    (len <= rest.len()).then(|| rest.split_to(len))
}

/// `payload` with changes made to its application properties.
pub(crate) fn applied(changes: &[(String, Bytes)], payload: &Bytes) -> Bytes {
    apply(changes, payload).unwrap_or_else(|| payload.clone())
}

fn apply(changes: &[(String, Bytes)], payload: &Bytes) -> Option<Bytes> {
    let sections = Sections::scan(payload).ok()?;
    let range = sections.application_properties;
    let mut properties = match payload.get(range.clone())? {
        [] => Vec::new(),
        section => match decode::value(&payload.slice_ref(section)).ok()? {
            Value::Described(described) => match described.1 {
                Value::Map(map) => map,
                _ => return None,
            },
            _ => return None,
        },
    };
    for (key, value) in changes {
        let value = decode::value(value).ok()?;
        let key = Value::String(key.clone());
        match properties.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => properties.push((key, value)),
        }
    }
    let mut out = BytesMut::with_capacity(payload.len() + encoded_len(changes));
    out.extend_from_slice(&payload[..range.start]);
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
    out.extend_from_slice(&payload[range.end..]);
    Some(out.freeze())
}

fn check(len: usize) -> Result<(), TooLarge> {
    if len <= MAX_BYTES {
        Ok(())
    } else {
        Err(TooLarge)
    }
}

fn encoded_len(changes: &[(String, Bytes)]) -> usize {
    changes.iter().fold(0_usize, |sum, (key, value)| {
        // A key that could not be written must not pass as one that fits.
        let key_len = if key.len() > usize::from(u16::MAX) {
            MAX_BYTES + 1
        } else {
            key.len()
        };
        sum.saturating_add(6 + key_len).saturating_add(value.len())
    })
}

fn encoded_text(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    encode::string(&mut out, text);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change(key: &str, value: &str) -> (String, Bytes) {
        (key.to_owned(), encoded_text(value))
    }

    fn change_strategy() -> impl Strategy<Value = (String, Bytes)> {
        let value = proptest::collection::vec(any::<u8>(), 0..20);
        ("[a-d]{0,2}", value).prop_map(|(key, value)| (key, value.into()))
    }

    #[test]
    fn a_later_value_replaces_the_earlier_in_its_place() {
        let old = Patch::merged(None, vec![change("a", "1"), change("b", "2")]).unwrap();
        let new = Patch::merged(Some(&old), vec![change("c", "3"), change("a", "4")]).unwrap();
        let expected = vec![change("a", "4"), change("b", "2"), change("c", "3")];
        assert_eq!(new.changes, expected);
    }

    #[test]
    fn changes_beyond_the_bound_are_refused() {
        let big = vec![("k".to_owned(), Bytes::from(vec![0; MAX_BYTES]))];
        assert_eq!(Patch::merged(None, big), Err(TooLarge));
        let half = |key: &str| vec![(key.to_owned(), Bytes::from(vec![0; MAX_BYTES / 2]))];
        let old = Patch::merged(None, half("a")).unwrap();
        assert_eq!(Patch::merged(Some(&old), half("b")), Err(TooLarge));
        assert!(Patch::merged(Some(&old), half("a")).is_ok());
        let long_key = vec![("k".repeat(70_000), Bytes::new())];
        assert_eq!(Patch::merged(None, long_key), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            changes in proptest::collection::vec(change_strategy(), 0..8),
            annotations in proptest::collection::vec(change_strategy(), 0..8),
            source in proptest::option::of("[a-z]{1,8}"),
            failed in proptest::option::of(any::<u32>()),
        ) {
            let mut patch = Patch::merged(None, changes).unwrap();
            patch = Patch::annotated(Some(&patch), annotations).unwrap();
            patch.source = source;
            patch.deaths = failed.map(|failed| Deaths { list: Vec::new(), failed });
            prop_assert_eq!(Patch::decode(&patch.encode()), Some(patch));
        }

        #[test]
        fn decoding_anything_ends(stored in proptest::collection::vec(any::<u8>(), 0..200)) {
            let stored = Bytes::from(stored);
            if let Some(patch) = Patch::decode(&stored) {
                prop_assert_eq!(patch.encode(), stored);
            }
        }
    }
}
