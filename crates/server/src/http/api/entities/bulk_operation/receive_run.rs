//! Receive run: a purge or redrive that takes messages as a receiver would, a batch at a time.
//!
//! The broker itself deletes the messages of a purge without a filter; no receiver gets them.

use broker::{
    Access, Command, Delivery, Eviction, Outcome, Output, ReceiveMode, ReceiverId, RedrivenMessage,
    Wall,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::ApiError;
use super::{BulkOperation, Job};
use crate::shard::shard_client::ShardClient;

/// Messages that are asked for at a time.
const BATCH: u64 = 256;
/// Messages deleted at a time if none is received.
const DELETED_AT_ONCE: u64 = 4_000;

/// The result of a bulk operation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BulkResult {
    pub count: u64,
    /// Messages that stayed: another client has taken them meanwhile, or they do not fit any more.
    pub kept: u64,
}

/// A running job.
pub struct ReceiveRun<'a> {
    shard_client: &'a mut ShardClient,
    job: &'a Job,
    receiver: ReceiverId,
    /// The total credit so far.
    credit: u32,
    result: BulkResult,
}

impl<'a> ReceiveRun<'a> {
    pub fn new(shard_client: &'a mut ShardClient, job: &'a Job) -> Self {
        let connection = shard_client.connection();
        Self {
            receiver: ReceiverId {
                connection,
                link: 0,
            },
            shard_client,
            job,
            credit: 0,
            result: BulkResult::default(),
        }
    }

    /// Runs until the limit is reached, no message is left, or the client has gone.
    pub async fn run(&mut self, client: &oneshot::Sender<()>) -> Result<(), ApiError> {
        let receives = self.job.dry_run
            || self.job.operation == BulkOperation::Redrive
            || self.job.selector.is_some();
        if receives {
            self.attach().await?;
        }
        let most = if receives { BATCH } else { DELETED_AT_ONCE };
        let mut left = self.job.limit;
        while left > 0 && !client.is_closed() {
            let began = Instant::now();
            // With a rate, messages are taken one by one, evenly.
            let wanted = match self.job.interval.filter(|_| !self.job.dry_run) {
                Some(_) => 1,
                None => left.min(most),
            };
            let taken = match receives {
                true => self.receive(wanted).await?,
                false => self.delete(wanted).await?,
            };
            if taken < wanted {
                break;
            }
            left -= taken;
            if let Some(interval) = self.job.interval.filter(|_| !self.job.dry_run && left > 0) {
                tokio::time::sleep_until(began + interval).await;
            }
        }
        Ok(())
    }

    /// What it has done so far.
    pub fn result(&self) -> BulkResult {
        self.result
    }

    async fn attach(&mut self) -> Result<(), ApiError> {
        let receiver = self.receiver;
        let selector = self.job.selector.clone();
        let access = match self.job.operation {
            _ if self.job.dry_run => Access::Browse,
            BulkOperation::Purge => Access::Consume(ReceiveMode::ReceiveAndDelete),
            BulkOperation::Redrive => Access::Consume(ReceiveMode::PeekLock),
        };
        let command = Command::Attach {
            receiver,
            subqueue: self.job.subqueue_id(),
            access,
            selector,
        };
        Ok(self.shard_client.send_commands(vec![command]).await?)
    }

    /// Receives up to `wanted` messages and handles them. Returns how many there were.
    async fn receive(&mut self, wanted: u64) -> Result<u64, ApiError> {
        // A batch is small.
        self.credit = self.credit.wrapping_add(u32::try_from(wanted).unwrap_or(1));
        let credit = Command::Credit {
            receiver: self.receiver,
            limit: self.credit,
            drain: true,
        };
        self.shard_client.send_commands(vec![credit]).await?;
        let (mut taken, mut unanswered, mut drained) = (0, 0_u64, false);
        while !drained || unanswered > 0 {
            let mut commands = Vec::new();
            for output in self.shard_client.answers().await? {
                match output {
                    Output::Deliver { delivery, .. } => {
                        taken += 1;
                        let answers = self.take(*delivery, &mut commands);
                        unanswered += u64::from(answers);
                    }
                    Output::Drained { .. } => drained = true,
                    Output::Settled { result, .. } => {
                        unanswered -= 1;
                        match result {
                            Ok(()) => self.result.count += 1,
                            Err(_) => self.result.kept += 1,
                        }
                    }
                    Output::Evicted { reason, .. } => return Err(evicted(reason)),
                    _ => {}
                }
            }
            self.shard_client.send_commands(commands).await?;
        }
        Ok(taken)
    }

    /// Adds the commands for one message. Returns whether the broker answers them.
    fn take(&mut self, delivery: Delivery, commands: &mut Vec<Command>) -> bool {
        commands.push(Command::Written {
            connection: self.receiver.connection,
            bytes: delivery.size(),
        });
        if self.job.dry_run || self.job.operation == BulkOperation::Purge {
            self.result.count += 1;
            return false;
        }
        let (subqueue, token) = (self.job.subqueue_id(), delivery.token);
        commands.push(Command::Redrive {
            request: self.shard_client.new_request(),
            subqueue,
            token,
            message: RedrivenMessage::Unchanged(delivery.message.payload),
        });
        // Releases a message that could not be redriven; after a redrive the token names nothing.
        commands.push(Command::Settle {
            request: None,
            session: None,
            subqueue,
            token,
            outcome: Outcome::Release,
        });
        true
    }

    async fn delete(&mut self, count: u64) -> Result<u64, ApiError> {
        let subqueue = self.job.subqueue_id();
        let command = |request| Command::DeleteMessages {
            request,
            subqueue,
            session: None,
            enqueued_before: Wall(u64::MAX),
            count: usize::try_from(count).unwrap_or(usize::MAX),
        };
        let deleted = self.shard_client.ask(command, |output| match output {
            Output::Deleted { result, .. } => Some(result),
            _ => None,
        });
        let deleted = deleted.await?;
        let deleted = deleted.map_err(|error| ApiError::Bad(error.to_string()))? as u64;
        self.result.count += deleted;
        Ok(deleted)
    }
}

fn evicted(reason: Eviction) -> ApiError {
    let hint = match reason {
        Eviction::SessionRequired => "; only a purge without a filter is possible",
        Eviction::Forwarding => "; messages cannot be taken from it",
        Eviction::NotFound
        | Eviction::Disabled
        | Eviction::Exclusive
        | Eviction::Restored
        | Eviction::Injected(_)
        | Eviction::Unreadable { .. } => "",
    };
    ApiError::Bad(format!("{reason}{hint}"))
}
