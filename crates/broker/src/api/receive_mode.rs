//! Receive mode: whether a message is locked for its receiver, and how, or is gone at once.

/// How a receiver takes messages. (docs/spec/amqp.md#3.3)
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReceiveMode {
    /// A message is locked until it is settled or its time is up.
    PeekLock,
    /// As `PeekLock`, but a lock has no time limit: it lasts until it is settled or its receiver
    /// goes. The message is available again then, with its delivery count raised if the connection
    /// was lost. (docs/spec/rabbitmq.md#10.5)
    LinkLock,
    /// A message is gone when it is delivered.
    ReceiveAndDelete,
}
