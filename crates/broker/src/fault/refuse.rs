//! Refuse: the answer to a command that is not carried out.

use crate::api::command::Command;
use crate::api::entity_error::EntityError;
use crate::api::fault::InjectedError;
use crate::api::output::{Eviction, Output, RequestError, SendError, SessionError, SettleError};
use crate::api::publication::PublishError;
use crate::api::rule::RuleError;

/// How a command is refused. `None` if its client is told nothing, or if it is no operation.
pub(super) fn refusal(command: &Command, error: InjectedError) -> Option<Output> {
    let asked = Err(RequestError::Injected(error));
    let output = match *command {
        Command::Send { request, .. } => Output::Sent {
            request,
            result: Err(SendError::Injected(error)),
            duplicates: Vec::new(),
        },
        Command::Attach { receiver, .. } => Output::Evicted {
            receiver,
            reason: Eviction::Injected(error),
        },
        Command::AcceptSession { receiver, .. } => Output::SessionRefused {
            receiver,
            error: SessionError::Injected(error),
        },
        Command::Settle { request, .. } => Output::Settled {
            request: request?,
            result: Err(SettleError::Injected(error)),
        },
        Command::SettleMany { request, .. } => Output::Settled {
            request,
            result: Err(SettleError::Injected(error)),
        },
        Command::Renew { request, .. } => Output::Renewed {
            request,
            result: asked.map(|()| 0),
        },
        Command::Peek { request, .. } | Command::PeekSession { request, .. } => Output::Browsed {
            request,
            result: asked.map(|()| Vec::new()),
        },
        Command::ReceiveDeferred { request, .. } => Output::Deferred {
            request,
            result: asked.map(|()| Vec::new()),
        },
        Command::CancelScheduled { request, .. } => Output::Cancelled {
            request,
            result: asked,
        },
        Command::DeleteMessages { request, .. } => Output::Deleted {
            request,
            result: asked.map(|()| 0),
        },
        Command::RenewSession { request, .. } => Output::SessionRenewed {
            request,
            result: asked.map(|()| 0),
        },
        Command::GetSessionState { request, .. } => Output::SessionState {
            request,
            result: asked.map(|()| None),
        },
        Command::SetSessionState { request, .. } => Output::SessionStateSet {
            request,
            result: asked,
        },
        Command::ListSessions { request, .. } => Output::Sessions {
            request,
            result: Err(RequestError::Injected(error)),
        },
        Command::Publish { request, .. } => Output::Published {
            request,
            result: Err(PublishError::Injected(error)),
        },
        Command::AddRule { request, .. } | Command::RemoveRule { request, .. } => {
            Output::RuleChanged {
                request,
                result: Err(RuleError::Injected(error)),
            }
        }
        Command::ListRules { request, .. } => Output::Rules {
            request,
            result: Err(RuleError::Injected(error)),
        },
        Command::Administer { request, .. } => Output::Administered {
            request,
            result: Box::new(Err(EntityError::Injected(error))),
        },
        _ => return None,
    };
    Some(output)
}
