//! Claims: the credentials of a connection, and until when each counts.
//! (docs/spec/amqp.md#2.2 to #2.7)
//!
//! SASL PLAIN with a key gives a credential for the connection's whole life; a token gives one for
//! its audience and all paths below it, until it expires. A token that is the password of SASL
//! PLAIN has the namespace as its audience. Its rights depend on the access rules at the time of
//! the check, not at the time of its presentation.
//!
//! Invariant: a new token for an audience replaces the old one, whether it allows more or less.

use std::collections::{BTreeSet, HashMap};

use access::token::VerifiedToken;
use access::{Access, Credential, Rights, scope};
use broker::Wall;
use endpoint::Mono;

use crate::clock_reading::ClockReading;

/// Most audiences one connection may hold tokens for.
const MAX_TOKENS: usize = 4_096;
/// Most identities that the tokens of one connection may have. Each may take as much memory as a
/// token; tokens of the same identity share it.
const MAX_IDENTITIES: usize = 16;

/// The connection holds as many tokens as it may.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TooManyTokens {
    /// For the maximum number of audiences.
    #[error("a connection can hold tokens for {MAX_TOKENS} audiences")]
    Audiences,
    /// Of the maximum number of clients, as issuers tell them apart.
    #[error("a connection can hold tokens of {MAX_IDENTITIES} identities")]
    Identities,
}

