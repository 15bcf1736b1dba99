//! Deleter: batch deletes on a queue's management node, one after the other until one finds
//! nothing.
//!
//! That is what the SDKs' purge is.

use std::time::{SystemTime, UNIX_EPOCH};

use amqp::Value;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use endpoint::{Connection, LinkId, SessionId};

use load::request_client::RequestClient;

const DELETE: &str = "com.microsoft:batch-delete-messages";
const COUNT: &str = "message-count";

/// A purge on its way.
pub struct Deleter {
    request_client: RequestClient,
    batch: i32,
    started: bool,
    done: bool,
    deleted: u64,
}

impl Deleter {
    /// A purge of `queue` by `batch` messages at a time that has not started.
    pub fn new(queue: &str, batch: i32) -> Self {
        Self {
            request_client: RequestClient::new(queue),
            batch,
            started: false,
            done: false,
            deleted: 0,
        }
    }

    /// Asks for both links.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        self.request_client.attach(engine, session);
    }

    /// Its links, once asked for.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.request_client.links()
    }

    /// Lets it delete.
    pub fn start(&mut self, engine: &mut Connection) {
        self.started = true;
        self.request_client.start(engine);
    }

    /// Asks for the next batch, unless one is on its way.
    pub fn send(&mut self, engine: &mut Connection) {
        if self.started && !self.done && !self.request_client.is_waiting() {
            // What was enqueued by now, and not before it.
            let before = Value::Timestamp(now_ms().saturating_add(1));
            let body = [
                (Value::from(COUNT), Value::Int(self.batch)),
                (Value::from("enqueued-time-utc"), before),
            ];
            self.request_client.request(DELETE, &body, engine);
        }
    }

    /// Takes an answer.
    pub fn handle_response(
        &mut self,
        (session, delivery_id): (SessionId, u32),
        payload: &Bytes,
        engine: &mut Connection,
    ) -> Result<()> {
        let answer = self
            .request_client
            .handle_response(session, delivery_id, payload, engine)?;
        match answer.code {
            204 => self.done = true,
            200 => {
                let count = answer.entry(COUNT)?.and_then(|count| count.as_integer());
                self.deleted += u64::try_from(count.context("an answer without a count")?)?;
            }
            _ => bail!("a batch delete was refused: {:?}", answer.fields),
        }
        Ok(())
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Messages that went.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
