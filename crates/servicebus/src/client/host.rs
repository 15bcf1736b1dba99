//! Host: the name by which the client has opened the connection. It may choose the namespace, and
//! error texts repeat it. The name of the client's container is kept for operators.

use amqp::Open;

use crate::client::Client;
use crate::jms::connection::JmsConnection;

/// Most characters of the names in a client's open that are kept.
const MAX_NAME: usize = 253;

impl Client {
    pub(super) fn handle_opened(&mut self, open: Open) {
        if let Err(error) = self.choose_by_host(open.hostname.as_deref()) {
            return self.close(error);
        }
        if let Err(error) = self.check_virtual_host(open.hostname.as_deref()) {
            return self.close(error);
        }
        if let Err(error) = self.open_for_others(&open) {
            return self.close(error);
        }
        self.jms.connection = JmsConnection::of(&open);
        self.container_id = printable(&open.container_id);
        if let Some(host) = open.hostname.filter(|host| !host.is_empty()) {
            self.host = Some(printable(&host));
        }
        self.idle_since = Some(self.now.mono);
    }

    /// A path as error texts name it.
    pub(crate) fn resource(&self, path: &str) -> String {
        let host = self.host.as_deref().unwrap_or("localhost");
        format!("sb://{host}/{path}")
    }
}

/// The beginning of a name that the client has made up, without control characters.
fn printable(name: &str) -> String {
    let characters = name.chars().filter(|character| !character.is_control());
    characters.take(MAX_NAME).collect()
}
