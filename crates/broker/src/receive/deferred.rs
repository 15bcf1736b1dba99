//! Deferred: messages that were put aside, fetched by number, all or none.
//!
//! In peek-lock mode they are locked; when that ends without completion they are deferred again.
//! A number that is unknown, or locked at any moment until the answer, is not there.
//! (docs/spec/entities.md#12)

use std::collections::{BTreeMap, BTreeSet};

use store::{Query, SequenceNumber, StoredMessage};

use crate::api::command::ReceiveMode;
use crate::api::id::{ReadId, RequestId, Subqueue, SubqueueId};
use crate::api::output::{Delivery, LockTime, MessageState, Output, RequestError};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::Message;
use crate::message::bodies::Body;
use crate::message::stored::{Rows, body_of};
use crate::queue::Queue;
use crate::subqueue::lock::{Holder, Origin};

/// Most messages of one request.
const MOST: usize = 1_000;

/// A request that waits for the messages.
#[derive(Debug)]
pub(crate) struct Retrieval {
    pub place: SubqueueId,
    request: RequestId,
    /// As asked for, each once.
    numbers: Vec<SequenceNumber>,
    mode: ReceiveMode,
    max_bytes: usize,
}

/// Asks for deferred messages.
pub(crate) fn receive(
    directory: &mut Directory,
    request: RequestId,
    place: SubqueueId,
    mut numbers: Vec<SequenceNumber>,
    mode: ReceiveMode,
    max_bytes: usize,
    cx: &mut Context<'_>,
) {
    let mut seen = BTreeSet::new();
    numbers.retain(|number| seen.insert(*number));
    let retrieval = Retrieval {
        place,
        request,
        numbers,
        mode,
        max_bytes,
    };
    let queue = directory.receivable(place.entity);
    let started = queue.and_then(|queue| queue.start_retrieval(retrieval, cx));
    if let Err(error) = started {
        refuse(request, error, cx);
    }
}

fn refuse(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Deferred { request, result });
}

impl Retrieval {
    pub(crate) fn refuse(&self, error: RequestError, cx: &mut Context<'_>) {
        refuse(self.request, error, cx);
    }

    /// Nothing is taken that could not be answered: one message always can be. A read that was
    /// cut short has reached the bound.
    fn check_size(&self, rows: &[StoredMessage]) -> Result<(), RequestError> {
        let bodies = rows.iter().filter_map(|row| row.body.as_ref());
        let bytes: usize = bodies.map(bytes::Bytes::len).sum();
        let cut_short = bytes >= self.max_bytes && rows.len() < self.numbers.len();
        if cut_short || rows.len() > 1 && bytes > self.max_bytes {
            return Err(RequestError::AnswerTooLarge);
        }
        Ok(())
    }
}

impl Queue {
    fn start_retrieval(
        &mut self,
        retrieval: Retrieval,
        cx: &mut Context<'_>,
    ) -> Result<(), RequestError> {
        if retrieval.numbers.len() > MOST {
            let text = format!("more than {MOST} messages in one request");
            return Err(RequestError::Invalid(text));
        }
        let query = Query::Points {
            entity: self.id,
            part: retrieval.place.subqueue.deferred_part(),
            numbers: retrieval.numbers.clone(),
            bodies: true,
            max_bytes: retrieval.max_bytes,
        };
        let locks = &self.sub(retrieval.place.subqueue).locks;
        if let Some(number) = retrieval.numbers.iter().find(|n| locks.contains(**n)) {
            return Err(RequestError::MessageNotFound(*number));
        }
        let connection = retrieval.request.connection;
        cx.shared.clients.note_place(connection, retrieval.place);
        let read = cx.ask(query, Purpose::Deferred(Box::new(retrieval)));
        self.journal.begin(read);
        Ok(())
    }

