//! Pair: two links of one name and opposite roles, which form one management channel of a session.
//! (docs/spec/rabbitmq.md#5)
//!
//! Responses that have no credit wait for it; requests wait for those before them. Both are bounded
//! by the credit of the client's half.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use dialect::{CreditWindow, LinkContext};
use endpoint::{LinkId, Outgoing, SessionId};

use crate::links::Links;
use crate::management::Running;
use crate::management::request::Request;

/// Credit of the client's half; it is topped up at half.
pub(crate) const CREDIT: u32 = 8;
/// Largest request, in bytes.
pub(crate) const MAX_REQUEST: u64 = 1 << 20;
/// Most responses that wait for credit, and bytes of them, before the link is detached.
const MAX_RESPONSES: usize = 64;
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Most pairs of a connection; clients have one.
const MAX_PAIRS: usize = 8;

/// Names a pair of a connection; never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PairId(u64);

/// One management channel.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) request_link: Option<LinkId>,
    pub(crate) response_link: Option<LinkId>,
    pub(crate) credit_window: CreditWindow,
    pub(crate) requests: VecDeque<Request>,
    pub(crate) running: Option<Running>,
    /// Encoded, without credit so far.
    pub(crate) responses: VecDeque<Bytes>,
}

impl Pair {
    /// Whether both halves are attached.
    pub(crate) fn is_whole(&self) -> bool {
        self.request_link.is_some() && self.response_link.is_some()
    }

    fn half(&mut self, asks: bool) -> &mut Option<LinkId> {
        match asks {
            true => &mut self.request_link,
            false => &mut self.response_link,
        }
    }
}

/// The pairs of a connection, whole or half.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pairs: BTreeMap<PairId, Pair>,
    next: u64,
}

impl Pairs {
    /// Bytes of requests that wait for those before them. Responses do not count: they wait for the
    /// client, which has to be read for that.
    pub(crate) fn bytes(&self) -> usize {
        let requests = self.pairs.values().flat_map(|pair| &pair.requests);
        requests.map(|request| request.size).sum()
    }

    pub(crate) fn get_mut(&mut self, id: PairId) -> Option<&mut Pair> {
        self.pairs.get_mut(&id)
    }

    /// Adds a half to the pair of its name that lacks it, or begins another unless there are too
    /// many.
    pub(crate) fn join(
        &mut self,
        session: SessionId,
        name: &str,
        link: LinkId,
        asks: bool,
    ) -> Option<PairId> {
        let mut halves = self
            .pairs
            .iter_mut()
            .filter(|(_, pair)| pair.session == session && pair.name == name && !pair.is_whole());
        if let Some((id, pair)) =
            halves.find_map(|(id, pair)| pair.half(asks).is_none().then_some((*id, pair)))
        {
            *pair.half(asks) = Some(link);
            return Some(id);
        }
        if self.pairs.len() == MAX_PAIRS {
            return None;
        }
        let id = PairId(self.next);
        self.next += 1;
        let mut pair = Pair {
            session,
            name: name.to_owned(),
            request_link: None,
            response_link: None,
            credit_window: CreditWindow::new(CREDIT),
            requests: VecDeque::new(),
            running: None,
            responses: VecDeque::new(),
        };
        *pair.half(asks) = Some(link);
        self.pairs.insert(id, pair);
        Some(id)
    }

    /// What a pair was asked is not answered any more. Returns the link that asked.
    pub(crate) fn abandon(&mut self, id: PairId) -> Option<LinkId> {
        let pair = self.pairs.get_mut(&id)?;
        pair.running = None;
        pair.requests.clear();
        pair.credit_window = CreditWindow::new(CREDIT);
        pair.request_link
    }

    /// A half is gone; without both there is no pair.
    pub(crate) fn leave(&mut self, id: PairId, link: LinkId) {
        let Some(pair) = self.pairs.get_mut(&id) else {
            return;
        };
        for asks in [true, false] {
            let half = pair.half(asks);
            if *half == Some(link) {
                *half = None;
            }
        }
        if pair.request_link.is_none() && pair.response_link.is_none() {
            self.pairs.remove(&id);
        }
    }
}

impl Links {
    /// Sends what waits, as far as credit goes.
    pub(crate) fn send_responses(&mut self, cx: &mut LinkContext<'_>, id: PairId, drain: bool) {
        let Some(pair) = self.pairs.get_mut(id) else {
            return;
        };
        let Some(link) = pair.response_link else {
            return;
        };
        while let Some(response) = pair.responses.pop_front() {
            let outgoing = Outgoing {
                settled: true,
                ..Outgoing::default()
            };
            if cx.connection.send(link, &outgoing, &[&response]).is_err() {
                pair.responses.push_front(response);
                break;
            }
        }
        if drain {
            cx.connection.drained(link);
        }
        let waiting_bytes: usize = pair.responses.iter().map(Bytes::len).sum();
        if pair.responses.len() > MAX_RESPONSES || waiting_bytes > MAX_RESPONSE_BYTES {
            self.detach(cx, link, crate::errors::unread_responses());
        }
    }
}
