//! Governed: a user of a namespace of its own, which has policies, subscriptions that consumers
//! make by attaching, exclusive queues, and queues that expire without receivers.
//!
//! The user asks for one thing at a time, beside all others and while things break. A policy is in
//! force from its answer on and after a crash, or not at all, with what it says of every entity
//! (I13, I1). A durable subscription stays until it is unsubscribed, a shared one has several
//! consumers and another one has a single consumer, and one that is not durable goes with its last
//! (I13). An exclusive queue lets no other connection in and goes with its own. A message is where
//! it was sent or published to, as it was sent (I12), until it is completed (I2) or may have
//! expired by a policy, or its entity may have (I1). What the short queue refuses, since it is too
//! long, is a dead letter of it and nothing else (I1, I6). In the end a policy ends all that is
//! stored but dead letters.

mod actions;
mod drain;
mod model;

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Answer, Browsed, Command, ConnectionId, Delivery, EntityError, Eviction, Mono, Outcome, Output,
    Overflow, Policy, PolicyLayer, ReceiverId, RequestId, SendError, SubqueueId, SubscribeError,
    Wall,
};

use super::{fault_rules, namespace};
use crate::inbox::NamespaceIndex;
use crate::message::{self, MessageId};
use crate::report::Report;
use crate::violation::Violation;
use model::{Model, Place, PolicyKey, REFUSING};

/// The index of the user's connections and requests, which no ledger sees.
pub(super) const INDEX: NamespaceIndex = fault_rules::INDEX + 1;
/// The name of the namespace.
pub(super) const NAME: &str = "governed";

/// Messages of an answer that may not be all.
const MOST_SHOWN: usize = 250;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Governed {
    /// What the short queue does with a message for which it is too long.
    pub overflow: Overflow,
    /// What the broker is to hear next.
    pub commands: Vec<Command>,
    /// What the user has done, and been answered.
    pub done: Report,
    count: u64,
    model: Model,
    /// A change of a policy that a crash came before the answer of.
    doubt: Option<(PolicyKey, Option<Policy>)>,
    asked: Asked,
    users: [Option<ConnectionId>; 2],
    /// Whose the exclusive queue is.
    owner: Option<ConnectionId>,
    /// Where each consumer takes its messages from.
    consumers: BTreeMap<ReceiverId, Consumer>,
    settling: BTreeMap<RequestId, (String, MessageId)>,
}

#[derive(Clone, Debug)]
struct Consumer {
    path: String,
    place: SubqueueId,
}

/// What the user waits for.
#[derive(Debug, Default)]
enum Asked {
    #[default]
    Nothing,
    Namespace,
    Entities,
    Policy(PolicyKey, Option<Policy>),
    Policies(PolicyLayer),
    Send {
        to: Vec<String>,
        id: MessageId,
    },
    Subscribe {
        path: String,
        is_refused: bool,
    },
    Unsubscribe {
        path: String,
        is_refused: bool,
    },
    Queue {
        path: String,
    },
    /// Another connection tries to receive from an exclusive queue.
    Intrude(ReceiverId),
    Survey(Survey),
}

/// A look at all messages: first at those of the entities, then at their dead letters, where a
/// message may have gone in between.
#[derive(Debug, Default)]
struct Survey {
    places: BTreeMap<String, SubqueueId>,
    left: BTreeMap<RequestId, String>,
    seen: BTreeMap<String, BTreeSet<MessageId>>,
    /// They have gone during the survey, or have more than one answer shows.
    gone: BTreeSet<String>,
    of_dead_letters: bool,
    /// What had been completed when it was asked for. It may show what went after that.
    completions: u64,
}

impl Governed {
    /// Nothing is there yet.
    pub(super) fn new() -> Self {
        Self {
            overflow: Overflow::RejectPublishDlx,
            ..Self::default()
        }
    }

    /// The broker is another one now: without connections, and without what goes with them.
    pub(super) fn crashed(&mut self) {
        self.commands.clear();
        self.consumers.clear();
        self.settling.clear();
        self.users = Default::default();
        self.owner = None;
        self.model.crashed();
        if let Asked::Policy(key, policy) = std::mem::take(&mut self.asked) {
            self.doubt = Some((key, policy));
        }
    }

    /// The clocks before each turn.
    pub(super) fn observe_clocks(&mut self, wall: Wall, mono: Mono) {
        self.model.observe_clocks(wall, mono);
    }

    fn next_connection(&mut self) -> ConnectionId {
        self.count += 1;
        ConnectionId(namespace::id_in(INDEX, self.count))
    }

    /// A request of the server's own, or of a connection.
    fn request(&mut self, connection: ConnectionId) -> RequestId {
        self.count += 1;
        let token = match connection {
            ConnectionId::SERVER => namespace::id_in(INDEX, self.count),
            _ => self.count,
        };
        RequestId { connection, token }
    }

