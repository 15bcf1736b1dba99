//! Bindings: where the messages of one router go.
//!
//! Each binding is a row of the store under a number of its own. Invariant: the table knows exactly
//! the bindings that there are, and no two have the same target, key and arguments.

use std::collections::BTreeMap;

use super::binding::{Binding, Identity};
use super::table::Table;
use crate::api::router::RouterKind;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Bindings {
    rows: BTreeMap<u64, Binding>,
    numbers: BTreeMap<Identity, u64>,
    pub(super) table: Table,
}

impl Bindings {
    pub(super) fn new(kind: RouterKind) -> Self {
        Self {
            rows: BTreeMap::new(),
            numbers: BTreeMap::new(),
            table: Table::new(kind),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// In the order in which they were made.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Binding)> {
        self.rows.iter().map(|(number, binding)| (*number, binding))
    }

    /// The number of an equal binding.
    pub(super) fn find(&self, binding: &Binding) -> Option<u64> {
        self.numbers.get(&binding.identity()).copied()
    }

    /// The number of the next binding.
    pub(super) fn next_number(&self) -> u64 {
        self.rows.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    /// Adds a binding that is not there.
    pub(super) fn add(&mut self, number: u64, binding: Binding) {
        self.table.add(number, &binding);
        self.numbers.insert(binding.identity(), number);
        self.rows.insert(number, binding);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Binding> {
        let binding = self.rows.remove(&number)?;
        self.numbers.remove(&binding.identity());
        self.table.remove(number, &binding);
        Some(binding)
    }
}
