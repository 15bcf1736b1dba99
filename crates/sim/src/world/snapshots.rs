//! Snapshots: a user of namespaces of its own, beside those with a ledger: one, and what is made of
//! it. The user sends to them, takes and settles messages, and has snapshots of them taken, gone
//! back to, made namespaces of and removed, while all others work and things break.
//!
//! It asks one thing at a time. So after a crash everything is as it was before the last request or
//! after it, and nothing in between (I1): a survey reads all messages of all these namespaces, and
//! so does another now and then. What is delivered is there (I2) and is what was sent (I12), every
//! request is answered (I14) and can be carried out (I13), and when the namespaces are removed in
//! the end, nothing is left of them or of their snapshots (I9).

mod actions;
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Answer, Browsed, Command, ConnectionId, Delivery, EntityError, NamespaceAnswer, Outcome,
    Output, ReceiverId, RequestId, SendError, Subqueue, SubqueueId,
};
use bytes::Bytes;
use store::{EntityId, Part};

use super::namespace;
use crate::inbox::NamespaceIndex;
use crate::message::{self, MessageId};
use crate::server::NAMESPACES;
use crate::violation::Violation;
use model::{Model, Seen, changed, placed, visible};

pub(super) use actions::peek_all;

/// The index of all namespaces that have no ledger.
pub(super) const INDEX: NamespaceIndex = NAMESPACES.len();

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// What the broker is to hear next.
    pub commands: Vec<Command>,
    /// How many requests were carried out that copy, or go back to a copy.
    pub done: u64,
    count: u64,
    model: Model,
    /// What it is once the request is carried out.
    next: Option<Model>,
    /// A crash came before the answer: it may be this one.
    doubt: Option<Model>,
    asked: Asked,
    payloads: BTreeMap<MessageId, Bytes>,
}

/// What the user waits for.
#[derive(Debug, Default)]
enum Asked {
    #[default]
    Nothing,
    Request(RequestId),
    Delivery(Wanted),
    Survey {
        seen: Seen,
        left: BTreeMap<RequestId, Look>,
    },
}

/// A message of a place, which is to end in some way.
#[derive(Debug)]
struct Wanted {
    name: String,
    path: usize,
    subqueue: SubqueueId,
    outcome: Outcome,
}

/// A part of a survey.
#[derive(Debug)]
enum Look {
    Messages(String, usize, Subqueue),
    Snapshots(String),
}

impl Snapshots {
    /// The broker is another one now.
    pub(super) fn crashed(&mut self) {
        self.commands.clear();
        self.asked = Asked::Nothing;
        self.doubt = self.doubt.take().or(self.next.take());
    }

    fn connection(&mut self) -> ConnectionId {
        self.count += 1;
        ConnectionId(namespace::id_in(INDEX, self.count))
    }

    /// A request that only the namespaces' index tells from those of other administrators.
    fn request(&mut self) -> RequestId {
        self.count += 1;
        RequestId {
            connection: ConnectionId::SERVER,
            token: namespace::id_in(INDEX, self.count),
        }
    }

    /// The broker says something to the user.
    ///
    /// # Errors
    /// I1, I2, I12 or I13.
    pub(super) fn handle_output(&mut self, output: Output) -> Result<(), Violation> {
        match output {
            Output::Administered { request, result } => match *result {
                Ok(Answer::Namespaces(NamespaceAnswer::Snapshots(all)))
                    if matches!(self.asked, Asked::Survey { .. }) =>
                {
                    let names = all.into_iter().map(|snapshot| snapshot.name).collect();
                    self.snapshots_listed(request, names)
                }
                Ok(_) => self.answered(request, true),
                Err(EntityError::DiskNearlyFull | EntityError::TooMany { .. }) => {
                    self.answered(request, false)
                }
                Err(error) => {
                    let what = format!("a request about a namespace was refused: {error}");
                    Err(Violation::new("I13", what))
                }
            },
            Output::Sent {
                request, result, ..
            } => match result {
                Ok(_) => self.answered(request, true),
                Err(SendError::DiskNearlyFull) => self.answered(request, false),
                Err(error) => {
                    let what = format!("a send to a namespace was refused: {error:?}");
                    Err(Violation::new("I13", what))
                }
            },
            Output::Settled { request, result } => self.answered(request, result.is_ok()),
            Output::Deliver { receiver, delivery } => self.delivered(receiver, &delivery),
            Output::Browsed { request, result } => {
                let shown = result.map_err(|error| {
                    let what = format!("a peek was refused: {error:?}");
                    Violation::new("I13", what)
                })?;
                self.shown(request, &shown)
            }
            _ => Ok(()),
        }
    }

    fn answered(&mut self, request: RequestId, is_done: bool) -> Result<(), Violation> {
        if !matches!(self.asked, Asked::Request(asked) if asked == request) {
            let what = format!("{request:?} is answered and was not asked");
            return Err(Violation::new("I14", what));
        }
        self.asked = Asked::Nothing;
        if let Some(next) = self.next.take().filter(|_| is_done) {
            self.model = next;
            self.done += 1;
        }
        Ok(())
    }

