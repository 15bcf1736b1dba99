//! Connection outputs: what a turn of the shard says to one connection, sent as one batch.

use broker::Output;
use tokio::sync::mpsc;

/// Sends a connection its batches of outputs.
pub type OutputSender = mpsc::UnboundedSender<Vec<Output>>;

/// The outputs of the present turn for a connection.
pub struct ConnectionOutputs {
    sender: OutputSender,
    batch: Vec<Output>,
    /// The length of the next batch, going by those before.
    likely: usize,
}

impl ConnectionOutputs {
    /// None yet.
    pub fn new(sender: OutputSender) -> Self {
        Self {
            sender,
            batch: Vec::new(),
            likely: 0,
        }
    }

    /// Adds an output, and returns whether it is the first. Takes what the first reserves out of
    /// the `room` of all connections.
    pub fn push(&mut self, output: Output, room: &mut usize) -> bool {
        let is_first = self.batch.is_empty();
        if is_first {
            let likely = self.likely.min(*room);
            *room -= likely;
            self.batch.reserve(likely);
        }
        self.batch.push(output);
        is_first
    }

    /// Sends them. A connection that has just ended gets none.
    pub fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.likely = batch.len().max(self.likely / 2);
        drop(self.sender.send(batch));
    }
}
