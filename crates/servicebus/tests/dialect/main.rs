//! The dialect as a client sees it: an AMQP endpoint, a `Client` and a real broker joined in
//! memory.
//!
//! Time is moved by hand, nothing sleeps and nothing opens a port. Tests whose names begin with
//! `rule_NN_` show the rule of that number in docs/spec/amqp.md#0.1.

mod client_frames;
mod received;
mod world;

mod attach;
mod batch_delete;
mod before_login;
mod bounds;
mod cbs;
mod connection;
mod credit;
mod duplicates;
mod dynamic_nodes;
mod expiry_times;
mod faults;
mod forwarding;
mod hostile;
mod issuers;
mod jms;
mod management;
mod message_ids;
mod namespaces;
mod partition_keys;
mod receive;
mod receiver_source;
mod refusals;
mod relay;
mod rotation;
mod sasl;
mod schedule;
mod secrets;
mod send;
mod send_via;
mod session_holder;
mod sessions;
mod status;
mod topics;
mod tracking;
mod transaction_scopes;
mod transactional_states;
mod transactions;
mod transactions_detached;
mod transactions_settled;

/// The connection of a test; no other dialect has links here.
fn shared(client: servicebus::Client) -> servicebus::Client {
    client
}
