//! Lines of scripts that are about sessions.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Command, Output, SessionError, SessionFilter, Wall};
use bytes::Bytes;
use store::{EntityId, Index, MemoryDisk, Part, SequenceNumber};

use super::audits::is_removed;
use super::{START, Stage, millis, mode, name_of, receiver, time};

impl Stage {
    pub(super) fn session_command(&mut self, verb: &str, args: &[&str]) {
        if verb == "age" {
            return self.age();
        }
        let session = |index: usize| Bytes::from(args[index].to_owned());
        let entity = self.entity(args);
        let command = match verb {
            "accept" => Command::AcceptSession {
                receiver: receiver(args[0]),
                entity,
                mode: mode(args),
                session: match args[1] {
                    "next" => SessionFilter::Next {
                        timeout_ms: millis(args[2]),
                    },
                    _ => SessionFilter::ById(session(1)),
                },
            },
            "renew-session" => Command::RenewSession {
                request: self.request_of(args[0], &format!("renew {}", args[1])),
                entity,
                session: session(1),
            },
            "state" => Command::GetSessionState {
                request: self.request_of(args[0], &format!("state of {}", args[1])),
                entity,
                session: session(1),
            },
            "show-state" => Command::ShowSessionState {
                request: self.request(&format!("state of {}", args[0])),
                entity,
                session: session(0),
            },
            "set-state" => Command::SetSessionState {
                request: self.request_of(args[0], &format!("set state of {}", args[1])),
                entity,
                session: session(1),
                state: state_of(args.get(2)),
            },
            "list" => {
                let after = args.iter().find_map(|a| a.strip_prefix("after="));
                Command::ListSessions {
                    request: self.request(&format!("list {}", args.join(" "))),
                    entity,
                    updated_after: after.map(|after| Wall(START + millis(after))),
                    skip: args[0].parse().unwrap(),
                    top: args[1].parse().unwrap(),
                }
            }
            "peek-session" => Command::PeekSession {
                request: self.request(&format!("peek {}", args[0])),
                entity,
                session: session(0),
                from: SequenceNumber(args[1].parse().unwrap()),
                count: args[2].parse().unwrap(),
                max_bytes: 1 << 20,
            },
            other => panic!("unknown command {other}"),
        };
        self.turn(vec![command]);
    }

    /// Says how long ago the next message of the first queue was enqueued, as far as that is known.
    fn age(&mut self) {
        let now = self.broker_now();
        let info = self.shard.broker.queues_at(now).next();
        let age = info.and_then(|info| info.oldest_age_ms);
        let text = age.map_or_else(
            || "age unknown".to_owned(),
            |ms| format!("age {}", time(ms)),
        );
        self.tell(&text);
    }

    pub(super) fn hear_session(&self, output: Output) -> String {
        match output {
            Output::SessionAccepted {
                receiver,
                session_id,
                lock_ms,
            } => {
                let id = text_of(&session_id);
                let until = time(self.mono + lock_ms);
                format!("{} holds {id} until {until}", name_of(receiver))
            }
            Output::SessionRefused { receiver, error } => {
                let why = match error {
                    SessionError::CannotBeLocked => "held",
                    SessionError::Timeout => "timeout",
                    SessionError::NotAllowed => "not allowed",
                    SessionError::Unreadable => "unreadable",
                    SessionError::Injected(_) => "injected",
                };
                format!("{} refused: {why}", name_of(receiver))
            }
            Output::SessionLost { receiver } => format!("{} lost its session", name_of(receiver)),
            Output::SessionRenewed { request, result } => match result {
                Ok(ms) => format!("{}: until {}", self.what(request), time(self.mono + ms)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::SessionState { request, result } => match result {
                Ok(Some(state)) => format!("{}: {}", self.what(request), text_of(&state)),
                Ok(None) => format!("{}: none", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::SessionStateSet { request, result } => match result {
                Ok(()) => format!("{}: done", self.what(request)),
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            Output::Sessions { request, result } => match result {
                Ok(page) => {
                    let mut ids: Vec<_> = page.ids.iter().map(text_of).collect();
                    // Their order is that of hashes, which tells nothing.
                    ids.sort();
                    let ids = ids.join(" ");
                    format!("{}: {ids} then skip {}", self.what(request), page.skip)
                }
                Err(error) => format!("{}: {error}", self.what(request)),
            },
            other => format!("{other:?}"),
        }
    }
}

/// What a line says about a state: its text, perhaps repeated, or nothing.
pub(super) fn state_of(state: Option<&&str>) -> Option<Bytes> {
    let (text, times) = state.map(|state| state.split_once('*').unwrap_or((state, "1")))?;
    Some(Bytes::from(text.repeat(times.parse().unwrap())))
}

fn text_of(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every message of a queue with sessions has the entry by which its session finds it, and the
/// head counts what states take.
pub fn audit_sessions(disk: &MemoryDisk) {
    disk.with_current(|image| {
        let mut expected = BTreeSet::new();
        let rows = image.messages.iter();
        for ((entity, part, number), row) in
            rows.filter(|((entity, ..), _)| !is_removed(image, *entity))
        {
            let mut group = row.session_hash.to_be_bytes().to_vec();
            match part {
                Part::Active => {}
                Part::Deferred | Part::Scheduled => group.push(*part as u8),
                _ => continue,
            }
            if row.session_hash != 0 {
                expected.insert((*entity, group, *number));
            }
        }
        let mut states: BTreeMap<EntityId, u64> = BTreeMap::new();
        let entries = image.entries.iter();
        for ((entity, index, key), value) in
            entries.filter(|((entity, ..), _)| !is_removed(image, *entity))
        {
            match index {
                Index::Session => {
                    let place = (*entity, key.group.to_vec(), key.number);
                    assert!(expected.remove(&place), "{key:?} has a message");
                }
                Index::SessionState if key.group.len() == 9 => {
                    *states.entry(*entity).or_default() += value.len() as u64 + 64;
                }
                _ => {}
            }
        }
        assert_eq!(expected, BTreeSet::new(), "every message is in its session");
        for (entity, head) in &image.heads {
            let states = states.remove(entity).unwrap_or_default();
            assert_eq!(head.session_state_bytes, states);
        }
    });
}
