//! RabbitMQ's dialect as a client sees it: an AMQP endpoint, a connection of Service Bus's dialect
//! that shares its links, and a real broker joined in memory.
//!
//! The world is that of the tests of `servicebus`. Tests whose names begin with `rule_NN_` show the
//! rule of that number in docs/spec/rabbitmq.md#0.1.

#[path = "../../../servicebus/tests/dialect/client_frames.rs"]
#[allow(dead_code, reason = "the tests of servicebus use the rest")]
mod client_frames;
#[path = "../../../servicebus/tests/dialect/received.rs"]
#[allow(dead_code, reason = "the tests of servicebus use the rest")]
mod received;
#[path = "../../../servicebus/tests/dialect/world.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of servicebus use the rest"
)]
mod world;

mod activity;
mod attach;
mod both_dialects;
mod consume;
mod dead_letters;
mod exchanges;
mod exclusive;
mod management;
mod management_client;
mod priorities;
mod publish;
mod refusals;
mod reply_queue;
mod temporary_queue;
mod tokens;
mod virtual_hosts;

/// The connection of a test, with links of RabbitMQ's dialect.
fn shared(client: servicebus::Client) -> servicebus::Client {
    let settings = rabbitmq::Settings {
        node: "node".to_owned(),
        max_message_size: 262_144,
        dynamic_nodes: Some(&[access::RequiredRight::Manage]),
    };
    let ids = dialect::MessageIds::new([9; 16]);
    client.sharing(Box::new(rabbitmq::Links::new(settings, ids)))
}
