//! Staging: large messages are with the store before the shard hears of them.
//!
//! A commit with a large body in it would have everybody wait until that is written. So a command
//! with such a message waits here until the store has it, on a blocking thread, and those that came
//! behind it on the same connection wait too: what one peer says is heard in its order. Others do
//! not wait. Nothing is lost with the connection: what has arrived is handed on.

use std::sync::Arc;

use broker::{Command, Incoming, Operation};
use store::Stager;
use tokio::task::{JoinError, JoinHandle};

/// Commands that may wait before the peer is no longer read.
const MOST_HELD: usize = 1_024;

/// The commands of one connection on their way to the shard.
pub struct Staging {
    stager: Option<Arc<dyn Stager>>,
    /// The first one that waits.
    under_way: Option<JoinHandle<Command>>,
    /// Those behind it.
    held: Vec<Command>,
}

impl Staging {
    /// With nothing on its way.
    pub fn new(stager: Option<Arc<dyn Stager>>) -> Self {
        Self {
            stager,
            under_way: None,
            held: Vec::new(),
        }
    }

    /// Takes commands, and returns those that need not wait.
    pub fn pass(&mut self, mut commands: Vec<Command>) -> Vec<Command> {
        if self.under_way.is_some() {
            self.held.append(&mut commands);
            return Vec::new();
        }
        let Some(stager) = &self.stager else {
            return commands;
        };
        let least = stager.least();
        let Some(first) = commands.iter().position(|command| is_large(command, least)) else {
            return commands;
        };
        self.held = commands.split_off(first + 1);
        if let Some(large) = commands.pop() {
            let stager = Arc::clone(stager);
            self.under_way = Some(tokio::task::spawn_blocking(move || stage(large, &*stager)));
        }
        commands
    }

    /// Waits until something may go on, and returns it; for ever if nothing is on its way. What it
    /// has not returned when it is dropped it returns the next time.
    pub async fn next(&mut self) -> Vec<Command> {
        let Some(under_way) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let staged = under_way.await;
        self.under_way = None;
        let mut commands: Vec<_> = ended(staged).into_iter().collect();
        let held = std::mem::take(&mut self.held);
        commands.append(&mut self.pass(held));
        commands
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// Whether so many commands wait that there should not be more.
    pub fn is_full(&self) -> bool {
        self.held.len() >= MOST_HELD
    }
}

/// A command that came alone, once the store has its large messages.
pub async fn staged(command: Command, stager: Option<&Arc<dyn Stager>>) -> Option<Command> {
    let Some(stager) = stager.filter(|stager| is_large(&command, stager.least())) else {
        return Some(command);
    };
    let stager = Arc::clone(stager);
    ended(tokio::task::spawn_blocking(move || stage(command, &*stager)).await)
}

/// What a thread has come back with: nothing if the server has no threads any more, since it stops.
fn ended(staged: Result<Command, JoinError>) -> Option<Command> {
    match staged.map_err(JoinError::try_into_panic) {
        Ok(command) => Some(command),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

fn is_large(command: &Command, least: usize) -> bool {
    match command {
        Command::Send { messages, .. }
        | Command::Enlist {
            operation: Operation::Send { messages, .. },
            ..
        } => messages
            .iter()
            .any(|message| message.payload.len() >= least),
        _ => false,
    }
}

/// Has the store take the large messages of a command. Blocks.
fn stage(mut command: Command, stager: &dyn Stager) -> Command {
    if let Command::Send { messages, .. }
    | Command::Enlist {
        operation: Operation::Send { messages, .. },
        ..
    } = &mut command
    {
        stage_messages(messages, stager);
    }
    command
}

fn stage_messages(messages: &mut [Incoming], stager: &dyn Stager) {
    let least = stager.least();
    let payloads = messages.iter_mut().map(|message| &mut message.payload);
    for payload in payloads.filter(|payload| payload.len() >= least) {
        *payload = stager.stage(std::mem::take(payload));
    }
}
