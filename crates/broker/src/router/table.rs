//! Table: the bindings of one router, arranged so that those that match a message are found fast.
//!
//! A direct router looks a key up, a topic router walks its patterns, a fanout router takes all.
//! Only a headers router compares a message with each of its bindings. Targets may be found more
//! than once; the caller takes each once.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::binding::Binding;
use super::headers::{HeaderMatch, Headers};
use super::pattern::Patterns;
use super::steps::Steps;
use super::target::{Target, Targets};
use crate::api::publication::PublishError;
use crate::api::router::RouterKind;

/// See the head of this file.
#[derive(Debug)]
pub(super) enum Table {
    Direct(FxHashMap<String, Targets>),
    Fanout(Targets),
    Topic(Patterns),
    /// By the number of the binding.
    Headers(BTreeMap<u64, (HeaderMatch, Target)>),
}

impl Table {
    pub(super) fn new(kind: RouterKind) -> Self {
        match kind {
            RouterKind::Direct => Self::Direct(FxHashMap::default()),
            RouterKind::Fanout => Self::Fanout(Targets::default()),
            RouterKind::Topic => Self::Topic(Patterns::default()),
            RouterKind::Headers => Self::Headers(BTreeMap::new()),
        }
    }

    pub(super) fn add(&mut self, number: u64, binding: &Binding) {
        let target = binding.target;
        match self {
            Self::Direct(keys) => keys.entry(binding.key.clone()).or_default().add(target),
            Self::Fanout(targets) => targets.add(target),
            Self::Topic(patterns) => patterns.add(&binding.key, target),
            Self::Headers(matches) => {
                let compiled = HeaderMatch::compile(&binding.arguments);
                let compiled = compiled.expect("x-match was checked when the binding was made");
                matches.insert(number, (compiled, target));
            }
        }
    }

    pub(super) fn remove(&mut self, number: u64, binding: &Binding) {
        let target = binding.target;
        match self {
            Self::Direct(keys) => {
                let targets = keys.get_mut(&binding.key);
                let targets = targets.expect("a binding that goes was added");
                targets.remove(target);
                if targets.is_empty() {
                    keys.remove(&binding.key);
                }
            }
            Self::Fanout(targets) => targets.remove(target),
            Self::Topic(patterns) => patterns.remove(&binding.key, target),
            Self::Headers(matches) => drop(matches.remove(&number)),
        }
    }

    /// Adds the targets of the bindings that match.
    pub(super) fn collect(
        &self,
        keys: &[String],
        headers: &mut Headers<'_>,
        steps: &mut Steps,
        found: &mut Vec<Target>,
    ) -> Result<(), PublishError> {
        match self {
            Self::Direct(table) => {
                for key in keys {
                    steps.take(1)?;
                    if let Some(targets) = table.get(key) {
                        targets.collect(steps, found)?;
                    }
                }
            }
            Self::Fanout(targets) => targets.collect(steps, found)?,
            Self::Topic(patterns) => {
                for key in keys {
                    patterns.collect(key, steps, found)?;
                }
            }
            Self::Headers(matches) => {
                for (compiled, target) in matches.values() {
                    if compiled.matches(headers, steps)? {
                        found.push(*target);
                    }
                }
            }
        }
        Ok(())
    }
}