/// Why a token was not taken in the place of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RenewalError {
    /// It is not good.
    #[error(transparent)]
    Token(#[from] access::jwt::Error),
    /// Its issuer names another client in it.
    #[error("the token is of another client than the one that has logged in")]
    OtherClient,
    /// The connection has too many others.
    #[error(transparent)]
    TooMany(#[from] TooManyTokens),
}

/// An accepted token.
#[derive(Clone, Debug)]
struct Claim {
    credential: Credential,
    expires: Wall,
    /// When links that depend on it are detached.
    until: Mono,
}

/// The credentials of a connection.
#[derive(Debug, Default)]
pub struct Claims {
    /// A key, from SASL.
    plain: Option<Credential>,
    /// From tokens, by audience.
    tokens: HashMap<String, Claim>,
    /// The identities of tokens, each once. When there are too many, those that no token has any
    /// more are dropped.
    identities: Vec<Credential>,
    /// Whether a renewed token may allow less than the one before, and links were not looked at
    /// since.
    weakened: bool,
}

impl Claims {
    /// Keeps the credential of a SASL login with a key.
    pub fn log_in(&mut self, credential: Credential) {
        self.plain = Some(credential);
    }

    /// Whether it has no other credential than the key for development, which counts in all
    /// namespaces.
    #[must_use]
    pub fn is_development(&self, access: &Access) -> bool {
        let key = self.plain.as_ref();
        self.tokens.is_empty() && key.is_some_and(|key| access.is_development_credential(key))
    }

    /// Whether the connection has any valid credential.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.plain.is_some() || !self.tokens.is_empty()
    }

    /// The names of the clients that its credentials are of, of a few of them: mostly one.
    #[must_use]
    pub fn client_names(&self) -> Vec<String> {
        let tokens = self.tokens.values().map(|claim| &claim.credential);
        let credentials = self.plain.iter().chain(tokens).take(MAX_IDENTITIES);
        let names = credentials.map(Credential::client_name);
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether it has put a token.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Keeps a token; true if it may allow less than the one it replaces.
    ///
    /// # Errors
    /// When the connection holds as many tokens as it may.
    pub fn put(
        &mut self,
        access: &Access,
        audience: String,
        granted: VerifiedToken,
        grace: u32,
        now: ClockReading,
    ) -> Result<bool, TooManyTokens> {
        if self.tokens.len() >= MAX_TOKENS && !self.tokens.contains_key(&audience) {
            return Err(TooManyTokens::Audiences);
        }
        let credential = self.share_identity(granted.credential)?;
        let left = granted
            .expires
            .0
            .saturating_sub(now.wall.0)
            .saturating_add(grace.into());
        let until = Mono(now.mono.0.saturating_add(left));
        let claim = Claim {
            credential,
            expires: granted.expires,
            until,
        };
        let new = access.rights(&claim.credential, &audience);
        let mut may_be_weaker = claim.credential.is_of_issuer();
        let old = self.tokens.get(&audience).map_or(Rights::NONE, |old| {
            // Below the audience the rights of an issuer's token may differ.
            may_be_weaker |= old.credential.is_of_issuer();
            access.rights(&old.credential, &audience)
        });
        let is_replaced = self.tokens.insert(audience, claim).is_some();
        Ok((is_replaced && may_be_weaker) || new.union(old) != new)
    }

    /// Whether there is a token for the whole namespace, as one with which a client logs in is.
    #[must_use]
    pub fn has_namespace_token(&self) -> bool {
        self.tokens.contains_key("")
    }

    /// Keeps a token in the place of that for the whole namespace, which is of the same client.
    pub(crate) fn renew(
        &mut self,
        access: &Access,
        granted: VerifiedToken,
        grace: u32,
        now: ClockReading,
    ) -> Result<(), RenewalError> {
        let old = self.tokens.get("");
        if !old.is_some_and(|old| old.credential.is_of_same_subject(&granted.credential)) {
            return Err(RenewalError::OtherClient);
        }
        self.weakened |= self.put(access, String::new(), granted, grace, now)?;
        Ok(())
    }

    /// Whether a renewal since the last call may allow less than was allowed before.
    pub fn take_weakened(&mut self) -> bool {
        std::mem::take(&mut self.weakened)
    }

    /// The credential, with the identity of another token where that is the same.
    fn share_identity(&mut self, credential: Credential) -> Result<Credential, TooManyTokens> {
        if !credential.is_of_issuer() {
            return Ok(credential);
        }
        let mut known = self.identities.iter();
        if let Some(same) = known.find(|known| known.has_identity_of(&credential)) {
            return Ok(same.clone());
        }
        if self.identities.len() >= MAX_IDENTITIES {
            let tokens = &self.tokens;
            self.identities.retain(|known| {
                let mut tokens = tokens.values();
                tokens.any(|claim| claim.credential.has_identity_of(known))
            });
        }
        if self.identities.len() >= MAX_IDENTITIES {
            return Err(TooManyTokens::Identities);
        }
        self.identities.push(credential.clone());
        Ok(credential)
    }

    /// The rights for a new link or operation at `path`, which is normalised and in lower case.
    #[must_use]
    pub fn rights(&self, access: &Access, path: &str, now: Wall) -> Rights {
        self.rights_of(access, path, |claim| now < claim.expires)
    }

    /// The rights of existing links at `path`: tokens count until their grace period ends.
    #[must_use]
    pub fn rights_within_grace(&self, access: &Access, path: &str) -> Rights {
        self.rights_of(access, path, |_| true)
    }

    /// The rights for the namespace that its credentials give, whatever the audience of its tokens.
    #[must_use]
    pub fn namespace_rights(&self, access: &Access, now: Wall) -> Rights {
        let tokens = self.tokens.values().filter(|claim| now < claim.expires);
        let tokens = tokens.map(|claim| &claim.credential);
        let credentials = self.plain.iter().chain(tokens);
        let rights = credentials.map(|credential| access.rights(credential, ""));
        rights.fold(access.anonymous(), Rights::union)
    }

    fn rights_of(&self, access: &Access, path: &str, counts: impl Fn(&Claim) -> bool) -> Rights {
        let plain = self.plain.iter();
        let plain = plain.map(|credential| access.rights(credential, path));
        let tokens = self.tokens.iter();
        let tokens = tokens
            .filter(|(audience, claim)| counts(claim) && scope::covers(audience, path))
            .map(|(audience, claim)| match claim.credential.is_of_issuer() {
                true => access.rights(&claim.credential, path),
                false => access.rights(&claim.credential, audience),
            });
        plain.chain(tokens).fold(access.anonymous(), Rights::union)
    }

    /// Removes tokens whose grace period has ended; true if there was one.
    pub fn expire(&mut self, now: Mono) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|_, claim| now < claim.until);
        self.tokens.len() < before
    }

    /// Removes the tokens that give rights at `path`, which is in lower case.
    pub fn remove_covering(&mut self, path: &str) {
        self.tokens
            .retain(|audience, _| !scope::covers(audience, path));
    }

    /// When [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.tokens.values().map(|claim| claim.until).min()
    }
}
