//! Rules: the fault rules of every namespace, with what each has counted.
//!
//! The first rule of a namespace that has an operation fail decides. Those before it, which left it
//! alone by their counts, have counted it; those after it do not. Here are also the commands that a
//! rule delays, in the order of their time. Nothing of it is stored.

use std::collections::BTreeMap;

use filter::Selector;
use store::NamespaceId;

use crate::api::command::Command;
use crate::api::entity_error::EntityError;
use crate::api::fault::check::check_faults;
use crate::api::fault::{
    ClientNames, FaultDescription, FaultEffect, FaultMatch, FaultRule, HttpFault, HttpRequest,
    Requester,
};
use crate::api::http_pattern::HttpPattern;
use crate::api::id::ConnectionId;
use crate::api::time::{Mono, Now};
use crate::fault::concern::Concern;

/// The most effects of a namespace that wait at a time. Rules that would add one more leave
/// operations alone.
const MAX_DELAYED: usize = 10_000;

/// The rules of all namespaces, and the commands that wait because of one.
#[derive(Debug, Default)]
pub(crate) struct FaultRules {
    by_namespace: BTreeMap<NamespaceId, Vec<CountedRule>>,
    /// The connections that were introduced.
    clients: BTreeMap<ConnectionId, ClientNames>,
    /// Whether a rule asks for them.
    name_clients: bool,
    /// Whether a rule is for HTTP requests.
    match_http: bool,
    /// By when they are carried out, then in the order in which they came.
    delayed: BTreeMap<(Mono, u64), DelayedEffect>,
    /// How many of these each namespace has that has some.
    delayed_in: BTreeMap<NamespaceId, usize>,
    /// How many have been delayed.
    last_delayed: u64,
    /// How many operations have failed by a rule, since the start.
    injected: u64,
}

/// What is done later.
#[derive(Debug)]
pub(super) enum Delayed {
    /// It is carried out.
    Command(Box<Command>),
    /// The connection has its credit back.
    Credit(ConnectionId),
}

#[derive(Debug)]
struct DelayedEffect {
    namespace: NamespaceId,
    /// As [`Concern::requester`].
    requester: Option<Requester>,
    delayed: Delayed,
}

#[derive(Debug)]
struct CountedRule {
    rule: FaultRule,
    /// The path that it compares with, in lower case.
    entity: Option<String>,
    /// Which messages it is for.
    selector: Option<Selector>,
    /// Which HTTP requests it is for, and nothing else.
    http: Option<HttpPattern>,
    matched: u64,
    injected: u64,
    /// When a throttle lets the next operation through, in microseconds.
    next_at_us: u64,
}

impl FaultRules {
    /// Whether there is anything to do for any namespace.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }

    /// How many operations have failed by a rule, since the start.
    pub(crate) fn injected(&self) -> u64 {
        self.injected
    }

    /// How many rules each namespace has that has some.
    pub(crate) fn counts(&self) -> BTreeMap<NamespaceId, usize> {
        let by_namespace = self.by_namespace.iter();
        by_namespace
            .filter(|(_, rules)| !rules.is_empty())
            .map(|(namespace, rules)| (*namespace, rules.len()))
            .collect()
    }

    /// Gives a namespace these rules instead of those it has. A rule that stays as it is goes on
    /// counting. When one goes that may have delayed something, all delays end.
    pub(crate) fn replace(
        &mut self,
        namespace: NamespaceId,
        rules: Vec<FaultRule>,
    ) -> Result<(), EntityError> {
        check_faults(&rules).map_err(|(_, error)| error)?;
        let mut before = self.by_namespace.remove(&namespace).unwrap_or_default();
        if !rules.is_empty() {
            let counted = rules.into_iter().map(|rule| {
                let known = before.iter().position(|known| known.rule == rule);
                known.map_or_else(|| CountedRule::new(rule), |at| before.swap_remove(at))
            });
            self.by_namespace.insert(namespace, counted.collect());
        }
        if before.iter().any(|gone| gone.rule.effect.delays()) {
            self.end_delays(namespace);
        }
        let mut all = self.by_namespace.values().flatten();
        self.name_clients = all.any(|counted| counted.rule.matches.names_client());
        let mut all = self.by_namespace.values().flatten();
        self.match_http = all.any(|counted| counted.http.is_some());
        Ok(())
    }

    /// Whether a rule compares whose operation it is.
    pub(crate) fn name_clients(&self) -> bool {
        self.name_clients
    }

