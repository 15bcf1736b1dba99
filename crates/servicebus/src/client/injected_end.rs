//! Injected end: a fault rule ends the link that asked for something, its session or the whole
//! connection.
//!
//! What was asked for is not carried out and has no other answer. A link that has gone meanwhile
//! takes nothing else with it.

use access::Operation;
use amqp::Error;
use broker::{InjectedEnd, Requester, TransactionId};
use dialect::{Origin, Subject, owner_token};
use endpoint::LinkId;

use crate::client::Client;
use crate::client::refusals::path_of;
use crate::errors;
use crate::pending_requests::PendingRequest;

impl Client {
    pub(super) fn handle_ended(&mut self, requester: Requester, end: InjectedEnd) {
        let Some(link) = self.take_asking_link(requester) else {
            return;
        };
        let resource = self.links.get(link).map_or("", |link| &link.resource);
        match end {
            InjectedEnd::Link(error) => self.end_link(link, errors::injected(error, resource)),
            InjectedEnd::Session(error) => {
                self.end_session(link, errors::injected(error, resource));
            }
            InjectedEnd::Connection(error) => self.close(errors::injected(error, "")),
            InjectedEnd::Token => self.expire_token(link),
        }
    }

    /// The link that asked, if it is there. A request of it is not pending any more.
    fn take_asking_link(&mut self, requester: Requester) -> Option<LinkId> {
        match requester {
            Requester::Receiver(receiver) => Some(LinkId(receiver.link)),
            Requester::Request(request) if owner_token(request).is_some() => {
                self.with_owner(|owner, _| owner.take_request(request))?
            }
            Requester::Request(request) => {
                let pending = self.pending_requests.remove(request.token)?;
                match &pending {
                    PendingRequest::Enlist(enlisted) => self.transactions.refused(enlisted),
                    // It is rolled back with its coordinator, which ends with the link. One that
                    // another discharge has the broker decide on is not.
                    PendingRequest::Discharge(discharge)
                        if !self.is_discharged(discharge.transaction) =>
                    {
                        self.transactions.end(discharge.transaction);
                    }
                    _ => {}
                }
                Some(pending.link())
            }
        }
    }

    /// Whether the broker still has to answer a discharge of a transaction.
    fn is_discharged(&self, transaction: TransactionId) -> bool {
        self.pending_requests.iter().any(|pending| {
            matches!(pending, PendingRequest::Discharge(it) if it.transaction == transaction)
        })
    }

    fn end_link(&mut self, link: LinkId, error: Error) {
        if self.is_others(link) {
            self.with_owner(|owner, cx| owner.detach_link(cx, link, error));
            self.start_idle_timer();
        } else if let Some(pending_attach) = self.cancel_pending_attach(link) {
            self.refuse_pending_attach(&pending_attach, error);
        } else {
            self.detach(link, error);
        }
    }

    /// The tokens for a link's entity end, and with them what has no other right. The link itself
    /// ends in any case: it may have come by a key, which does not expire.
    fn expire_token(&mut self, link: LinkId) {
        let (path, error) = self.expired_link(link);
        if !path.is_empty() {
            self.claims.remove_covering(&path);
        }
        self.recheck_links(Self::token_expired);
        self.check_others();
        self.end_link(link, error);
    }

    /// The path of a link in lower case, nothing of one that is of no entity, and the error of its
    /// token's expiry.
    fn expired_link(&self, link: LinkId) -> (String, Error) {
        if let Some(link) = self.links.get(link) {
            let error = Self::token_expired(&link.name, link.required_right, &link.resource);
            return (link.path.clone(), error);
        }
        let right = Operation::Receive.required_right();
        let (name, path) = match self.pending_attaches.get(&link) {
            Some(pending_attach) => (pending_attach.name(), pending_attach.path.as_str()),
            None => {
                let owner = self.link_owner.as_ref();
                let address = owner.and_then(|owner| owner.address(link));
                ("", address.unwrap_or_default())
            }
        };
        let error = Self::token_expired(name, right, &self.resource(path));
        (path.to_lowercase(), error)
    }

    /// Takes the credit of all links that the client sends messages on, or gives it back.
    pub(super) fn handle_credit_withheld(&mut self, withheld: bool) {
        self.withholds_credit = withheld;
        for link in self.links.ids() {
            if let Some(sender) = self.links.sender(link) {
                let credit = sender.credit_window.room();
                let credit = if withheld { 0 } else { credit };
                self.connection.set_credit(link, credit, false);
            }
        }
    }

    fn end_session(&mut self, link: LinkId, error: Error) {
        let Some(session) = self.connection.session_of(link) else {
            return;
        };
        let error = self.tracked(error);
        let known = self.links.get(link);
        let origin = Origin {
            link: known.map(|link| link.name.as_str()),
            entity: known.and_then(|link| path_of(&link.resource)),
            ..Origin::default()
        };
        self.refusals.note(Subject::Session, origin, &error);
        self.connection.end(session, Some(error));
    }
}
