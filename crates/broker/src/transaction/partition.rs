//! Partition: operations of a transaction on partitioned entities have one partition key.
//! (docs/spec/amqp.md#8.3; docs/spec/entities.md#19)
//!
//! The first operation with a key says which. Operations without a key take part.

use crate::api::error::TransactionError;
use crate::api::operation::Operation;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::message::partition_key::PartitionKey;
use crate::queue::Queue;
use crate::settle::end_lock::find_lock;

/// The key that a transaction has with an operation.
pub(super) fn enter(
    directory: &Directory,
    operation: &Operation,
    before: Option<PartitionKey>,
    cx: &Context<'_>,
) -> Result<Option<PartitionKey>, TransactionError> {
    let queue = directory.get(operation.entity());
    let Some(queue) = queue.filter(|queue| queue.is_partitioned) else {
        return Ok(before);
    };
    let mut keys = keys_of(queue, operation, cx).into_iter().flatten();
    keys.try_fold(before, |before, key| match before {
        Some(before) if before != key => Err(TransactionError::OtherPartitionKey),
        _ => Ok(Some(key)),
    })
}

fn keys_of(queue: &Queue, operation: &Operation, cx: &Context<'_>) -> Vec<Option<PartitionKey>> {
    match operation {
        Operation::Send { messages, .. } => {
            let keys = messages.iter().map(|message| match message.transfer_to {
                None => PartitionKey::of(&message.payload),
                Some(_) => PartitionKey::of_passing(&message.payload),
            });
            keys.collect()
        }
        Operation::Settle { tokens, .. } => {
            let locks = tokens.iter().filter_map(|token| {
                let (subqueue, number) = find_lock(queue, *token, cx)?;
                queue.sub(subqueue).locks.get(number)
            });
            locks.map(|lock| lock.partition_key).collect()
        }
        Operation::SetSessionState { session, .. } => vec![PartitionKey::new(session)],
        // The messages are looked up at the commit.
        Operation::Cancel { .. } => Vec::new(),
    }
}
