//! State request: what a holder wants of its session's state, until that has been read.
//!
//! A new state is checked for all that can be known without the old one. What is done once that is
//! there is in `state.rs`.

use bytes::Bytes;

use crate::api::error::{RequestError, SendError};
use crate::api::id::RequestId;
use crate::api::output::Output;
use crate::api::settings::QueueSettings;

/// What is wanted of a state.
#[derive(Debug)]
pub(crate) enum StateRequest {
    Get(RequestId),
    /// `None` clears it.
    Set(RequestId, Option<Bytes>),
}

impl StateRequest {
    pub(super) fn refusal(self, error: RequestError) -> Output {
        match self {
            Self::Get(request) => Output::SessionState {
                request,
                result: Err(error),
            },
            Self::Set(request, _) => Output::SessionStateSet {
                request,
                result: Err(error),
            },
        }
    }

    pub(super) fn check(
        &self,
        settings: &QueueSettings,
        nearly_full: bool,
    ) -> Result<(), RequestError> {
        match self {
            Self::Get(_) => Ok(()),
            Self::Set(_, state) => check(state.as_ref(), settings, nearly_full),
        }
    }

    pub(super) fn request(&self) -> RequestId {
        match self {
            Self::Get(request) | Self::Set(request, _) => *request,
        }
    }
}

/// Whether a state could be set, its entity's size aside.
pub(crate) fn check(
    state: Option<&Bytes>,
    settings: &QueueSettings,
    nearly_full: bool,
) -> Result<(), RequestError> {
    let Some(state) = state else {
        return Ok(());
    };
    let limit = settings.max_message_size.unwrap_or(u64::MAX);
    let size = state.len() as u64;
    if size > limit {
        return Err(RequestError::Refused(SendError::TooLarge { size, limit }));
    }
    if nearly_full {
        return Err(RequestError::Refused(SendError::DiskNearlyFull));
    }
    Ok(())
}
