//! Refuse: the answer to a command that a fault rule refuses.
//!
//! The command is not carried out, and its client gets the output that a real refusal of this
//! command has, with the error of the rule. In a transaction it is refused as a part of that.

use crate::api::command::Command;
use crate::api::entity_error::EntityError;
use crate::api::error::{
    Eviction, RequestError, SendError, SessionError, SettleError, TransactionError,
};
use crate::api::injected_error::InjectedError;
use crate::api::output::Output;
use crate::api::publication::PublishError;
use crate::api::rule::RuleError;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::transaction::injected;

/// Refuses a command instead of carrying it out.
pub(super) fn refuse(
    directory: &mut Directory,
    command: &Command,
    error: InjectedError,
    cx: &mut Context<'_>,
) {
    match command {
        Command::Enlist {
            request,
            transaction: id,
            operation,
            refusal,
            ..
        } => {
            injected::refuse_operation(directory, *request, *id, operation, *refusal, error, cx);
        }
        Command::Discharge {
            request,
            transaction: id,
            ..
        } => injected::refuse_discharge(directory, *request, *id, error, cx),
        command => {
            if let Some(refusal) = refusal(command, error) {
                cx.emit(refusal);
            }
        }
    }
}

/// How a command is refused. `None` if its client is told nothing, or if it is no operation.
fn refusal(command: &Command, error: InjectedError) -> Option<Output> {
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
        Command::AttachSender { request, .. } => Output::SenderAttached {
            request,
            result: asked,
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
        Command::Peek { request, .. }
        | Command::PeekSession { request, .. }
        | Command::PeekSchedule { request, .. } => Output::Browsed {
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
        Command::GetSessionState { request, .. } | Command::ShowSessionState { request, .. } => {
            Output::SessionState {
                request,
                result: asked.map(|()| None),
            }
        }
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
        Command::Declare { request, .. } => Output::Declared {
            request,
            result: Err(TransactionError::Injected(error)),
        },
        // What the caller refuses in words of their own.
        Command::Enlist { .. } | Command::Discharge { .. } => return None,
        // What is no operation that a rule can name.
        Command::Subscribe { .. }
        | Command::Credit { .. }
        | Command::Detach { .. }
        | Command::LoseReceiver { .. }
        | Command::Redrive { .. }
        | Command::AdvanceClock { .. }
        | Command::CreateNode { .. }
        | Command::OpenNode { .. }
        | Command::CloseNode { .. }
        | Command::FailTransaction { .. }
        | Command::EndTransactions { .. }
        | Command::Written { .. }
        | Command::Introduce { .. }
        | Command::Disconnect { .. }
        | Command::Leave { .. }
        | Command::Loaded { .. }
        | Command::StoreSpace { .. }
        | Command::Durable
        | Command::SetLimits(_)
        | Command::Tick => return None,
    };
    Some(output)
}
