//! Outputs: what the broker says to this connection, each passed to the part that waits for it.

use broker::Output;

use crate::client::Client;

impl Client {
    /// Handles an output for a link or a request of this dialect.
    pub(super) fn handle_own_output(&mut self, output: Output) {
        match output {
            Output::Sent {
                request,
                result,
                duplicates,
            } => self.handle_sent(request, result, &duplicates),
            Output::Deliver { receiver, delivery } => self.handle_deliver(receiver, delivery),
            Output::Settled { request, result } => self.handle_settled(request, result),
            Output::Drained { receiver } => self.handle_drained(receiver),
            Output::Renewed { request, result } => self.handle_renewed(request, result),
            Output::Browsed { request, result } => self.handle_browsed(request, result),
            Output::Deferred { request, result } => self.handle_deferred(request, result),
            Output::Cancelled { request, result } => self.handle_cancelled(request, result),
            Output::SenderAttached { request, result } => {
                self.handle_sender_attached(request, result);
            }
            Output::Deleted { request, result } => self.handle_deleted(request, result),
            Output::Evicted { receiver, reason } => self.handle_evicted(receiver, reason),
            Output::SessionAccepted {
                receiver,
                session_id,
                lock_ms,
            } => self.handle_session_accepted(receiver, &session_id, lock_ms),
            Output::SessionRefused { receiver, error } => {
                self.handle_session_refused(receiver, error);
            }
            Output::SessionLost { receiver } => self.handle_session_lost(receiver),
            Output::SessionRenewed { request, result } => {
                self.handle_session_renewed(request, result);
            }
            Output::SessionState { request, result } => self.handle_state(request, result),
            Output::SessionStateSet { request, result } => self.handle_state_set(request, result),
            Output::Sessions { request, result } => self.handle_sessions(request, result),
            Output::Declared { request, result } => self.handle_declared(request, result),
            Output::Discharged { request, result } => self.handle_discharged(request, result),
            Output::TimedOut { transaction, .. } => drop(self.transactions.end(transaction)),
            Output::RuleChanged { request, result } => self.handle_rule_changed(request, result),
            Output::Rules { request, result } => self.handle_rules(request, result),
            Output::Administered { request, result } => {
                self.handle_administered(request, *result);
            }
            Output::Subscribed { receiver, result } => self.handle_subscribed(receiver, *result),
            // The directory tells of the first three. Nothing here publishes to routers, no lock
            // lasts with its link, and a dropped connection is told nothing. The end of a lock is
            // reported to the server alone.
            Output::EntityChanged(_)
            | Output::Dropped { .. }
            | Output::RulesChanged(..)
            | Output::NamespaceChanged(_)
            | Output::DeliveryTimedOut { .. }
            | Output::LockEnded { .. }
            | Output::Activity { .. }
            | Output::Published { .. } => {}
            Output::CreditWithheld { withheld, .. } => self.handle_credit_withheld(withheld),
            Output::Ended { requester, end } => self.handle_ended(requester, end),
            Output::NodeOpened { link, result } => self.handle_node_opened(link, result),
            Output::NodeClosed { link } => self.handle_node_closed(link),
        }
    }
}
