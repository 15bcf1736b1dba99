//! Browse run: a purge of scheduled or deferred messages, which no receiver gets.
//!
//! It browses the messages and takes them by their numbers. The messages of one browse are taken
//! in one step, all or none. If one of them has changed meanwhile (it became due, or it is locked)
//! they are taken one by one, and that one stays.

use broker::{Browsed, Command, MessageState, Output, ReceiveMode, RequestError, SubqueueId};
use store::SequenceNumber;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::ApiError;
use super::super::messages::matches;
use super::Job;
use super::receive_run::BulkResult;
use crate::shard::shard_client::ShardClient;

/// Messages that are looked at in one step.
const BATCH: u64 = 250;
/// The most bytes of messages that are browsed in one step.
const BROWSE_BYTES: usize = 1 << 20;

/// A running purge.
pub struct BrowseRun<'a> {
    shard_client: &'a mut ShardClient,
    job: &'a Job,
    /// Scheduled or deferred.
    state: MessageState,
    /// The next number to browse.
    next: SequenceNumber,
    result: BulkResult,
}

impl<'a> BrowseRun<'a> {
    pub fn new(shard_client: &'a mut ShardClient, job: &'a Job, state: MessageState) -> Self {
        Self {
            shard_client,
            job,
            state,
            next: SequenceNumber::FIRST,
            result: BulkResult::default(),
        }
    }

    /// Runs until the limit is reached, no message is left, or the client has gone.
    pub async fn run(&mut self, client: &oneshot::Sender<()>) -> Result<(), ApiError> {
        let interval = self.job.interval.filter(|_| !self.job.dry_run);
        let mut left = self.job.limit;
        while left > 0 && !client.is_closed() {
            let began = Instant::now();
            // With a rate, messages are taken one by one, evenly.
            let wanted = if interval.is_some() {
                1
            } else {
                left.min(BATCH)
            };
            let most = if self.job.selector.is_some() {
                BATCH
            } else {
                wanted
            };
            let found = self.browse(most).await?;
            let Some(last) = found.last() else {
                break;
            };
            self.next = last.number.next();
            let mut numbers = self.selected(&found).await;
            if let Some(beyond) = usize::try_from(wanted).ok().and_then(|at| numbers.get(at)) {
                self.next = *beyond;
                numbers.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
            }
            left -= numbers.len() as u64;
            let is_slow = !numbers.is_empty() && left > 0;
            self.take(numbers).await?;
            if let Some(interval) = interval.filter(|_| is_slow) {
                tokio::time::sleep_until(began + interval).await;
            }
        }
        Ok(())
    }

    /// What it has done so far.
    pub fn result(&self) -> BulkResult {
        self.result
    }

    async fn browse(&mut self, count: u64) -> Result<Vec<Browsed>, ApiError> {
        let (state, from) = (Some(self.state), self.next);
        let subqueue = self.job.subqueue_id();
        let command = |request| Command::Peek {
            request,
            subqueue,
            state,
            from,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            max_bytes: BROWSE_BYTES,
        };
        let found = self.shard_client.ask(command, |output| match output {
            Output::Browsed { result, .. } => Some(result),
            _ => None,
        });
        let found = found.await?;
        found.map_err(|error| ApiError::Bad(error.to_string()))
    }

    /// The numbers of the messages that the filter selects. Yields to other tasks in between, since
    /// a filter may take some milliseconds.
    async fn selected(&self, found: &[Browsed]) -> Vec<SequenceNumber> {
        let mut numbers = Vec::new();
        for message in found {
            let is_selected = match &self.job.selector {
                Some(selector) => {
                    tokio::task::yield_now().await;
                    matches(selector, message)
                }
                None => true,
            };
            if is_selected {
                numbers.push(message.number);
            }
        }
        numbers
    }

    async fn take(&mut self, numbers: Vec<SequenceNumber>) -> Result<(), ApiError> {
        let count = numbers.len() as u64;
        if self.job.dry_run || count == 0 {
            self.result.count += count;
            return Ok(());
        }
        match self.remove(numbers.clone()).await? {
            Ok(()) => self.result.count += count,
            Err(error @ (RequestError::SessionLockLost | RequestError::LockedWithSession)) => {
                let text =
                    format!("{error}; only the holder of a session can take its deferred messages");
                return Err(ApiError::Bad(text));
            }
            Err(RequestError::MessageNotFound(_)) => {
                for number in numbers {
                    match self.remove(vec![number]).await? {
                        Ok(()) => self.result.count += 1,
                        Err(RequestError::MessageNotFound(_)) => self.result.kept += 1,
                        Err(error) => return Err(ApiError::Bad(error.to_string())),
                    }
                }
            }
            Err(error) => return Err(ApiError::Bad(error.to_string())),
        }
        Ok(())
    }

    /// Removes all of the messages or none.
    async fn remove(
        &mut self,
        numbers: Vec<SequenceNumber>,
    ) -> Result<Result<(), RequestError>, ApiError> {
        let SubqueueId { entity, subqueue } = self.job.subqueue_id();
        let command = |request| match self.state {
            MessageState::Scheduled => Command::CancelScheduled {
                request,
                entity,
                numbers,
            },
            MessageState::Active | MessageState::Deferred => Command::ReceiveDeferred {
                request,
                session: None,
                subqueue: SubqueueId { entity, subqueue },
                numbers,
                mode: ReceiveMode::ReceiveAndDelete,
                max_bytes: usize::MAX,
            },
        };
        let pick = |output| match output {
            Output::Cancelled { result, .. } => Some(result),
            Output::Deferred { result, .. } => Some(result.map(drop)),
            _ => None,
        };
        Ok(self.shard_client.ask(command, pick).await?)
    }
}
