//! The suite. Its tests share queues, so they run one at a time (`--test-threads=1`).

mod annotations;
mod batch;
mod lock;
mod management;
mod queue;
mod refusal;
mod select;
mod send;
mod settle;
mod support;
mod types;
