//! User properties: the application properties of a message, found by name.
//!
//! Of equal names the first counts. A few properties are searched in order. Many are sorted by name
//! without case, so that an expression with many names does not search all of them for each name.
//! Both ways find the same.

use std::cell::OnceCell;
use std::cmp::Ordering;

use amqp::items::{self, Items};

use crate::expression::fields::{folded, same_name};

/// More than this are ordered.
const MAX_UNSORTED: usize = 16;

/// Names and encoded values of a message's application properties.
pub(crate) struct UserProperties<'a> {
    entries: Vec<(&'a str, &'a [u8])>,
    /// Whether all names are ASCII, as they nearly always are.
    is_ascii: bool,
    /// Places of the entries, each name once, by name without case and then with it.
    order: OnceCell<Vec<usize>>,
}

impl<'a> UserProperties<'a> {
    /// Reads an encoded section, which may be empty.
    pub(crate) fn read(section: &'a [u8]) -> Self {
        let mut items = Items::of(section).unwrap_or(Items::NONE);
        let mut entries = Vec::new();
        while let Ok(Some((key, value))) = items.next_entry() {
            if let Some(name) = items::text(key) {
                if entries.is_empty() {
                    entries.reserve(MAX_UNSORTED / 2);
                }
                entries.push((name, value));
            }
        }
        Self {
            is_ascii: entries.iter().all(|(name, _)| name.is_ascii()),
            entries,
            order: OnceCell::new(),
        }
    }

    pub(crate) fn entries(&self) -> &[(&'a str, &'a [u8])] {
        &self.entries
    }

    /// The cost of looking up a name.
    pub(crate) fn cost(&self) -> usize {
        self.entries.len().min(MAX_UNSORTED)
    }

    /// The encoded value of the property called just `name`.
    pub(crate) fn exact(&self, name: &str) -> Option<&'a [u8]> {
        if self.entries.len() > MAX_UNSORTED {
            return self.ordered(name, true);
        }
        let mut found = self.entries.iter().filter(|(known, _)| *known == name);
        found.next().map(|(_, value)| *value)
    }

    /// The encoded value of the property called `name`; if there is none, of the one that is
    /// called so in another case, and of several of these the one whose name sorts first.
    pub(crate) fn find(&self, name: &str) -> Option<&'a [u8]> {
        if self.entries.len() > MAX_UNSORTED {
            return self.ordered(name, false);
        }
        let is_ascii = self.is_ascii && name.is_ascii();
        let is_same = |known: &str| match is_ascii {
            true => known.eq_ignore_ascii_case(name),
            false => same_name(known, name),
        };
        let mut best: Option<&(&str, &[u8])> = None;
        for entry in &self.entries {
            if entry.0 == name {
                return Some(entry.1);
            }
            if is_same(entry.0) && best.is_none_or(|best| entry.0 < best.0) {
                best = Some(entry);
            }
        }
        best.map(|(_, value)| *value)
    }

    fn ordered(&self, name: &str, exactly: bool) -> Option<&'a [u8]> {
        let order = self.order.get_or_init(|| self.order());
        let name_at = |place: &usize| self.entries[*place].0;
        let found = order.binary_search_by(|place| by_name(name_at(place), name));
        if let Ok(at) = found {
            return Some(self.entries[order[at]].1);
        }
        let first = order.partition_point(|place| folded(name_at(place)).lt(folded(name)));
        let place = order.get(first).filter(|_| !exactly)?;
        same_name(name_at(place), name).then(|| self.entries[*place].1)
    }

    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        let name = |place: &usize| self.entries[*place].0;
        // Stable, so the first of equal names stays the first.
        order.sort_by(|left, right| by_name(name(left), name(right)));
        order.dedup_by(|next, kept| name(next) == name(kept));
        order
    }
}

fn by_name(left: &str, right: &str) -> Ordering {
    folded(left)
        .cmp(folded(right))
        .then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use amqp::message::{descriptor, encode_map_section};
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn many_are_found_as_few_are(
            names in proptest::collection::vec("[aAbBİiſsK]{1,2}", 0..12),
            wanted in "[aAbBİiſsKk]{1,2}",
        ) {
            let named = |name: &String, value: usize| (amqp::Value::from(name.as_str()), amqp::Value::Int(value as i32));
            let few: Vec<_> = names.iter().enumerate().map(|(at, name)| named(name, at)).collect();
            let others = (0..MAX_UNSORTED).map(|at| named(&format!("other {at}"), at));
            let many: Vec<_> = few.iter().cloned().chain(others).collect();
            let encoded = |map: &[(amqp::Value, amqp::Value)]| {
                let mut out = BytesMut::new();
                encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, map);
                out.freeze()
            };
            let (few, many) = (encoded(&few), encoded(&many));
            let (few, many) = (UserProperties::read(&few), UserProperties::read(&many));
            prop_assert_eq!(few.find(&wanted), many.find(&wanted));
            prop_assert_eq!(few.exact(&wanted), many.exact(&wanted));
        }
    }
}
