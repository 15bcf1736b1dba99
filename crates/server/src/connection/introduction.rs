//! Introduction: tells the broker whose connection it is, while a fault rule asks for that.
//!
//! It comes before the commands of the round in which the names are first known or have changed, so
//! the rule fits what the client asks for from then on.

use broker::{ClientNames, Command};
use dialect::Dialect;

use super::Connection;
use crate::transport::stream::Stream;

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// Puts the names of the client before its commands, unless the broker knows them.
    pub(super) fn introduce(&mut self, commands: &mut Vec<Command>) {
        if !self.server.namespaces.names_clients() {
            return;
        }
        let state = self.client.state(0);
        let client = Box::new(ClientNames {
            container_id: state.container_id,
            keys: state.client_names,
        });
        if self.introduced.as_ref() != Some(&client) {
            let connection = self.from.1;
            self.introduced = Some(client.clone());
            commands.insert(0, Command::Introduce { connection, client });
        }
    }
}
