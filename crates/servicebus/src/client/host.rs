//! Host: the name by which the client has opened the connection. It may choose the namespace, and
//! error texts repeat it.

use amqp::Open;

use crate::client::Client;
use crate::jms::connection::JmsConnection;

/// Most characters of a host name that error texts repeat.
const MAX_HOST: usize = 253;

impl Client {
    pub(super) fn handle_opened(&mut self, open: Open) {
        if let Err(error) = self.choose_by_host(open.hostname.as_deref()) {
            return self.close(error);
        }
        if let Err(error) = self.open_for_others(&open) {
            return self.close(error);
        }
        self.jms.connection = JmsConnection::of(&open);
        if let Some(host) = open.hostname.filter(|host| !host.is_empty()) {
            self.host = host
                .chars()
                .filter(|character| !character.is_control())
                .take(MAX_HOST)
                .collect();
        }
        self.idle_since = Some(self.now.mono);
    }

    /// A path as error texts name it.
    pub(crate) fn resource(&self, path: &str) -> String {
        format!("sb://{}/{path}", self.host)
    }
}