    /// The messages were read.
    pub(crate) fn deferred_loaded(
        &mut self,
        read: ReadId,
        retrieval: &Retrieval,
        rows: Rows,
        cx: &mut Context<'_>,
    ) {
        let touched = self.journal.finish(read);
        if !cx.shared.clients.is_connected(retrieval.request.connection) {
            // The receiver that asked for them is gone.
            return;
        }
        let result = self
            .check_retrieval(retrieval, rows, &touched, cx)
            .map(|messages| self.hand_over(retrieval, messages, cx));
        cx.emit(Output::Deferred {
            request: retrieval.request,
            result,
        });
    }

    /// All of the messages, if all can be had.
    fn check_retrieval(
        &self,
        retrieval: &Retrieval,
        rows: Rows,
        touched: &BTreeSet<SequenceNumber>,
        cx: &Context<'_>,
    ) -> Result<Vec<(StoredMessage, Body)>, RequestError> {
        let rows = rows.map_err(|error| RequestError::Invalid(error.to_string()))?;
        let locks = &self.sub(retrieval.place.subqueue).locks;
        let settings = &cx.shared.settings;
        let room = settings.max_locked.saturating_sub(rows.len());
        if locks.len() > room || locks.is_full(settings.max_locked, settings.locked_bytes) {
            return Err(RequestError::Invalid(
                "too many messages are locked".to_owned(),
            ));
        }
        retrieval.check_size(&rows)?;
        let mut rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.number, row)).collect();
        let mut messages = Vec::with_capacity(retrieval.numbers.len());
        for &number in &retrieval.numbers {
            let free = !touched.contains(&number) && !locks.contains(number);
            let row = rows.remove(&number).filter(|_| free);
            let row = row.ok_or(RequestError::MessageNotFound(number))?;
            self.check_holder(retrieval, &row, cx)?;
            let body = body_of(&row).ok_or(RequestError::MessageNotFound(number))?;
            messages.push((row, body));
        }
        Ok(messages)
    }

    /// Messages of a session are its holder's only.
    fn check_holder(
        &self,
        retrieval: &Retrieval,
        row: &StoredMessage,
        cx: &Context<'_>,
    ) -> Result<(), RequestError> {
        let sessions = self.sessions.is_some() && retrieval.place.subqueue == Subqueue::Main;
        let connection = retrieval.request.connection;
        let held = || self.held_by(connection, row.row.session_hash, cx);
        if sessions && held().is_none() {
            return Err(RequestError::SessionLockLost);
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        retrieval: &Retrieval,
        messages: Vec<(StoredMessage, Body)>,
        cx: &mut Context<'_>,
    ) -> Vec<Delivery> {
        messages
            .into_iter()
            .map(|(stored, body)| self.hand_over_one(retrieval, &stored, body, cx))
            .collect()
    }

    fn hand_over_one(
        &mut self,
        retrieval: &Retrieval,
        stored: &StoredMessage,
        body: Body,
        cx: &mut Context<'_>,
    ) -> Delivery {
        let subqueue: Subqueue = retrieval.place.subqueue;
        let number = stored.number;
        let token = cx.shared.tokens.next(number);
        let message = Message {
            number,
            part: stored.part,
            row: stored.row,
            delivery_count: stored.delivery_count,
            patch: body.patch,
        };
        let mut shown = message.shown(MessageState::Deferred, body.payload);
        shown.lock = match retrieval.mode {
            ReceiveMode::PeekLock => {
                let holder = Some(Holder {
                    connection: retrieval.request.connection,
                    link: None,
                });
                let origin = Origin::Deferred;
                let hash = message.row.session_hash;
                Some(match self.held_by(retrieval.request.connection, hash, cx) {
                    Some(session) if subqueue == Subqueue::Main => {
                        self.lock_of(session, message, token, holder, origin, cx)
                    }
                    _ => LockTime::Own(self.lock(subqueue, message, token, holder, origin, cx)),
                })
            }
            ReceiveMode::ReceiveAndDelete => {
                self.traffic.complete();
                let patched = message.patch.is_some();
                self.erase(&message, patched, cx);
                None
            }
        };
        self.traffic.deliver();
        Delivery {
            entity: self.id,
            message: shown,
            token,
            rests_on: cx.commit(),
        }
    }
}
