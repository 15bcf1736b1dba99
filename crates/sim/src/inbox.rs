//! Inbox: commands for the next turn of the shard, each with the namespace of its client.

use broker::Command;

/// Which of a world's namespaces it is.
pub type NamespaceIndex = usize;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct Inbox {
    commands: Vec<Command>,
    /// Of each command; `None` of those that no client gives.
    namespaces: Vec<Option<NamespaceIndex>>,
}

impl Inbox {
    /// Adds a command of a client.
    pub fn push(&mut self, namespace: NamespaceIndex, command: Command) {
        self.commands.push(command);
        self.namespaces.push(Some(namespace));
    }

    /// Adds a command that no client gives.
    pub fn push_own(&mut self, command: Command) {
        self.commands.push(command);
        self.namespaces.push(None);
    }

    /// Adds all commands of a client.
    pub fn append(&mut self, namespace: NamespaceIndex, commands: &mut Vec<Command>) {
        for command in commands.drain(..) {
            self.push(namespace, command);
        }
    }

    /// Adds commands before all others.
    pub fn insert(&mut self, commands: Vec<Command>) {
        let namespaces = commands.iter().map(|_| None);
        self.namespaces.splice(..0, namespaces);
        self.commands.splice(..0, commands);
    }

    /// The commands of one namespace.
    pub fn of(&self, namespace: NamespaceIndex) -> impl Iterator<Item = &Command> {
        let all = self.namespaces.iter().zip(&self.commands);
        let own = all.filter(move |(of, _)| **of == Some(namespace));
        own.map(|(_, command)| command)
    }

    /// All commands.
    #[must_use]
    pub fn as_slice(&self) -> &[Command] {
        &self.commands
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Takes all commands out.
    pub fn take(&mut self) -> Vec<Command> {
        self.namespaces.clear();
        std::mem::take(&mut self.commands)
    }
}
