//! Pattern: the binding keys of a topic router, word by word.
//!
//! A key is words with dots between; the empty key has no word. In a pattern `*` is exactly one
//! word and `#` is any number of words, none included. (docs/spec/rabbitmq.md#8)

use std::collections::BTreeMap;

use super::steps::Steps;
use super::target::{Target, Targets};
use crate::api::publication::PublishError;

/// The most `#` in one pattern. (docs/spec/rabbitmq.md#6.1)
const MAX_HASHES: usize = 2;

/// A node of the tree of patterns: what follows the words that lead to it.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// By their next word; `*` and `#` stand for themselves.
    next: BTreeMap<String, Self>,
    /// Of the patterns that end here.
    ends: Targets,
}

/// Whether a topic router can be bound by this key.
pub(super) fn has_too_many_hashes(key: &str) -> bool {
    words(key).filter(|word| *word == "#").count() > MAX_HASHES
}

fn words(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(|_| !key.is_empty())
}

impl Patterns {
    pub(super) fn add(&mut self, key: &str, target: Target) {
        let mut node = self;
        for word in words(key) {
            node = node.next.entry(word.to_owned()).or_default();
        }
        node.ends.add(target);
    }

    pub(super) fn remove(&mut self, key: &str, target: Target) {
        let words: Vec<&str> = words(key).collect();
        self.remove_below(&words, target);
    }

    fn remove_below(&mut self, words: &[&str], target: Target) {
        let Some((word, rest)) = words.split_first() else {
            return self.ends.remove(target);
        };
        let node = self.next.get_mut(*word);
        let node = node.expect("a binding that goes was added");
        node.remove_below(rest, target);
        if node.ends.is_empty() && node.next.is_empty() {
            self.next.remove(*word);
        }
    }

    /// Adds the targets of the patterns that match a routing key.
    pub(super) fn collect(
        &self,
        key: &str,
        steps: &mut Steps,
        found: &mut Vec<Target>,
    ) -> Result<(), PublishError> {
        let words: Vec<&str> = words(key).collect();
        steps.take(words.len())?;
        self.collect_below(&words, steps, found)
    }

    fn collect_below(
        &self,
        words: &[&str],
        steps: &mut Steps,
        found: &mut Vec<Target>,
    ) -> Result<(), PublishError> {
        steps.take(1)?;
        match words.split_first() {
            None => self.ends.collect(steps, found)?,
            Some((word, rest)) => {
                // A word of a message that is `*` or `#` is a word like any other.
                let literal = self.next.get(*word).filter(|_| !matches!(*word, "*" | "#"));
                for node in [literal, self.next.get("*")].into_iter().flatten() {
                    node.collect_below(rest, steps, found)?;
                }
            }
        }
        if let Some(node) = self.next.get("#") {
            for skipped in 0..=words.len() {
                node.collect_below(&words[skipped..], steps, found)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use store::EntityId;

    use super::*;

    const TARGET: Target = Target::Entity(EntityId(1));

    fn matches(pattern: &str, key: &str) -> bool {
        let mut patterns = Patterns::default();
        patterns.add(pattern, TARGET);
        let mut found = Vec::new();
        let result = patterns.collect(key, &mut Steps::new(), &mut found);
        assert_eq!(result, Ok(()));
        patterns.remove(pattern, TARGET);
        assert!(patterns.next.is_empty() && patterns.ends.is_empty());
        !found.is_empty()
    }

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number() {
        for (pattern, matching, others) in [
            ("a.b", &["a.b"][..], &["a", "a.b.c", "A.b", "", "a.b."][..]),
            ("*", &["a", "*", "#"], &["", "a.b", "."]),
            ("#", &["", "a", "a.b.c", "."], &[]),
            ("a.#", &["a", "a.b", "a.b.c"], &["", "b", "ab"]),
            ("#.a", &["a", "b.a", "b.c.a"], &["", "a.b"]),
            ("*.#.c", &["a.c", "a.b.c", "a.b.b.c"], &["c", "a.b"]),
            ("#.b.#", &["b", "a.b", "b.a", "a.b.c.b"], &["", "a.c"]),
            ("a..b", &["a..b"], &["a.b", "a.c.b"]),
            ("a.*.b", &["a..b", "a.c.b"], &["a.b"]),
            ("", &[""], &["a", "."]),
            ("a*.b#", &["a*.b#"], &["ab.b", "a.b"]),
        ] {
            for key in matching {
                assert!(matches(pattern, key), "{pattern} {key}");
            }
            for key in others {
                assert!(!matches(pattern, key), "{pattern} {key}");
            }
        }
    }

    #[test]
    fn a_walk_that_takes_too_long_ends() {
        let mut patterns = Patterns::default();
        for word in 0..300 {
            patterns.add(&format!("#.x.#.{word}"), TARGET);
        }
        let key = "x.".repeat(2_000);
        let result = patterns.collect(&key, &mut Steps::new(), &mut Vec::new());
        assert_eq!(result, Err(PublishError::TooComplex));
    }

    #[test]
    fn a_pattern_has_two_hashes_at_most() {
        assert!(!has_too_many_hashes("#.a.#.##.a#"));
        assert!(has_too_many_hashes("#.#.#"));
    }
}
