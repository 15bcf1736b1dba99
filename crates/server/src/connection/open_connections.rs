//! Open connections: the AMQP connections of a server, for operators, which look at them and close
//! them.
//!
//! A connection is asked and answers in its own time, between two rounds. So one that is stuck is
//! listed without its state, and a list that is not asked for costs nothing.
//! Invariant: a connection is listed from its start to the end of its task.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker::{ConnectionId, Wall};
use dialect::{ClientRefusal, ConnectionState};
use tokio::sync::{Notify, oneshot};

use crate::server::server_state::ServerState;

/// What an operator asks of a connection.
#[derive(Debug)]
pub enum OperatorRequest {
    Describe(oneshot::Sender<ConnectionReport>),
    Close,
}

/// A connection's answer.
#[derive(Debug)]
pub struct ConnectionReport {
    pub state: ConnectionState,
    /// The number of errors that the client was given.
    pub errors: u64,
    /// The last of them that the log has, and when it was.
    pub last_error: Option<(Wall, ClientRefusal)>,
}

/// What is known of a connection without asking it, and the way to ask.
#[derive(Debug)]
pub struct OpenConnection {
    pub id: ConnectionId,
    pub peer: SocketAddr,
    pub is_tls: bool,
    pub since: Wall,
    requests: Mutex<Vec<OperatorRequest>>,
    arrival: Notify,
}

impl OpenConnection {
    /// Asks the connection for its state. The answer is dropped if it ends before.
    pub fn describe(&self) -> oneshot::Receiver<ConnectionReport> {
        let (sender, answer) = oneshot::channel();
        self.ask(OperatorRequest::Describe(sender));
        answer
    }

    /// Has the connection closed, once what it was given is answered.
    pub fn close(&self) {
        self.ask(OperatorRequest::Close);
    }

    fn ask(&self, request: OperatorRequest) {
        let mut requests = lock(&self.requests);
        // A reader that has gone meanwhile needs no answer.
        requests.retain(|request| match request {
            OperatorRequest::Describe(sender) => !sender.is_closed(),
            OperatorRequest::Close => true,
        });
        requests.push(request);
        drop(requests);
        self.arrival.notify_one();
    }
}

/// The open connections, by id.
#[derive(Debug, Default)]
pub struct OpenConnections(Mutex<BTreeMap<ConnectionId, Arc<OpenConnection>>>);

impl OpenConnections {
    /// Lists a connection until the registration is dropped.
    fn register(
        self: &Arc<Self>,
        (peer, id): (SocketAddr, ConnectionId),
        is_tls: bool,
        since: Wall,
    ) -> Registration {
        let connection = Arc::new(OpenConnection {
            id,
            peer,
            is_tls,
            since,
            requests: Mutex::default(),
            arrival: Notify::new(),
        });
        lock(&self.0).insert(id, Arc::clone(&connection));
        Registration {
            all: Arc::clone(self),
            connection,
        }
    }

    /// The number of connections, and those from this id on, `count` at most.
    pub fn page(&self, from: ConnectionId, count: usize) -> (usize, Vec<Arc<OpenConnection>>) {
        let all = lock(&self.0);
        let page = all.range(from..).take(count);
        (all.len(), page.map(|(_, one)| Arc::clone(one)).collect())
    }

    /// A connection, if it is open.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<OpenConnection>> {
        lock(&self.0).get(&id).cloned()
    }
}

/// The connection's own side.
#[derive(Debug)]
pub struct Registration {
    all: Arc<OpenConnections>,
    connection: Arc<OpenConnection>,
}

impl Registration {
    /// Lists a connection of a server that begins now.
    pub fn of(server: &ServerState, from: (SocketAddr, ConnectionId), is_tls: bool) -> Self {
        let since = server.clock.moment().wall;
        server.open_connections.register(from, is_tls, since)
    }

    /// Waits until an operator has asked something.
    pub async fn asked(&self) {
        self.connection.arrival.notified().await;
    }

    /// What operators have asked.
    pub fn take_requests(&self) -> Vec<OperatorRequest> {
        std::mem::take(&mut *lock(&self.connection.requests))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.connection.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_listed_by_page_until_they_end() {
        let all = Arc::new(OpenConnections::default());
        let peer = ([127, 0, 0, 1], 5).into();
        let open = |id| all.register((peer, ConnectionId(id)), false, Wall(0));
        let kept = [open(3), open(5), open(8)];
        let ids = |from, count| {
            let (total, page) = all.page(ConnectionId(from), count);
            (total, page.iter().map(|one| one.id.0).collect::<Vec<_>>())
        };
        assert_eq!(ids(0, 2), (3, vec![3, 5]));
        assert_eq!(ids(6, 2), (3, vec![8]));
        drop(kept);
        assert_eq!(ids(0, 2), (0, vec![]));
    }

    #[test]
    fn requests_whose_readers_have_gone_do_not_pile_up() {
        let all = Arc::new(OpenConnections::default());
        let peer = ([127, 0, 0, 1], 5).into();
        let registration = all.register((peer, ConnectionId(1)), false, Wall(0));
        let connection = all.get(ConnectionId(1)).unwrap();
        for _ in 0..10 {
            drop(connection.describe());
        }
        let _answer = connection.describe();
        assert_eq!(registration.take_requests().len(), 1);
    }
}
