//! Model: what the entities, the policies and the messages of the governed namespace must be.
//!
//! An entity or a message is sure once the broker has said so, and until something may have ended
//! it. What is not sure may be there or not. How long a message may live at least is the least that
//! policies have said since it was sent, and how long an entity, since it was made.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use broker::{Browsed, EntityKind, Mono, Policy, PolicyLayer, QueueInfo, Wall};
use bytes::Bytes;
use serde_json::Value;
use store::EntityId;

use crate::message::MessageId;
use crate::violation::Violation;

/// The queue that expires.
pub(super) const LEASED: &str = "leased";
/// The queue that stays unless a policy ends it.
pub(super) const QUEUE: &str = "queue";
pub(super) const TOPIC: &str = "prices";
/// The queue that makes dead letters of what it refuses, and how many messages it takes.
pub(super) const REFUSING: &str = "refusing";
pub(super) const LENGTH: u64 = 3;
/// How long the expiring queue lasts without a receiver, in milliseconds.
pub(super) const LEASE: u64 = 15_000;

pub(super) type PolicyKey = (PolicyLayer, String);

/// What the user knows to be there.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub places: BTreeMap<String, Place>,
    /// Those whose end may not be durable.
    ended: BTreeMap<String, Place>,
    policies: BTreeMap<PolicyKey, Policy>,
    payloads: BTreeMap<MessageId, Bytes>,
    /// Completions that the user has been told of.
    completions: u64,
    wall: u64,
    max_wall: u64,
    mono: u64,
    /// When an entity was last asked for.
    asked: u64,
}

/// An entity.
#[derive(Debug)]
pub(super) struct Place {
    /// As it was last seen.
    id: Option<EntityId>,
    pub kind: EntityKind,
    pub is_sure: bool,
    /// Of a subscription that consumers share.
    pub is_shared: bool,
    /// It goes with a connection or with its consumers.
    pub passes: bool,
    /// A crash has taken what it goes with.
    pub is_going: bool,
    own_lease: u64,
    lease: u64,
    made: u64,
    messages: BTreeMap<MessageId, Sent>,
}

impl Place {
    /// Whether it is there for certain.
    pub(super) fn stays(&self) -> bool {
        self.is_sure && !self.is_going
    }

    /// It is not there any more as it was at `now`: whether it has expired.
    fn passed(&self, path: &str, now: u64) -> Result<bool, Violation> {
        let may_expire = now >= self.made.saturating_add(self.lease);
        if self.stays() && !may_expire {
            let what = format!("{path} is gone without a request for that");
            return Err(Violation::new("I1", what));
        }
        Ok(self.stays())
    }

    /// Another entity has its name.
    fn renew(&mut self, made: u64, lease: u64) {
        (self.made, self.lease) = (made, lease);
        let all = self.messages.values_mut();
        all.for_each(|sent| sent.is_sure = false);
    }
}

/// A message of an entity.
#[derive(Debug)]
struct Sent {
    is_sure: bool,
    may_be_completed: bool,
    /// It was refused and became a dead letter.
    is_refused: bool,
    /// As which of all completions that the user has been told of.
    completed: Option<u64>,
    since: u64,
    /// Milliseconds.
    life: u64,
}

/// What policies say of an entity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rules {
    life: u64,
    lease: u64,
    length: Option<u64>,
}

impl Model {
    /// What goes with a connection is going, and what had ended may be back.
    pub(super) fn crashed(&mut self) {
        for (path, mut place) in std::mem::take(&mut self.ended) {
            place.is_sure = false;
            place
                .messages
                .values_mut()
                .for_each(|sent| sent.is_sure = false);
            match self.places.entry(path) {
                Entry::Vacant(entry) => drop(entry.insert(place)),
                Entry::Occupied(mut entry) => entry.get_mut().messages.append(&mut place.messages),
            }
        }
        for place in self.places.values_mut() {
            place.is_going |= place.passes;
        }
    }