    fn delivered(&mut self, receiver: ReceiverId, delivery: &Delivery) -> Result<(), Violation> {
        let connection = receiver.connection;
        let bytes = delivery.size();
        self.commands.push(Command::Written { connection, bytes });
        let Asked::Delivery(wanted) = std::mem::take(&mut self.asked) else {
            let what = format!("{receiver:?} is given a message that it has no credit for");
            return Err(Violation::new("I3", what));
        };
        let place = placed(wanted.path, wanted.subqueue.subqueue, &delivery.message);
        let there = &self.model[&wanted.name].content;
        let Some(place) = place.filter(|place| there.contains(place)) else {
            let what = format!("{:?} comes out of {wanted:?}", delivery.message);
            return Err(Violation::new("I2", what));
        };
        self.check_payload(place.0, &delivery.message)?;
        let outcome = wanted.outcome;
        self.next = Some(changed(&self.model, &wanted.name, |space| {
            let (path, _, id) = place;
            let to = match outcome {
                Outcome::Complete => None,
                Outcome::DeadLetter { .. } => Some(Part::DeadLetter),
                Outcome::Defer { .. } => Some(Part::Deferred),
                _ => Some(place.1),
            };
            space.content.remove(&place);
            space.content.extend(to.map(|to| (path, to, id)));
        }));
        self.count += 1;
        let request = RequestId {
            connection,
            token: self.count,
        };
        self.asked = Asked::Request(request);
        self.commands.push(Command::Settle {
            request: Some(request),
            session: None,
            subqueue: wanted.subqueue,
            token: delivery.token,
            outcome,
        });
        self.commands.push(Command::Detach { receiver });
        Ok(())
    }

    /// Whether a message is as it was sent. What a rule has changed is not.
    fn check_payload(&self, path: usize, shown: &Browsed) -> Result<(), Violation> {
        let id = message::id_of(&shown.payload).unwrap_or_default();
        let is_changed = model::PATHS[path].ends_with("changed");
        if is_changed || self.payloads.get(&id) == Some(&shown.payload) {
            return Ok(());
        }
        let what = format!("message {id} of a snapshot is not what was sent");
        Err(Violation::new("I12", what))
    }

    /// Asks for all messages of the namespaces that there are, and for their snapshots.
    fn survey(&mut self, spaces: Vec<(String, Vec<(usize, EntityId)>)>) -> Result<(), Violation> {
        let mut seen = Seen::new();
        let mut left = BTreeMap::new();
        let connection = self.connection();
        for (name, entities) in spaces {
            for (path, entity) in entities {
                for subqueue in [Subqueue::Main, Subqueue::DeadLetter] {
                    self.count += 1;
                    let token = self.count;
                    let request = RequestId { connection, token };
                    left.insert(request, Look::Messages(name.clone(), path, subqueue));
                    self.commands
                        .push(actions::peek_all(request, SubqueueId { entity, subqueue }));
                }
            }
            let request = self.request();
            left.insert(request, Look::Snapshots(name.clone()));
            self.commands
                .push(actions::list_snapshots(request, name.clone()));
            seen.insert(name, Default::default());
        }
        self.asked = Asked::Survey { seen, left };
        // There may be none.
        self.compare()
    }

    fn shown(&mut self, request: RequestId, shown: &[Browsed]) -> Result<(), Violation> {
        let Asked::Survey { seen, left } = &mut self.asked else {
            return Ok(());
        };
        let Some(Look::Messages(name, path, subqueue)) = left.remove(&request) else {
            return Ok(());
        };
        let (content, _) = seen.entry(name).or_default();
        content.extend(shown.iter().filter_map(|it| placed(path, subqueue, it)));
        for shown in shown {
            self.check_payload(path, shown)?;
        }
        self.compare()
    }

    fn snapshots_listed(
        &mut self,
        request: RequestId,
        names: BTreeSet<String>,
    ) -> Result<(), Violation> {
        let Asked::Survey { seen, left } = &mut self.asked else {
            return Ok(());
        };
        if let Some(Look::Snapshots(name)) = left.remove(&request) {
            seen.entry(name).or_default().1 = names;
        }
        self.compare()
    }

    /// If the survey is complete, it shows what must be there.
    fn compare(&mut self) -> Result<(), Violation> {
        let Asked::Survey { seen, left } = &self.asked else {
            return Ok(());
        };
        if !left.is_empty() {
            return Ok(());
        }
        let doubt = self.doubt.take();
        if *seen == visible(&self.model) {
            self.asked = Asked::Nothing;
            return Ok(());
        }
        if let Some(other) = doubt.filter(|other| *seen == visible(other)) {
            self.model = other;
            self.asked = Asked::Nothing;
            return Ok(());
        }
        let expected = visible(&self.model);
        let what = format!("the namespaces have {seen:?} and should have {expected:?}");
        Err(Violation::new("I1", what))
    }
}