    /// Whether a rule is for HTTP requests.
    pub(crate) fn match_http(&self) -> bool {
        self.match_http
    }

    /// What happens to an HTTP request, if it is not just carried out.
    pub(crate) fn choose_http(&mut self, request: &HttpRequest, now: Now) -> Option<HttpFault> {
        let rules = self.by_namespace.get_mut(&request.namespace)?;
        let mut chosen = rules.iter_mut();
        let effect = chosen.find_map(|rule| rule.choose_http(request, now))?;
        self.injected += 1;
        HttpFault::of(effect)
    }

    /// Learns whose connection it is.
    pub(crate) fn introduce(&mut self, connection: ConnectionId, client: ClientNames) {
        self.clients.insert(connection, client);
    }

    /// The rules of a namespace, in their order.
    pub(crate) fn describe(&self, namespace: NamespaceId) -> Vec<FaultDescription> {
        let rules = self.by_namespace.get(&namespace).into_iter().flatten();
        let described = rules.map(|counted| FaultDescription {
            rule: counted.rule.clone(),
            matched: counted.matched,
            injected: counted.injected,
        });
        described.collect()
    }

    /// How an operation in a namespace fails, if it does.
    pub(super) fn choose(
        &mut self,
        namespace: NamespaceId,
        path: &str,
        concern: &Concern<'_>,
        now: Now,
        broker_now: Mono,
    ) -> Option<FaultEffect> {
        let rules = self.by_namespace.get_mut(&namespace)?;
        let connection = concern.requester.map(Requester::connection);
        let client = connection.and_then(|connection| self.clients.get(&connection));
        let waiting = self.delayed_in.get(&namespace).copied();
        let can_delay = waiting.unwrap_or_default() < MAX_DELAYED;
        let chosen = rules
            .iter_mut()
            .filter(|rule| can_delay || !rule.rule.effect.delays())
            .find_map(|rule| Some((rule.choose(path, concern, client, now)?, rule)));
        let (effect, rule) = chosen?;
        self.injected += 1;
        Some(match effect {
            FaultEffect::ThrottlePerSecond(rate) => {
                FaultEffect::DelayMs(rule.wait_for_turn(rate, broker_now))
            }
            effect => effect,
        })
    }

    /// Keeps what a rule of a namespace delays until then.
    pub(super) fn delay(
        &mut self,
        until: Mono,
        namespace: NamespaceId,
        requester: Option<Requester>,
        delayed: Delayed,
    ) {
        self.last_delayed += 1;
        let delayed = DelayedEffect {
            namespace,
            requester,
            delayed,
        };
        self.delayed.insert((until, self.last_delayed), delayed);
        *self.delayed_in.entry(namespace).or_default() += 1;
    }

    /// One effect of a namespace waits no longer.
    fn note_end(delayed_in: &mut BTreeMap<NamespaceId, usize>, namespace: NamespaceId) {
        let waiting = delayed_in.get_mut(&namespace);
        let waiting = waiting.expect("what waits was counted when it began to");
        *waiting -= 1;
        if *waiting == 0 {
            delayed_in.remove(&namespace);
        }
    }

    /// Keeps a connection without credit until then, or for longer if it is already.
    pub(super) fn withhold(&mut self, until: Mono, namespace: NamespaceId, of: Requester) {
        let connection = of.connection();
        let is_of = |delayed: &Delayed| matches!(delayed, Delayed::Credit(it) if *it == connection);
        let mut known = self.delayed.iter().filter(|(_, it)| is_of(&it.delayed));
        if let Some(key) = known.next().map(|(key, _)| *key) {
            if key.0 >= until {
                return;
            }
            if let Some(before) = self.delayed.remove(&key) {
                Self::note_end(&mut self.delayed_in, before.namespace);
            }
        }
        self.delay(until, namespace, Some(of), Delayed::Credit(connection));
    }

    /// Whether a connection is still to have its credit back.
    pub(super) fn withholds_credit(&self, of: ConnectionId) -> bool {
        let mut delayed = self.delayed.values();
        delayed.any(|it| matches!(it.delayed, Delayed::Credit(connection) if connection == of))
    }

