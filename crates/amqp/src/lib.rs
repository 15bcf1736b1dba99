//! AMQP 1.0 on the wire: types, codec, frames and message sections.
//!
//! This crate knows bytes and no state. Decoding trusts nothing: every length is checked against
//! the bytes that are there, nesting against [`validate::MAX_DEPTH`], and nothing is allocated on
//! the word of a length field. Encoding writes every performative in full, trailing nulls included,
//! because one client library reads fields by position (docs/spec/amqp.md#rule-2 and #rule-3).

mod cursor;
pub mod decode;
pub mod descriptor;
pub mod encode;
pub mod error;
mod fields;
mod format;
pub mod frame;
pub mod hexadecimal;
pub mod items;
pub mod message;
pub mod performative;
pub mod sasl;
pub mod state;
pub mod symbol;
pub mod terminus;
pub mod validate;
pub mod value;

pub use decode::DecodeError;
pub use error::Error;
pub use performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, Role, Transfer,
};
pub use state::DeliveryState;
pub use symbol::Symbol;
pub use terminus::{Source, Target, TargetTerminus};
pub use value::{Map, Value};
