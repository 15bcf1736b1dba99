//! Counted rule: a fault rule, with what it compares with and what it has counted.

use filter::{Facts, Message, Selector};
use store::{EntityId, SequenceNumber};

use crate::api::fault::{
    ClientNames, FaultDescription, FaultEffect, FaultMatch, FaultOperation, FaultRule, HttpRequest,
};
use crate::api::http_pattern::HttpPattern;
use crate::api::output::Browsed;
use crate::api::time::{Mono, Now};
use crate::fault::concern::Concern;
use crate::fault::handed_out::HandedOut;
use crate::lineage::record::id_text;
use crate::message::properties::Properties;

#[derive(Debug)]
pub(super) struct CountedRule {
    pub rule: FaultRule,
    /// The path that it compares with, in lower case.
    entity: Option<String>,
    /// Which messages it is for.
    selector: Option<Selector>,
    /// Which HTTP requests it is for, and nothing else.
    http: Option<HttpPattern>,
    /// Which messages it is for of those that were handed out.
    handed_out: HandedOut,
    matched: u64,
    injected: u64,
    /// When a throttle lets the next operation through, in microseconds.
    next_at_us: u64,
}

impl CountedRule {
    pub fn new(rule: FaultRule) -> Self {
        Self {
            entity: rule.matches.entity.as_deref().map(str::to_lowercase),
            selector: rule.matches.filter.as_deref().map(|filter| {
                Selector::of_filter(filter).expect("the rules are checked before they are kept")
            }),
            http: rule.matches.http.as_deref().map(|http| {
                HttpPattern::parse(http).expect("the rules are checked before they are kept")
            }),
            handed_out: HandedOut::default(),
            rule,
            matched: 0,
            injected: 0,
            next_at_us: 0,
        }
    }

    pub fn is_for_http(&self) -> bool {
        self.http.is_some()
    }

    pub fn is_for_deliveries(&self) -> bool {
        !self.is_for_http() && self.rule.is_for(FaultOperation::Receive)
    }

    pub fn is_for_senders(&self) -> bool {
        !self.is_for_http() && self.rule.is_for(FaultOperation::AttachSender)
    }

    pub fn describe(&self) -> FaultDescription {
        FaultDescription {
            rule: self.rule.clone(),
            matched: self.matched,
            injected: self.injected,
        }
    }

    /// The clock that a throttle goes by is advanced.
    pub fn advance(&mut self, ms: u64) {
        self.next_at_us = self.next_at_us.saturating_sub(ms.saturating_mul(1_000));
    }

    /// How many milliseconds an operation waits so that there are `rate` of them a second at most.
    pub fn wait_for_turn(&mut self, rate: u32, now: Mono) -> u64 {
        let now_us = now.0.saturating_mul(1_000);
        let turn = self.next_at_us.max(now_us);
        self.next_at_us = turn.saturating_add(1_000_000 / u64::from(rate));
        (turn - now_us).div_ceil(1_000)
    }

    pub fn choose(
        &mut self,
        path: &str,
        concern: &Concern<'_>,
        named: &[(EntityId, SequenceNumber)],
        client: Option<&ClientNames>,
        now: Now,
    ) -> Option<FaultEffect> {
        let (matches, effect) = (&self.rule.matches, self.rule.effect);
        let fits = self.rule.is_for(concern.operation)
            && self.http.is_none()
            && matches.is_in_force(now.wall)
            && self.entity.as_ref().is_none_or(|own| *own == path)
            && (!matches.names_client() || client.is_some_and(|client| is_of(matches, client)))
            && matches
                .session
                .as_ref()
                .is_none_or(|session| concern.names_session(session))
            && (self.is_for_sent(concern) || self.is_for_given(named));
        (fits && self.count()).then_some(effect)
    }

    /// Whether it compares no messages, or is for some that an operation brings.
    fn is_for_sent(&self, concern: &Concern<'_>) -> bool {
        let (id, selector) = (&self.rule.matches.message_id, &self.selector);
        id.as_ref().is_none_or(|id| concern.sends(id))
            && selector
                .as_ref()
                .is_none_or(|selector| concern.sends_selected(selector))
    }

    /// Whether it is for one of these messages, which were handed out.
    fn is_for_given(&self, named: &[(EntityId, SequenceNumber)]) -> bool {
        let mut named = named.iter();
        named.any(|(entity, number)| self.handed_out.has(*entity, *number))
    }

    pub fn note_handed_out(&mut self, message: &Browsed) {
        let payload = message.seen_by_filters();
        let has_id = |wanted: &String| {
            let id = Properties::of(&payload).message_id;
            id.is_some_and(|id| id_text(&id) == *wanted)
        };
        let is_selected = |selector: &Selector| {
            let read = Message::read(&payload, Facts::default());
            read.is_ok_and(|read| selector.selects(&read))
        };
        let is_one = self.rule.matches.message_id.as_ref().is_none_or(has_id)
            && self.selector.as_ref().is_none_or(is_selected);
        self.handed_out.note(message.entity, message.number, is_one);
    }

    pub fn choose_http(&mut self, request: &HttpRequest, now: Now) -> Option<FaultEffect> {
        let matches = &self.rule.matches;
        let fits = (self.http.as_ref())
            .is_some_and(|http| http.fits(&request.method, &request.path))
            && matches.is_in_force(now.wall)
            && (matches.key.is_none() || matches.key == request.key);
        (fits && self.count()).then_some(self.rule.effect)
    }

    /// Counts one that fits. Returns whether it fails.
    fn count(&mut self) -> bool {
        let matches = &self.rule.matches;
        let before = self.matched;
        self.matched += 1;
        let is_chosen = before
            .checked_sub(matches.skip)
            .is_some_and(|after| after % matches.every == 0)
            && matches.times.is_none_or(|times| self.injected < times)
            && is_likely(matches.seed, before, matches.probability);
        self.injected += u64::from(is_chosen);
        is_chosen
    }
}

/// Whether a rule is for operations of a client.
fn is_of(matches: &FaultMatch, client: &ClientNames) -> bool {
    let (container_id, key) = (&matches.client, &matches.key);
    container_id
        .as_ref()
        .is_none_or(|own| *own == client.container_id)
        && key.as_ref().is_none_or(|own| client.keys.contains(own))
}

/// Whether chance is for the `count`th one. By `SplitMix64` [Steele, Lea, Flood 2014].
fn is_likely(seed: u64, count: u64, probability: f64) -> bool {
    let mut mixed = seed.wrapping_add((count + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    // The upper 32 bits, which a float holds exactly.
    let drawn = f64::from((mixed >> 32) as u32) / f64::from(u32::MAX);
    probability >= 1.0 || drawn < probability
}