    /// An entity has ended, which may not be durable yet.
    pub(super) fn end(&mut self, path: &str) {
        if let Some(mut place) = self.places.remove(path) {
            let before = self.ended.remove(path);
            place
                .messages
                .extend(before.into_iter().flat_map(|it| it.messages));
            self.ended.insert(path.to_owned(), place);
        }
    }

    /// A request has changed something durably, so all that ended before it has ended.
    pub(super) fn note_durable(&mut self) {
        self.ended.clear();
    }

    pub(super) fn observe_clocks(&mut self, wall: Wall, mono: Mono) {
        if wall.0 < self.wall {
            // What is under way may be stored by the earlier clock.
            let all = self.places.values_mut();
            let all = all.flat_map(|place| place.messages.values_mut());
            all.for_each(|sent| sent.since = sent.since.min(wall.0));
        }
        self.wall = wall.0;
        self.max_wall = self.max_wall.max(wall.0);
        self.mono = mono.0;
    }

    /// An entity is asked for.
    pub(super) fn ask_for(&mut self, path: &str, kind: EntityKind, is_shared: bool, passes: bool) {
        let own_lease = if path == LEASED { LEASE } else { u64::MAX };
        let lease = self.rules(path, kind).lease.min(own_lease);
        let made = self.mono;
        self.asked = made;
        self.places.entry(path.to_owned()).or_insert(Place {
            id: None,
            kind,
            is_sure: false,
            is_shared,
            passes,
            is_going: false,
            own_lease,
            lease,
            made,
            messages: BTreeMap::new(),
        });
    }

    /// An entity that was asked for is there, or what is not sure is not.
    pub(super) fn made(&mut self, path: &str, is_made: bool) {
        if let Some(place) = self.places.get_mut(path) {
            place.is_sure |= is_made;
            if !place.is_sure {
                self.places.remove(path);
            }
        }
    }

    pub(super) fn made_all(&mut self, are_made: bool) {
        for path in [QUEUE, LEASED, REFUSING, TOPIC] {
            self.made(path, are_made);
        }
    }

    pub(super) fn policies_of(&self, layer: PolicyLayer) -> Vec<Policy> {
        let all = self.policies.values();
        all.filter(|policy| policy.layer == layer)
            .cloned()
            .collect()
    }

    pub(super) fn names_of_policies(&self) -> Vec<PolicyKey> {
        self.policies.keys().cloned().collect()
    }

    /// A policy is there or gone.
    pub(super) fn set_policy(&mut self, (layer, name): PolicyKey, policy: Option<Policy>) {
        let key = (layer, name);
        match policy {
            Some(policy) => drop(self.policies.insert(key, policy)),
            None => drop(self.policies.remove(&key)),
        }
    }

    /// A policy is asked for, or its end is: what that ends may go.
    pub(super) fn ask_policy(&mut self, (layer, name): &PolicyKey, policy: Option<&Policy>) {
        let key = (*layer, name.clone());
        let before = self.policies.get(&key).cloned();
        self.set_policy(key.clone(), policy.cloned());
        let of_topic = self.rules(TOPIC, EntityKind::Topic).life;
        let paths: Vec<_> = self.places.keys().cloned().collect();
        for path in paths {
            let kind = self.places[&path].kind;
            let rules = self.rules(&path, kind);
            let life = match kind {
                EntityKind::Subscription => rules.life.min(of_topic),
                _ => rules.life,
            };
            if let Some(place) = self.places.get_mut(&path) {
                place.lease = place.lease.min(rules.lease);
                let all = place.messages.values_mut();
                let living = all.filter(|sent| !sent.is_refused);
                living.for_each(|sent| sent.life = sent.life.min(life));
            }
        }
        self.set_policy(key, before);
    }

    /// What the policies that are there say of an entity: of each layer the one of the highest
    /// priority, then of the smallest name.
    fn rules(&self, path: &str, kind: EntityKind) -> Rules {
        let mut rules = Rules {
            life: u64::MAX,
            lease: u64::MAX,
            length: None,
        };
        for layer in [PolicyLayer::User, PolicyLayer::Operator] {
            let all = self.policies.values();
            let fitting = all.filter(|it| it.layer == layer && fits(it, path, kind));
            let chosen = fitting.reduce(|chosen, it| {
                let is_higher = it.priority.as_u64() > chosen.priority.as_u64();
                if is_higher { it } else { chosen }
            });
            let said = |key: &str| chosen.and_then(|it| it.definition.get(key)?.as_u64());
            rules.life = rules.life.min(said("message-ttl").unwrap_or(u64::MAX));
            rules.lease = rules.lease.min(said("expires").unwrap_or(u64::MAX));
            rules.length = rules.length.into_iter().chain(said("max-length")).min();
        }
        rules
    }

