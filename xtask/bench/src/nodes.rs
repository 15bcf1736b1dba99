//! Nodes: how many dynamic nodes a broker makes and ends in a minute.
//!
//! Each link asks for a node with its source, has its name, closes, and another link does the same.
//! A node is gone with its link, so in the end there is none. Nothing is sent.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use amqp::{Role, Source, Target};
use anyhow::{Result, bail};
use endpoint::{Connection, Event, LinkId, SessionId};

use super::client::Workload;
use super::process::{as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::Site;
use super::task::{Tally, Task};
use super::throughput;
use load::request_client;

/// Nodes that are made and ended, and a tenth of that where rows are short.
const NODES: u64 = 100_000;
/// Connections, and links of each that have a node at a time.
const CONNECTIONS: u32 = 4;
const LINKS: u32 = 10;
const ROW: &str = "dynamic nodes, made and gone";

/// Makes and ends all of them.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let place = fresh.place()?;
    let nodes = if scale.is_short() { NODES / 10 } else { NODES };
    let before = resident(place.pid)?;
    let left = Rc::new(Cell::new(nodes));
    let maker = |_| Workload::Task(Box::new(NodeMaker::new(&left)));
    let work = (0..CONNECTIONS).map(maker).collect();
    let run = throughput::execute(&place, work, scale, 0)?;
    let seconds = run.usage.elapsed.as_secs_f64().max(1e-9);
    let rate = as_f64(nodes) * 60.0 / seconds;
    results.add(ROW, "rate", Unit::PerMinute, rate);
    let processor = run.usage.broker_per_million(nodes);
    results.add(ROW, "broker", Unit::SecondsPerMillion, processor);
    let grown = resident(place.pid)? - before;
    results.add(ROW, "memory grown by", Unit::Mebibytes, grown);
    fresh.stop()
}

/// One connection that makes nodes.
struct NodeMaker {
    /// Nodes that are still to be made, shared by all connections of a run.
    left: Rc<Cell<u64>>,
    session: Option<SessionId>,
    begun: u64,
    ended: u64,
    last: Option<Instant>,
}

impl NodeMaker {
    fn new(left: &Rc<Cell<u64>>) -> Self {
        Self {
            left: Rc::clone(left),
            session: None,
            begun: 0,
            ended: 0,
            last: None,
        }
    }

    /// Asks for the next node, if one is left.
    fn make_next(&mut self, engine: &mut Connection) {
        let (Some(session), Some(left)) = (self.session, self.left.get().checked_sub(1)) else {
            return;
        };
        self.left.set(left);
        let source = Source {
            dynamic: true,
            ..Source::default()
        };
        let name = format!("bench-node-{}", self.begun);
        let link = request_client::link(&name, Role::Receiver, source, Target::default());
        engine.attach(session, link);
        self.begun += 1;
    }
}

impl Task for NodeMaker {
    fn attach(&mut self, _engine: &mut Connection, session: SessionId) {
        self.session = Some(session);
    }

    fn links(&self) -> Vec<LinkId> {
        Vec::new()
    }

    fn start(&mut self, _now: Instant, engine: &mut Connection) {
        for _ in 0..LINKS {
            self.make_next(engine);
        }
    }

    fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) -> Result<bool> {
        match event {
            Event::Attached { link, attach } => {
                let source = attach.source.as_ref();
                if source.is_none_or(|source| source.address.is_none()) {
                    bail!("a node has no name: {attach:?}");
                }
                engine.detach(*link, true, None);
            }
            Event::Detached {
                error: Some(error), ..
            } => bail!("a node was not given: {error:?}"),
            Event::Detached { .. } => {
                self.ended += 1;
                self.last = Some(now);
                self.make_next(engine);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: self.begun == self.ended,
            last: self.last,
            ..Tally::default()
        }
    }
}
