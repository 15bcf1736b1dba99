//! What every dialect of AMQP shares, without IO: the contract between the server and one
//! connection ([`Dialect`]), and the parts of a connection that no dialect defines anew.
//!
//! A dialect is a crate beside `servicebus`. It translates between an AMQP endpoint and the broker,
//! and knows no other dialect.

pub mod claims;
pub mod clock_reading;
pub mod connection;
pub mod connection_state;
pub mod credit;
pub mod credit_window;
pub mod injected_condition;
pub mod link_owner;
pub mod message_ids;
pub mod namespaces;
pub mod pending_requests;
pub mod refusals;
pub mod refused_credentials;
pub mod retry_time;

pub use claims::{Claims, RenewalError, TooManyTokens};
pub use clock_reading::ClockReading;
pub use connection::Dialect;
pub use connection_state::{ConnectionState, ForcedClose};
pub use credit::{Credit, CreditUpdate};
pub use credit_window::CreditWindow;
pub use injected_condition::condition_of;
pub use link_owner::{LinkContext, LinkOwner, owner_token};
pub use message_ids::{GivenId, MessageIds};
pub use namespaces::{KeyOwner, Namespaces, virtual_host};
pub use pending_requests::PendingRequests;
pub use refusals::{ClientRefusal, Origin, Refusals, Severity, Subject};
pub use refused_credentials::RefusedCredentials;
pub use retry_time::{InvalidRetryTime, is_retry_time, retry_time};
