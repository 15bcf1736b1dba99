//! The protocol engine from outside: frames and owner's acts in, frames and events out.

mod bounds;
mod closing;
mod conversation;
mod credit;
mod disposition;
mod ending;
mod failing;
mod grammar;
mod handshake;
mod idle;
mod limits;
mod link;
mod random;
mod session;
mod support;
mod transfer;