    fn has_consumers(&self, path: &str) -> bool {
        self.consumers.values().any(|it| it.path == path)
    }

    /// The broker says something to the user.
    ///
    /// # Errors
    /// I1, I2, I12, I13 or I14.
    pub(super) fn handle_output(&mut self, output: Output) -> Result<(), Violation> {
        match output {
            Output::Administered { result, .. } => self.administered(*result),
            Output::Sent { result, .. } => self.sent(result.map(drop)),
            Output::Subscribed { receiver, result } => {
                let result = result.map(|it| SubqueueId {
                    entity: it.entity,
                    subqueue: broker::Subqueue::Main,
                });
                self.subscribed(receiver, result)
            }
            Output::Evicted { receiver, reason } => self.evicted(receiver, &reason),
            Output::Deliver { receiver, delivery } => self.delivered(receiver, &delivery),
            Output::Settled { request, result } => {
                if let Some((path, id)) = self.settling.remove(&request)
                    && result.is_ok()
                {
                    self.model.complete(&path, id);
                    self.done.governed_completions += 1;
                }
                Ok(())
            }
            Output::Browsed { request, result } => {
                // An entity may have expired meanwhile.
                self.browsed(request, result.ok())
            }
            _ => Ok(()),
        }
    }

    fn administered(&mut self, result: Result<Answer, EntityError>) -> Result<(), Violation> {
        let is_full = matches!(result, Err(EntityError::DiskNearlyFull));
        let is_done = result.is_ok();
        let asked = std::mem::take(&mut self.asked);
        let is_right = match (&asked, &result) {
            (Asked::Unsubscribe { is_refused, .. }, Err(EntityError::HasConsumers)) => *is_refused,
            (Asked::Unsubscribe { is_refused, .. }, Ok(_)) => !*is_refused,
            (Asked::Policies(_), result) => matches!(result, Ok(Answer::Policies(_))),
            (Asked::Nothing, _) => false,
            (_, result) => result.is_ok() || is_full,
        };
        if !is_right {
            let what = format!("{asked:?} was answered with {result:?}");
            return Err(Violation::new("I13", what));
        }
        match asked {
            Asked::Entities => self.model.made_all(is_done),
            Asked::Policy(key, policy) if is_done => {
                self.model.set_policy(key, policy);
                self.model.note_durable();
                self.done.policies += 1;
            }
            Asked::Unsubscribe { path, .. } if is_done => {
                self.model.places.remove(&path);
                self.done.unsubscribed += 1;
            }
            Asked::Queue { path } => {
                self.model.made(&path, is_done);
                self.done.exclusive_queues += u64::from(is_done);
            }
            Asked::Policies(layer) => {
                if let Ok(Answer::Policies(all)) = result {
                    return self.policies_listed(layer, &all);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn policies_listed(&mut self, layer: PolicyLayer, all: &[Policy]) -> Result<(), Violation> {
        let doubt = self.doubt.take_if(|(key, _)| key.0 == layer);
        if self.model.policies_of(layer) == all {
            return Ok(());
        }
        if let Some((key, policy)) = doubt {
            self.model.set_policy(key, policy);
            if self.model.policies_of(layer) == all {
                return Ok(());
            }
        }
        let expected = self.model.policies_of(layer);
        let what = format!("there are the policies {all:?} and should be {expected:?}");
        Err(Violation::new("I1", what))
    }

    fn sent(&mut self, result: Result<(), SendError>) -> Result<(), Violation> {
        let Asked::Send { to, id } = std::mem::take(&mut self.asked) else {
            let what = "a send is answered and was not asked".to_owned();
            return Err(Violation::new("I14", what));
        };
        match result {
            Ok(()) => self.model.accepted(&to, id),
            Err(SendError::DiskNearlyFull | SendError::NotFound) => self.model.refused(&to, id),
            Err(SendError::LengthExceeded { .. }) if to == [REFUSING] => {
                self.done.refused_dead_letters += 1;
                self.model.refused_as_dead_letter(id)?;
            }
            Err(error) => {
                let what = format!("a send to {to:?} was refused: {error}");
                return Err(Violation::new("I13", what));
            }
        }
        Ok(())
    }

    fn subscribed(
        &mut self,
        receiver: ReceiverId,
        result: Result<SubqueueId, SubscribeError>,
    ) -> Result<(), Violation> {
        let Asked::Subscribe { path, is_refused } = std::mem::take(&mut self.asked) else {
            let what = format!("{receiver:?} has subscribed and did not ask");
            return Err(Violation::new("I14", what));
        };
        match result {
            Ok(place) if !is_refused => {
                self.model.made(&path, true);
                self.done.subscribed += 1;
                self.consume(receiver, path, place);
                Ok(())
            }
            Err(SubscribeError::InUse(_)) if is_refused => Ok(()),
            Err(SubscribeError::Entity(EntityError::DiskNearlyFull)) => {
                self.model.made(&path, false);
                Ok(())
            }
            result => {
                let what = format!("subscribing to {path} was answered with {result:?}");
                Err(Violation::new("I13", what))
            }
        }
    }

    /// A consumer that is attached takes all that comes.
    fn consume(&mut self, receiver: ReceiverId, path: String, place: SubqueueId) {
        self.consumers.insert(receiver, Consumer { path, place });
        self.commands.push(Command::Credit {
            receiver,
            limit: 1_000,
            drain: false,
        });
    }

    fn evicted(&mut self, receiver: ReceiverId, reason: &Eviction) -> Result<(), Violation> {
        if matches!(&self.asked, Asked::Intrude(intruder) if *intruder == receiver) {
            self.asked = Asked::Nothing;
            if matches!(reason, Eviction::Exclusive) {
                return Ok(());
            }
        }
        // A queue may expire before its receiver comes.
        let known = self.consumers.remove(&receiver);
        if known.is_none() || matches!(reason, Eviction::NotFound) {
            return Ok(());
        }
        let what = format!("{receiver:?} is evicted: {reason}");
        Err(Violation::new("I13", what))
    }

    fn delivered(&mut self, receiver: ReceiverId, delivery: &Delivery) -> Result<(), Violation> {
        let connection = receiver.connection;
        let bytes = delivery.size();
        self.commands.push(Command::Written { connection, bytes });
        if matches!(&self.asked, Asked::Intrude(intruder) if *intruder == receiver) {
            let what = format!("{receiver:?} receives from a queue of another connection");
            return Err(Violation::new("I3", what));
        }
        let Some(Consumer { path, place }) = self.consumers.get(&receiver).cloned() else {
            return Ok(());
        };
        let completions = self.model.completions();
        let shown = &delivery.message;
        let id = self.model.check_shown(&path, shown, completions, false)?;
        // Some are held until their consumer goes.
        if id.is_multiple_of(4) {
            return Ok(());
        }
        let request = self.request(connection);
        self.model.completes(&path, id);
        self.settling.insert(request, (path, id));
        self.commands.push(Command::Settle {
            request: Some(request),
            session: None,
            subqueue: place,
            token: delivery.token,
            outcome: Outcome::Complete,
        });
        Ok(())
    }

    fn browsed(
        &mut self,
        request: RequestId,
        shown: Option<Vec<Browsed>>,
    ) -> Result<(), Violation> {
        let Asked::Survey(survey) = &mut self.asked else {
            return Ok(());
        };
        let Some(path) = survey.left.remove(&request) else {
            return Ok(());
        };
        let is_there = self.model.places.get(&path).is_some_and(Place::stays);
        let all = shown.filter(|all| is_there && all.len() < MOST_SHOWN);
        if all.is_none() {
            survey.gone.insert(path.clone());
        }
        let seen = survey.seen.entry(path.clone()).or_default();
        let mut here = BTreeSet::new();
        for shown in all.iter().flatten() {
            let (completions, dead) = (survey.completions, survey.of_dead_letters);
            let id = self.model.check_shown(&path, shown, completions, dead)?;
            if !here.insert(id) {
                let what = format!("message {id} is twice in one subqueue of {path}");
                return Err(Violation::new("I6", what));
            }
        }
        seen.append(&mut here);
        if survey.left.is_empty() {
            self.surveyed()?;
        }
        Ok(())
    }

    /// One half of a survey is done.
    fn surveyed(&mut self) -> Result<(), Violation> {
        let Asked::Survey(mut survey) = std::mem::take(&mut self.asked) else {
            return Ok(());
        };
        if !survey.of_dead_letters {
            survey.of_dead_letters = true;
            self.look(survey);
            return Ok(());
        }
        let places = survey.places.keys();
        for path in places.filter(|path| !survey.gone.contains(*path)) {
            let none = BTreeSet::new();
            let seen = survey.seen.get(path).unwrap_or(&none);
            self.model.check_all_seen(path, seen)?;
        }
        Ok(())
    }

    /// Asks for all messages of one kind of subqueue.
    fn look(&mut self, mut survey: Survey) {
        let connection = self.next_connection();
        survey.completions = self.model.completions();
        for (path, place) in survey.places.clone() {
            let request = self.request(connection);
            survey.left.insert(request, path);
            let subqueue = match survey.of_dead_letters {
                true => broker::Subqueue::DeadLetter,
                false => broker::Subqueue::Main,
            };
            let place = SubqueueId { subqueue, ..place };
            self.commands
                .push(super::snapshots::peek_all(request, place));
        }
        self.asked = Asked::Survey(survey);
    }
}

/// The message that is shown.
fn id_of(shown: &Browsed) -> MessageId {
    message::id_of(&shown.payload).unwrap_or_default()
}
