//! Staging: stores large messages before the shard gets their commands.
//!
//! A commit with a large body would make all other commits wait until the body is written. So a
//! command with a large message waits here until the store has it, on a blocking thread. Later
//! commands of the same connection wait too, which keeps their order; other connections do not
//! wait. Commands that have arrived are passed on even if their connection ends.

use std::sync::Arc;

use broker::{Command, Incoming};
use store::Stager;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle};

/// Commands that may wait before the peer is no longer read.
const MOST_HELD: usize = 1_024;

/// Stages large messages of all connections, one command at a time in the order of arrival: so
/// reads always have threads, and free disk space is not counted twice.
#[derive(Clone)]
pub struct CommandStager {
    stager: Arc<dyn Stager>,
    turn: Arc<Semaphore>,
}

impl CommandStager {
    /// To the store that `stager` belongs to.
    pub fn new(stager: Arc<dyn Stager>) -> Self {
        Self {
            stager,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    fn must_stage(&self, command: &Command) -> bool {
        is_large(command, self.stager.min_size())
    }

    async fn enqueue(self, command: Command) -> Result<Command, JoinError> {
        // It is never closed.
        let _turn = self.turn.acquire().await.ok();
        let stager = self.stager;
        tokio::task::spawn_blocking(move || stage(command, &*stager)).await
    }
}

/// The commands of one connection on their way to the shard.
pub struct Staging {
    command_stager: Option<CommandStager>,
    /// The first one that waits.
    under_way: Option<JoinHandle<Result<Command, JoinError>>>,
    /// The commands behind it.
    held: Vec<Command>,
}

impl Staging {
    /// With nothing on its way.
    pub fn new(command_stager: Option<CommandStager>) -> Self {
        Self {
            command_stager,
            under_way: None,
            held: Vec::new(),
        }
    }

    /// Takes commands, and returns the ones that need not wait.
    pub fn enqueue(&mut self, mut commands: Vec<Command>) -> Vec<Command> {
        if self.under_way.is_some() {
            self.held.append(&mut commands);
            return Vec::new();
        }
        let Some(command_stager) = &self.command_stager else {
            return commands;
        };
        let first = commands.iter().position(|it| command_stager.must_stage(it));
        let Some(first) = first else {
            return commands;
        };
        self.held = commands.split_off(first + 1);
        if let Some(large) = commands.pop() {
            self.under_way = Some(tokio::spawn(command_stager.clone().enqueue(large)));
        }
        commands
    }

    /// Waits for commands that may go on, and returns them; waits for ever if none is on its way.
    /// It is cancel-safe: commands that it has not returned are returned the next time.
    pub async fn next(&mut self) -> Vec<Command> {
        let Some(under_way) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let staged = under_way.await;
        self.under_way = None;
        let mut commands: Vec<_> = ended(staged.flatten()).into_iter().collect();
        let held = std::mem::take(&mut self.held);
        commands.append(&mut self.enqueue(held));
        commands
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// Whether the most commands wait that may.
    pub fn is_full(&self) -> bool {
        self.held.len() >= MOST_HELD
    }
}

/// A command that came alone, once the store has its large messages.
pub async fn staged(command: Command, command_stager: Option<&CommandStager>) -> Option<Command> {
    match command_stager.filter(|command_stager| command_stager.must_stage(&command)) {
        Some(command_stager) => ended(command_stager.clone().enqueue(command).await),
        None => Some(command),
    }
}

/// The result of a thread: `None` if the server has no threads any more, since it stops.
fn ended(staged: Result<Command, JoinError>) -> Option<Command> {
    match staged.map_err(JoinError::try_into_panic) {
        Ok(command) => Some(command),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

fn is_large(command: &Command, least: usize) -> bool {
    let messages = command.messages();
    messages
        .iter()
        .any(|message| message.payload.len() >= least)
}

/// Has the store take the large messages of a command. Blocks.
fn stage(mut command: Command, stager: &dyn Stager) -> Command {
    stage_messages(command.messages_mut(), stager);
    command
}

fn stage_messages(messages: &mut [Incoming], stager: &dyn Stager) {
    let least = stager.min_size();
    let payloads = messages.iter_mut().map(|message| &mut message.payload);
    for payload in payloads.filter(|payload| payload.len() >= least) {
        *payload = stager.stage(std::mem::take(payload));
    }
}
