//! Transport: from a listening socket to the byte stream of one connection.
//!
//! Listeners limit and accept connections; TLS and WebSocket unwrap their bytes. What the bytes
//! mean is decided in `connection` and `http`.

pub mod binding;
pub mod client_certificate;
pub mod connection_limiter;
pub mod listener;
pub mod stream;
pub mod tls;
pub mod websocket;
