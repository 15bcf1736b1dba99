//! Rules: the fault rules of every namespace, with what each has counted.
//!
//! The first rule of a namespace that has an operation fail decides. Those before it, which left it
//! alone by their counts, have counted it; those after it do not. Nothing of it is stored.

use std::collections::BTreeMap;

use store::{EntityId, NamespaceId, SequenceNumber};

use crate::api::entity_error::EntityError;
use crate::api::fault::check::check_faults;
use crate::api::fault::{
    ClientNames, FaultDescription, FaultEffect, FaultRule, HttpFault, HttpRequest, Requester,
};
use crate::api::id::ConnectionId;
use crate::api::output::Browsed;
use crate::api::time::{Mono, Now};
use crate::fault::concern::Concern;
use crate::fault::counted_rule::CountedRule;
use crate::fault::delays::Delays;

/// The rules of all namespaces, and what waits because of one.
#[derive(Debug, Default)]
pub(crate) struct FaultRules {
    by_namespace: BTreeMap<NamespaceId, Vec<CountedRule>>,
    /// The connections that were introduced.
    clients: BTreeMap<ConnectionId, ClientNames>,
    /// Whether a rule asks for them.
    name_clients: bool,
    /// Whether a rule is for HTTP requests.
    match_http: bool,
    /// Whether a rule compares messages that are handed out.
    follow_messages: bool,
    /// Whether a rule is for the handing out of messages.
    match_deliveries: bool,
    /// Whether a rule is for the attach of senders.
    match_senders: bool,
    pub(crate) delays: Delays,
    /// How many operations have failed by a rule, since the start.
    injected: u64,
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
            self.delays.end(namespace);
        }
        let mut all = self.by_namespace.values().flatten();
        self.name_clients = all.any(|counted| counted.rule.matches.names_client());
        let mut all = self.by_namespace.values().flatten();
        self.match_http = all.any(|counted| counted.is_for_http());
        let mut all = self.by_namespace.values().flatten();
        self.follow_messages = all.any(|counted| counted.rule.follows_messages());
        let mut all = self.by_namespace.values().flatten();
        self.match_deliveries = all.any(CountedRule::is_for_deliveries);
        let mut all = self.by_namespace.values().flatten();
        self.match_senders = all.any(CountedRule::is_for_senders);
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

    /// Whether a rule compares messages that are handed out.
    pub(super) fn follow_messages(&self) -> bool {
        self.follow_messages
    }

    /// Whether a rule is for the handing out of messages.
    pub(super) fn match_deliveries(&self) -> bool {
        self.match_deliveries
    }

    /// Whether a rule is for the attach of senders.
    pub(crate) fn match_senders(&self) -> bool {
        self.match_senders
    }

    /// A message of a namespace is handed out.
    pub(super) fn note_handed_out(&mut self, namespace: NamespaceId, message: &Browsed) {
        let rules = self.by_namespace.get_mut(&namespace).into_iter().flatten();
        for rule in rules.filter(|rule| rule.rule.follows_messages()) {
            rule.note_handed_out(message);
        }
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
        rules.map(CountedRule::describe).collect()
    }

    /// How an operation in a namespace fails, if it does.
    pub(super) fn choose(
        &mut self,
        namespace: NamespaceId,
        path: &str,
        concern: &Concern<'_>,
        named: &[(EntityId, SequenceNumber)],
        now: Now,
        broker_now: Mono,
    ) -> Option<FaultEffect> {
        let rules = self.by_namespace.get_mut(&namespace)?;
        let connection = concern.requester.map(Requester::connection);
        let client = connection.and_then(|connection| self.clients.get(&connection));
        let can_delay = self.delays.has_room(namespace);
        let chosen = rules
            .iter_mut()
            .filter(|rule| can_delay || !rule.rule.effect.delays())
            .find_map(|rule| Some((rule.choose(path, concern, named, client, now)?, rule)));
        let (effect, rule) = chosen?;
        self.injected += 1;
        Some(match effect {
            FaultEffect::ThrottlePerSecond(rate) => {
                FaultEffect::DelayMs(rule.wait_for_turn(rate, broker_now))
            }
            effect => effect,
        })
    }

    /// Forgets a connection that is gone, and what it has asked for.
    pub(crate) fn forget_client(&mut self, gone: ConnectionId) {
        self.clients.remove(&gone);
        self.delays.forget_client(gone);
    }

    /// The clock of a namespace is advanced: what is delayed there is due earlier.
    pub(crate) fn shorten_delays(&mut self, namespace: NamespaceId, ms: u64) {
        for rule in self.by_namespace.get_mut(&namespace).into_iter().flatten() {
            rule.advance(ms);
        }
        self.delays.shorten(namespace, ms);
    }
}
