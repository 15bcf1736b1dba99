//! fe2o3-amqp against Railbus: a plain AMQP 1.0 client in Rust, by SASL PLAIN.
//!
//! The suite is the test binary `interop`. It needs a broker, which `RAILBUS_HOST` and
//! `RAILBUS_PORT` name; the script `run` next to the manifest starts it as continuous integration
//! does.
