//! Fan-out: what becomes of messages that leave a topic, and by which names its copies go. (I13)
//!
//! A copy has its message's bytes, or nearly, so it is told by where it stands: every number of
//! every entity has a name, which a message takes along when it goes on. Only a topic writes to
//! its subscriptions, so whatever arrives there is a new copy of what has just left the topic.

use store::{EntityId, Index, Part, SequenceNumber};

use super::{Books, Page, Place};
use crate::message::{self, MessageId};
use crate::rule::Rule;

/// Each subscription of a topic, and its rules, if they are known by their names.
pub type Offers = Vec<(EntityId, Vec<Option<Rule>>)>;

/// A message that left a topic, with the subscriptions to which it was offered.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct FanOut {
    pub message: MessageId,
    pub topic: EntityId,
    pub offered: Offers,
    /// What there was when the topic accepted it, if there was no crash since: that decides if the
    /// broker still knows.
    pub offered_first: Option<Offers>,
    /// What arrived, in the order of its arrival.
    pub copies: Vec<(MessageId, Place)>,
}

impl Books {
    /// Which message it is that was sent as `root` and is put there, and of what it is a copy if
    /// it is a new one.
    pub(super) fn name(
        &mut self,
        to: Place,
        root: MessageId,
        page: &mut Page,
    ) -> (MessageId, Option<MessageId>) {
        let key = (to.entity, to.number);
        if let Some(known) = self.names.get(&key).copied()
            && message::root_of(known) == root
        {
            return (known, None);
        }
        let (id, parent) = match self.kind(to.entity).topic {
            Some(topic) => match page.last_left(root, Some(topic)) {
                Some(parent) => (self.name_copy(root), Some(parent)),
                None => (root, None),
            },
            None => match page.last_left(root, None) {
                Some(left) => (left, None),
                None if self.published.contains(&root) => (self.name_copy(root), Some(root)),
                None => (root, None),
            },
        };
        self.names.insert(key, id);
        if to.part == Part::Active && self.kind(to.entity).is_topic {
            let offers = self.offers(to.entity);
            self.offered_first.insert(id, offers);
        }
        if let Some(parent) = parent {
            let mut fan_outs = page.changes.fan_outs.iter_mut().rev();
            if let Some(fan_out) = fan_outs.find(|fan_out| fan_out.message == parent) {
                fan_out.copies.push((id, to));
            }
        }
        (id, parent)
    }

    /// A client publishes that to a router: each queue that it comes to has a copy.
    pub fn note_published(&mut self, root: MessageId) {
        self.published.insert(root);
    }

    fn name_copy(&mut self, root: MessageId) -> MessageId {
        let count = self.copies.entry(root).or_default();
        *count += 1;
        message::name_copy(root, *count)
    }

    /// A message leaves a place; if that is a topic it is offered to all of its subscriptions.
    pub(super) fn note_left(&mut self, id: MessageId, from: Place, page: &mut Page) {
        page.order.push((id, from.entity));
        if from.part == Part::Active && self.kind(from.entity).is_topic {
            let fan_out = FanOut {
                message: id,
                topic: from.entity,
                offered: self.offers(from.entity),
                offered_first: self.offered_first.remove(&id),
                copies: Vec::new(),
            };
            page.changes.fan_outs.push(fan_out);
        }
    }

    fn offers(&self, topic: EntityId) -> Offers {
        let subscriptions = self.subscriptions(topic);
        let offers = subscriptions.map(|id| (id, self.rules_of(id).collect()));
        offers.collect()
    }

    fn subscriptions(&self, topic: EntityId) -> impl Iterator<Item = EntityId> {
        let its = move |id: &&EntityId| self.kind(**id).topic == Some(topic);
        self.live.iter().filter(its).copied()
    }

    fn rules_of(&self, subscription: EntityId) -> impl Iterator<Item = Option<Rule>> {
        let first = store::EntryKey::new(Vec::new(), SequenceNumber(0));
        let entries = self.entries.range((subscription, Index::Rule, first)..);
        let its = entries
            .take_while(move |((of, index, _), _)| (*of, *index) == (subscription, Index::Rule));
        its.map(|((_, _, key), _)| Rule::named(std::str::from_utf8(&key.group).ok()?))
    }

    /// What the rules of a subscription are called.
    #[must_use]
    pub fn rules(&self, subscription: EntityId) -> Vec<String> {
        let rules = self.rules_of(subscription).flatten();
        rules.map(|rule| rule.name()).collect()
    }

    /// Whether a subscription has a rule.
    #[must_use]
    pub fn has_rule(&self, subscription: EntityId, name: &str) -> bool {
        let wanted = Rule::named(name);
        wanted.is_some() && self.rules_of(subscription).any(|rule| rule == wanted)
    }

    /// Which message has, or had, that number.
    #[must_use]
    pub fn named(&self, entity: EntityId, number: SequenceNumber) -> Option<MessageId> {
        self.names.get(&(entity, number)).copied()
    }
}

impl Page {
    /// What left last (that topic, if one is meant) of all that was sent as `root` and has not
    /// been put anywhere.
    fn last_left(&self, root: MessageId, topic: Option<EntityId>) -> Option<MessageId> {
        let mut left = self.order.iter().rev();
        let found = left.find(|(id, from)| {
            let its = topic.is_none_or(|topic| topic == *from);
            its && message::root_of(*id) == root && self.left.contains_key(id)
        });
        found.map(|(id, _)| *id)
    }
}
