//! Console sessions: browsers that are signed in to the web console. Sessions of messages are in
//! the core.
//!
//! A session stands for the credential that was shown at its begin; its rights are looked up at
//! each request, so a removed key ends it. Ids are random and only their digests are kept.
//! Invariant: there are [`MAX_SESSIONS`] at most; a further one replaces that which expires first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use access::{Credential, Secret};
use amqp::hexadecimal::hexadecimal;
use broker::Wall;
use ring::digest::{SHA256, digest};
use store::NamespaceId;

use crate::random::random;

/// How long a session lasts.
pub const LIFETIME_SECONDS: u64 = 12 * 60 * 60;
/// Sessions at a time.
const MAX_SESSIONS: usize = 1_024;

/// A browser that is signed in. It holds a secret, so it has no `Debug`.
#[derive(Clone)]
pub struct ConsoleSession {
    pub namespace: NamespaceId,
    pub credential: Credential,
    /// What a change has to show.
    pub csrf: Secret,
    /// The same as the page is told it.
    pub csrf_text: String,
    expires: Wall,
    /// The digest of its id.
    key: Vec<u8>,
}

/// All sessions, by the digests of their ids.
#[derive(Default)]
pub struct ConsoleSessions {
    open: Mutex<HashMap<Vec<u8>, ConsoleSession>>,
}

impl ConsoleSessions {
    /// Begins a session that ends when `expires`, if that is before its lifetime is over. Returns
    /// its id too.
    pub fn begin(
        &self,
        namespace: NamespaceId,
        credential: Credential,
        expires: Option<Wall>,
        now: Wall,
    ) -> (String, ConsoleSession) {
        let id = hexadecimal(&random::<32>());
        let csrf_text = hexadecimal(&random::<32>());
        let most = Wall(now.0.saturating_add(LIFETIME_SECONDS * 1_000));
        let key = key(&id);
        let session = ConsoleSession {
            key: key.clone(),
            namespace,
            credential,
            csrf: Secret::new(csrf_text.clone()),
            csrf_text,
            expires: expires.map_or(most, |expires| expires.min(most)),
        };
        let mut open = self.open();
        open.retain(|_, session| session.expires > now);
        if open.len() >= MAX_SESSIONS {
            let first = open.iter().min_by_key(|(_, session)| session.expires);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                open.remove(&first);
            }
        }
        open.insert(key, session.clone());
        (id, session)
    }

    /// The session with that id, unless it has expired.
    pub fn get(&self, id: &str, now: Wall) -> Option<ConsoleSession> {
        let open = self.open();
        let session = open.get(&key(id))?;
        (session.expires > now).then(|| session.clone())
    }

    /// Whether a session that was open is open still.
    pub fn is_open(&self, session: &ConsoleSession, now: Wall) -> bool {
        session.expires > now && self.open().contains_key(&session.key)
    }

    /// Ends the session with that id.
    pub fn end(&self, id: &str) {
        self.open().remove(&key(id));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Vec<u8>, ConsoleSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &str) -> Vec<u8> {
    digest(&SHA256, id.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use access::{Access, AccessRule, AccessRules, Rights};

    use super::*;

    fn credential() -> Credential {
        let rule = AccessRule {
            name: "a".to_owned(),
            primary: Secret::new("key".to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        };
        let rules = AccessRules {
            rules: vec![rule],
            ..AccessRules::default()
        };
        Access::new(rules).log_in("a", b"key").unwrap()
    }

    #[test]
    fn a_session_lasts_for_its_lifetime_or_that_of_its_credential() {
        let sessions = ConsoleSessions::default();
        let (id, _) = sessions.begin(NamespaceId::default(), credential(), None, Wall(0));
        let (short, _) =
            sessions.begin(NamespaceId::default(), credential(), Some(Wall(5)), Wall(0));
        assert!(sessions.get(&short, Wall(4)).is_some());
        assert!(sessions.get(&short, Wall(5)).is_none());
        assert!(sessions.get(&id, Wall(5)).is_some());
        assert!(sessions.get(&id, Wall(LIFETIME_SECONDS * 1_000)).is_none());
        assert!(sessions.get("", Wall(0)).is_none());
    }

    #[test]
    fn a_session_that_has_ended_is_gone() {
        let sessions = ConsoleSessions::default();
        let (id, session) = sessions.begin(NamespaceId::default(), credential(), None, Wall(0));
        assert!(sessions.is_open(&session, Wall(0)));
        sessions.end(&id);
        assert!(sessions.get(&id, Wall(0)).is_none());
        assert!(!sessions.is_open(&session, Wall(0)));
    }

    #[test]
    fn a_further_session_replaces_the_one_that_expires_first() {
        let sessions = ConsoleSessions::default();
        let (first, _) =
            sessions.begin(NamespaceId::default(), credential(), Some(Wall(9)), Wall(0));
        let (second, _) = sessions.begin(NamespaceId::default(), credential(), None, Wall(0));
        for _ in 2..=MAX_SESSIONS {
            sessions.begin(NamespaceId::default(), credential(), None, Wall(1));
        }
        assert!(sessions.get(&first, Wall(1)).is_none());
        assert!(sessions.get(&second, Wall(1)).is_some());
        assert_eq!(sessions.open().len(), MAX_SESSIONS);
    }
}