    /// The settings in force of an entity are those of its policies.
    pub(super) fn check_rules(&self, info: &QueueInfo) -> Result<(), Violation> {
        let in_force = info.in_force();
        let found = Rules {
            life: in_force.default_message_time_to_live,
            lease: in_force.expires,
            length: in_force.max_length,
        };
        let mut expected = self.rules(&info.path, info.kind);
        let own_lease = self.places.get(&info.path).map(|place| place.own_lease);
        expected.lease = expected.lease.min(own_lease.unwrap_or(u64::MAX));
        expected.length = own_length(&info.path)
            .into_iter()
            .chain(expected.length)
            .min();
        if found == expected {
            return Ok(());
        }
        let what = format!("{} has {found:?} and should have {expected:?}", info.path);
        Err(Violation::new("I13", what))
    }

    /// What is there is known, and what is known to be there is. Returns how many have expired.
    pub(super) fn check_places(&mut self, infos: &[QueueInfo]) -> Result<u64, Violation> {
        let mut there: BTreeMap<_, _> = infos.iter().map(|it| (it.path.as_str(), it)).collect();
        let mut expired = 0;
        let mut gone = Vec::new();
        for (path, place) in &mut self.places {
            let Some(info) = there.remove(path.as_str()) else {
                expired += u64::from(place.passed(path, self.mono)?);
                gone.push(path.clone());
                continue;
            };
            // It may expire between a look and the request that makes another one.
            if place.id.replace(info.id).is_some_and(|id| id != info.id) {
                expired += u64::from(place.passed(path, self.mono)?);
                place.renew(self.asked, info.in_force().expires);
            }
            place.is_sure = true;
        }
        if let Some(path) = there.keys().next() {
            let what = format!("{path} is there and was not made, or it should be gone");
            return Err(Violation::new("I13", what));
        }
        gone.iter().for_each(|path| self.end(path));
        Ok(expired)
    }

    /// A message is about to be sent, and will be in these entities.
    pub(super) fn send(&mut self, to: &[String], id: MessageId, payload: Bytes) {
        self.payloads.insert(id, payload);
        let of_topic = self.rules(TOPIC, EntityKind::Topic).life;
        for path in to {
            let kind = self.places[path].kind;
            let mut life = self.rules(path, kind).life;
            if kind == EntityKind::Subscription {
                life = life.min(of_topic);
            }
            let sent = Sent {
                is_sure: false,
                may_be_completed: false,
                is_refused: false,
                completed: None,
                since: self.wall,
                life,
            };
            if let Some(place) = self.places.get_mut(path) {
                place.messages.insert(id, sent);
            }
        }
    }

    fn sent_mut(&mut self, path: &str, id: MessageId) -> Option<&mut Sent> {
        self.places.get_mut(path)?.messages.get_mut(&id)
    }

    pub(super) fn accepted(&mut self, to: &[String], id: MessageId) {
        self.note_durable();
        for path in to {
            if let Some(sent) = self.sent_mut(path, id) {
                sent.is_sure = true;
            }
        }
    }

    pub(super) fn refused(&mut self, to: &[String], id: MessageId) {
        for path in to {
            if let Some(place) = self.places.get_mut(path) {
                place.messages.remove(&id);
            }
        }
    }

