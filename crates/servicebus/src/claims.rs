//! Claims: what a connection has shown that it may do, and until when. (Wire contract 2.2-2.7)
//!
//! Rights come from SASL PLAIN for the connection's whole life, from the configuration for
//! everyone, and from tokens, one per audience; a token covers its audience and all below it.
//! Invariant: a new token for an audience replaces the old one, weaker or not.

use std::collections::HashMap;

use broker::Wall;
use endpoint::Mono;

use crate::address;
use crate::moment::Moment;
use crate::rights::{AccessRules, Rights};
use crate::token::Granted;

/// Most audiences one connection may hold tokens for.
const MAX_TOKENS: usize = 4_096;

/// There are tokens for so many audiences already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a connection can hold tokens for {MAX_TOKENS} audiences")]
pub(crate) struct TooMany;

/// One token that was accepted.
#[derive(Clone, Copy, Debug)]
struct Claim {
    rights: Rights,
    expires: Wall,
    /// When links that live by it are detached.
    until: Mono,
}

/// What a connection may do.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Of everyone, by configuration.
    everyone: Rights,
    /// From SASL: rights at a path and below it.
    plain: Vec<(String, Rights)>,
    /// From tokens, by audience.
    tokens: HashMap<String, Claim>,
}

impl Claims {
    pub(crate) fn new(everyone: Rights) -> Self {
        Self {
            everyone,
            ..Self::default()
        }
    }

    /// Takes over the rights of the rules called `name` whose key is `password`; false if there are none.
    pub(crate) fn log_in(&mut self, rules: &AccessRules, name: &str, password: &[u8]) -> bool {
        for rule in rules.named(name) {
            if rule.either_key(|key| key.matches(password)) {
                let scope = rule.entity.as_deref().unwrap_or_default().to_lowercase();
                self.plain.push((scope, rule.rights));
            }
        }
        !self.plain.is_empty()
    }

    /// Whether the connection has any right at all.
    pub(crate) fn has_any(&self) -> bool {
        self.everyone != Rights::NONE || !self.plain.is_empty() || !self.tokens.is_empty()
    }

    /// Keeps a token; true if it allows less than the one it replaces.
    pub(crate) fn put(
        &mut self,
        audience: String,
        granted: Granted,
        grace: u32,
        now: Moment,
    ) -> Result<bool, TooMany> {
        if self.tokens.len() >= MAX_TOKENS && !self.tokens.contains_key(&audience) {
            return Err(TooMany);
        }
        let left = granted
            .expires
            .0
            .saturating_sub(now.wall.0)
            .saturating_add(grace.into());
        let until = Mono(now.mono.0.saturating_add(left));
        let claim = Claim {
            rights: granted.rights,
            expires: granted.expires,
            until,
        };
        let replaced = self.tokens.insert(audience, claim);
        Ok(replaced.is_some_and(|old| granted.rights.union(old.rights) != granted.rights))
    }

    /// What may be begun now at `path`, which is normalised and in lower case.
    pub(crate) fn rights(&self, path: &str, now: Wall) -> Rights {
        self.rights_of(path, |claim| now < claim.expires)
    }

    /// What may go on at `path`: tokens count until their grace is over.
    pub(crate) fn lasting_rights(&self, path: &str) -> Rights {
        self.rights_of(path, |_| true)
    }

    fn rights_of(&self, path: &str, counts: impl Fn(&Claim) -> bool) -> Rights {
        let plain = self.plain.iter().map(|(scope, rights)| (scope, *rights));
        let tokens = self.tokens.iter().filter(|(_, claim)| counts(claim));
        plain
            .chain(tokens.map(|(scope, claim)| (scope, claim.rights)))
            .filter(|(scope, _)| address::covers(scope, path))
            .fold(self.everyone, |sum, (_, rights)| sum.union(rights))
    }

    /// Forgets tokens whose grace is over; true if there was one.
    pub(crate) fn expire(&mut self, now: Mono) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|_, claim| now < claim.until);
        self.tokens.len() < before
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.tokens.values().map(|claim| claim.until).min()
    }
}