    /// What is delayed in a namespace is due, in the order in which it came.
    fn end_delays(&mut self, namespace: NamespaceId) {
        let of_it = |delayed: &DelayedEffect| delayed.namespace == namespace;
        let due = self.delayed.extract_if(.., |_, delayed| of_it(delayed));
        let mut due: Vec<_> = due.map(|((_, order), delayed)| (order, delayed)).collect();
        due.sort_unstable_by_key(|(order, _)| *order);
        let due = due.into_iter();
        self.delayed
            .extend(due.map(|(order, delayed)| ((Mono(0), order), delayed)));
    }

    /// Forgets a connection that is gone, and what it has asked for.
    pub(crate) fn forget_client(&mut self, gone: ConnectionId) {
        self.clients.remove(&gone);
        let of_it =
            |delayed: &DelayedEffect| delayed.requester.map(Requester::connection) == Some(gone);
        for (_, delayed) in self.delayed.extract_if(.., |_, delayed| of_it(delayed)) {
            Self::note_end(&mut self.delayed_in, delayed.namespace);
        }
    }

    /// What is delayed in a namespace is due earlier.
    pub(crate) fn shorten_delays(&mut self, namespace: NamespaceId, ms: u64) {
        for rule in self.by_namespace.get_mut(&namespace).into_iter().flatten() {
            rule.next_at_us = rule.next_at_us.saturating_sub(ms.saturating_mul(1_000));
        }
        let of_it = |delayed: &DelayedEffect| delayed.namespace == namespace;
        let delayed = self.delayed.extract_if(.., |_, delayed| of_it(delayed));
        let earlier = delayed.map(|((until, order), delayed)| {
            let until = Mono(until.0.saturating_sub(ms));
            ((until, order), delayed)
        });
        let earlier: Vec<_> = earlier.collect();
        self.delayed.extend(earlier);
    }

    /// When the first delay in a namespace ends.
    pub(crate) fn deadline_of(&self, namespace: NamespaceId) -> Option<Mono> {
        let mut delayed = self.delayed.iter();
        let first = delayed.find(|(_, delayed)| delayed.namespace == namespace);
        first.map(|((until, _), _)| *until)
    }

    /// When the first delay ends.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.delayed.keys().next().map(|(until, _)| *until)
    }

    /// What was delayed and whose time has come.
    pub(super) fn take_due(&mut self, now: Mono) -> Option<Delayed> {
        let first = self.delayed.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let due = first.remove();
        Self::note_end(&mut self.delayed_in, due.namespace);
        Some(due.delayed)
    }
}

impl CountedRule {
    fn new(rule: FaultRule) -> Self {
        Self {
            entity: rule.matches.entity.as_deref().map(str::to_lowercase),
            selector: rule.matches.filter.as_deref().map(|filter| {
                Selector::of_filter(filter).expect("the rules are checked before they are kept")
            }),
            http: rule.matches.http.as_deref().map(|http| {
                HttpPattern::parse(http).expect("the rules are checked before they are kept")
            }),
            rule,
            matched: 0,
            injected: 0,
            next_at_us: 0,
        }
    }

    /// How many milliseconds an operation waits so that there are `rate` of them a second at most.
    fn wait_for_turn(&mut self, rate: u32, now: Mono) -> u64 {
        let now_us = now.0.saturating_mul(1_000);
        let turn = self.next_at_us.max(now_us);
        self.next_at_us = turn.saturating_add(1_000_000 / u64::from(rate));
        (turn - now_us).div_ceil(1_000)
    }

    fn choose(
        &mut self,
        path: &str,
        concern: &Concern<'_>,
        client: Option<&ClientNames>,
        now: Now,
    ) -> Option<FaultEffect> {
        let (matches, effect) = (&self.rule.matches, self.rule.effect);
        let operation = concern.operation;
        let is_possible = effect.is_possible(operation)
            && (matches.operations.is_empty() || matches.operations.contains(&operation));
        let fits = is_possible
            && self.http.is_none()
            && matches.is_in_force(now.wall)
            && self.entity.as_ref().is_none_or(|own| *own == path)
            && (!matches.names_client() || client.is_some_and(|client| is_of(matches, client)))
            && matches
                .session
                .as_ref()
                .is_none_or(|session| concern.names_session(session))
            && matches
                .message_id
                .as_ref()
                .is_none_or(|id| concern.sends(id))
            && self
                .selector
                .as_ref()
                .is_none_or(|selector| concern.sends_selected(selector));
        (fits && self.count()).then_some(effect)
    }

    fn choose_http(&mut self, request: &HttpRequest, now: Now) -> Option<FaultEffect> {
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