    /// A message for which a queue is too long is a dead letter, which does not expire.
    pub(super) fn refused_as_dead_letter(&mut self, id: MessageId) -> Result<(), Violation> {
        let of_policies = self.rules(REFUSING, EntityKind::Queue).length;
        let length = of_policies.unwrap_or(LENGTH).min(LENGTH);
        let Some(place) = self.places.get_mut(REFUSING) else {
            return Ok(());
        };
        let all = place.messages.iter();
        let others = all
            .filter(|(other, sent)| **other != id && !sent.is_refused && sent.completed.is_none());
        let most = others.count() as u64;
        if most < length {
            let what = format!("message {id} was refused beside {most} others, not {length}");
            return Err(Violation::new("I6", what));
        }
        if let Some(sent) = place.messages.get_mut(&id) {
            (sent.is_sure, sent.is_refused, sent.life) = (true, true, u64::MAX);
        }
        Ok(())
    }

    pub(super) fn completes(&mut self, path: &str, id: MessageId) {
        if let Some(sent) = self.sent_mut(path, id) {
            sent.may_be_completed = true;
        }
    }

    pub(super) fn complete(&mut self, path: &str, id: MessageId) {
        self.completions += 1;
        let ordinal = self.completions;
        if let Some(sent) = self.sent_mut(path, id) {
            sent.completed = Some(ordinal);
        }
    }

    pub(super) fn completions(&self) -> u64 {
        self.completions
    }

    /// A message that is shown in an entity was sent to it, as it is, and was not over after these
    /// `completions`, when the user asked for it.
    pub(super) fn check_shown(
        &self,
        path: &str,
        shown: &Browsed,
        completions: u64,
        is_dead: bool,
    ) -> Result<MessageId, Violation> {
        let id = super::id_of(shown);
        let place = self.places.get(path);
        let Some(place) = place else { return Ok(id) };
        let Some(sent) = place.messages.get(&id) else {
            let what = format!("message {id} is in {path} and was not sent there");
            return Err(Violation::new("I12", what));
        };
        if sent.completed.is_some_and(|ordinal| ordinal <= completions) {
            let what = format!("message {id} of {path} was completed and is still there");
            return Err(Violation::new("I2", what));
        }
        let was_answered = path == REFUSING && sent.is_sure;
        if was_answered && sent.is_refused != is_dead {
            let what = format!("message {id} of {path} is not where its answer says: {sent:?}");
            return Err(Violation::new("I6", what));
        }
        if self.payloads.get(&id) != Some(&shown.payload) {
            let what = format!("message {id} of {path} is not what was sent");
            return Err(Violation::new("I12", what));
        }
        Ok(id)
    }

    /// A look at all messages of an entity has shown those that are there for certain.
    pub(super) fn check_all_seen(
        &self,
        path: &str,
        seen: &BTreeSet<MessageId>,
    ) -> Result<(), Violation> {
        let place = self.places.get(path).filter(|place| place.stays());
        let all = place.into_iter().flat_map(|place| &place.messages);
        for (id, sent) in all {
            let may_expire = self.max_wall >= sent.since.saturating_add(sent.life);
            let is_there = sent.is_sure && !sent.may_be_completed && !may_expire;
            if is_there && !seen.contains(id) {
                let what = format!("message {id} of {path} is missing: {sent:?}");
                return Err(Violation::new("I1", what));
            }
        }
        Ok(())
    }
}

/// The patterns of policies, and which entities they fit.
pub(super) const PATTERNS: [&str; 5] = [".", "^queue$", "^leased$", "^prices$", r"\$D$"];

fn matches(pattern: &str, path: &str) -> bool {
    match pattern {
        "." => true,
        r"\$D$" => path.ends_with("$D"),
        named => path == named.trim_matches(['^', '$']),
    }
}

/// How many messages an entity takes by itself.
fn own_length(path: &str) -> Option<u64> {
    (path == REFUSING).then_some(LENGTH)
}

/// A topic has a time to live, and nothing else that these policies set.
fn fits(policy: &Policy, path: &str, kind: EntityKind) -> bool {
    let mut keys = policy.definition.keys();
    let is_known = kind != EntityKind::Topic || keys.all(|key| key == "message-ttl");
    is_known && matches(&policy.pattern, path)
}

/// A definition of some of the keys.
pub(super) fn definition(keys: &[(&str, u64)]) -> serde_json::Map<String, Value> {
    let all = keys.iter();
    all.map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect()
}
