//! Audit: the rules that must hold in every image of a store, checked by a full scan.
//!
//! Every row's body exists, every body has a row or as many as share it, every delivery count and
//! patch belongs to a message, and every head matches the messages. A broken rule means lost data,
//! so each simulated crash and each random test ends with an audit.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{EntityId, Part, SequenceNumber};
use crate::image::{Image, MessageKey, NumberKey};
use crate::record::{BodyPointer, PartHead};

/// A broken rule of the storage contract.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum Finding {
    #[error("row {row:?} points to body {pointer:?}, which is not there")]
    Dangling {
        row: MessageKey,
        pointer: BodyPointer,
    },
    #[error("body {0:?} has no row that points to it")]
    OrphanBody(NumberKey),
    #[error(
        "body {body:?} has {rows} rows that point to it, and its count of copies says {copies:?}"
    )]
    Misshared {
        body: NumberKey,
        rows: u32,
        copies: Option<u32>,
    },
    #[error("the delivery count of {0:?} has no message")]
    OrphanDeliveryCount(NumberKey),
    #[error("the patch of {0:?} has no message")]
    OrphanPatch(NumberKey),
    #[error("{0:?} is in more than one part")]
    InTwoParts(NumberKey),
    #[error("row {0:?} is at or above its entity's next number")]
    NumberNotGivenOut(MessageKey),
    #[error(
        "{entity:?} {part:?}: the head says {head:?}, a recount {count} messages of {bytes} bytes"
    )]
    Miscounted {
        entity: EntityId,
        part: Part,
        head: PartHead,
        count: u64,
        bytes: u64,
    },
    #[error("row {0:?} is below its part's resume number and not among the stragglers")]
    Unreachable(MessageKey),
}

impl Image {
    /// Everything that is wrong, in the order of the keys; empty when all is well.
    #[must_use]
    pub fn audit(&self) -> Vec<Finding> {
        self.audit_with(|_| false)
    }

    /// The same of a store in which entities were [copied](crate::Write::Copy): `borrows` tells of
    /// which rows the body belongs to another row.
    #[must_use]
    pub fn audit_with(&self, borrows: impl Fn(&MessageKey) -> bool) -> Vec<Finding> {
        let mut findings = self.audit_bodies_with(borrows);
        findings.extend(self.audit_numbers());
        findings.extend(self.audit_heads());
        findings
    }

    /// Pointers without bodies, bodies without pointers, and bodies that more or fewer rows share
    /// than their counts say.
    #[must_use]
    pub fn audit_bodies(&self) -> Vec<Finding> {
        self.audit_bodies_with(|_| false)
    }

    fn audit_bodies_with(&self, borrows: impl Fn(&MessageKey) -> bool) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut used: BTreeMap<NumberKey, u32> = BTreeMap::new();
        for (key, row) in &self.messages {
            let body = (row.body.home, row.body.number);
            if !borrows(key) {
                *used.entry(body).or_default() += 1;
            }
            if !self.bodies.contains_key(&body) {
                findings.push(Finding::Dangling {
                    row: *key,
                    pointer: row.body,
                });
            }
        }
        let orphans = self.bodies.keys().filter(|key| !used.contains_key(key));
        findings.extend(orphans.map(|key| Finding::OrphanBody(*key)));
        findings.extend(self.audit_shares(&used));
        findings
    }

    /// Counts that disagree with the number of rows per body, and bodies that should have one.
    fn audit_shares(&self, used: &BTreeMap<NumberKey, u32>) -> Vec<Finding> {
        let counted = self.shares.iter().map(|(body, copies)| {
            let rows = used.get(body).copied().unwrap_or(0);
            (*body, rows, Some(*copies))
        });
        let several = used.iter().filter(|(_, rows)| **rows > 1);
        let uncounted = several
            .filter(|(body, _)| !self.shares.contains_key(body))
            .map(|(body, rows)| (*body, *rows, None));
        counted
            .filter(|(_, rows, copies)| Some(*rows) != *copies)
            .chain(uncounted)
            .map(|(body, rows, copies)| Finding::Misshared { body, rows, copies })
            .collect()
    }

    /// Delivery counts and patches without messages, messages in two parts.
    #[must_use]
    pub fn audit_numbers(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut numbers = BTreeSet::new();
        for &(entity, _, number) in self.messages.keys() {
            if !numbers.insert((entity, number)) {
                findings.push(Finding::InTwoParts((entity, number)));
            }
        }
        let counts = self
            .delivery_counts
            .keys()
            .filter(|key| !numbers.contains(key));
        findings.extend(counts.map(|key| Finding::OrphanDeliveryCount(*key)));
        let patches = self.patches.keys().filter(|key| !numbers.contains(key));
        findings.extend(patches.map(|key| Finding::OrphanPatch(*key)));
        findings
    }

    /// Heads that disagree with a recount. The bytes of a part are the sizes of its rows.
    #[must_use]
    pub fn audit_heads(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut recount: BTreeMap<(EntityId, Part), (u64, u64)> = BTreeMap::new();
        for (key, row) in &self.messages {
            let (count, bytes) = recount.entry((key.0, key.1)).or_default();
            *count += 1;
            *bytes += u64::from(row.size);
            findings.extend(self.audit_place(*key));
        }
        for (&entity, head) in &self.heads {
            for part in Part::ALL {
                let (count, bytes) = recount.remove(&(entity, part)).unwrap_or_default();
                let head = head.part(part);
                if (head.count, head.bytes) != (count, bytes) {
                    let head = head.clone();
                    findings.push(Finding::Miscounted {
                        entity,
                        part,
                        head,
                        count,
                        bytes,
                    });
                }
            }
        }
        findings
    }

    /// Whether a restart would find this row.
    fn audit_place(&self, key: MessageKey) -> Option<Finding> {
        let (entity, part, number) = key;
        let Some(head) = self.heads.get(&entity) else {
            return Some(Finding::NumberNotGivenOut(key));
        };
        if number.arrival() >= head.next_number {
            return Some(Finding::NumberNotGivenOut(key));
        }
        let reachable = |head: &PartHead, number: SequenceNumber| {
            number.0 >= head.resume || head.stragglers.contains(&number)
        };
        (!reachable(head.part(part), number)).then_some(Finding::Unreachable(key))
    }
}
