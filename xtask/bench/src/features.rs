//! Features: what each costs that costs something per message, on one queue at full speed.

use anyhow::Result;

use super::client::Workload;
use super::deferrer::Deferrer;
use super::results::Results;
use super::scale::Scale;
use super::site::{self, Fresh, Site};
use super::throughput::{self, IN_FLIGHT};
use super::topics;
use super::transactor::Transactor;
use load::message_sections::MessageSections;
use load::receiver::Receiver;
use load::sender::{Plan, Sender};

/// Connections that each have a transaction, which together have about as much in flight.
const TRANSACTORS: u64 = 10;

/// Sends and receives at once, once for each feature that costs something per message.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let take = |queue| Workload::Receive(Receiver::new(queue));
    let session = Workload::Receive(Receiver::of_session(site::SESSIONS, site::SESSION));
    let defer = Workload::Defer(Box::new(Deferrer::new(site::QUEUE)));
    let send =
        |queue, sections| Workload::Send(Box::new(Sender::new(part(queue, sections, scale))));
    let rows = [
        (
            "plain",
            send(site::QUEUE, scale.sections),
            take(site::QUEUE),
        ),
        (
            "time to live",
            send(site::QUEUE, MessageSections::Ttl),
            take(site::QUEUE),
        ),
        (
            "duplicate detection",
            send(site::ONCE, MessageSections::Id),
            take(site::ONCE),
        ),
        (
            "forwarded",
            send(site::START, scale.sections),
            take(site::END),
        ),
        (
            "one session",
            send(site::SESSIONS, MessageSections::Session),
            session,
        ),
        (
            "scheduled",
            send(site::QUEUE, MessageSections::Schedule),
            take(site::QUEUE),
        ),
        ("deferred", send(site::QUEUE, scale.sections), defer),
    ];
    for (name, sender, receiver) in rows {
        feature(site.fresh()?, scale, name, vec![sender, receiver], results)?;
    }
    // What happens to each message is recorded; in the other rows it is not.
    let work = vec![send(site::QUEUE, scale.sections), take(site::QUEUE)];
    let recorded = site.fresh_set("lineage = true")?;
    feature(recorded, scale, "recorded for traces", work, results)?;
    let subscription = format!("{}/Subscriptions/s0", topics::TOPIC);
    let filtered = vec![
        send(topics::TOPIC, MessageSections::Key(1)),
        take(&subscription),
    ];
    let topic = site.fresh_with(&topics::sql(1))?;
    feature(topic, scale, "SQL filter", filtered, results)?;
    // One transaction after the other would measure nothing but how long a sync takes.
    let mut work = vec![take(site::QUEUE)];
    for _ in 0..TRANSACTORS {
        let mut plan = part(site::QUEUE, scale.sections, scale);
        plan.count /= TRANSACTORS;
        work.push(Workload::Transact(Box::new(Transactor::new(plan))));
    }
    feature(site.fresh()?, scale, "transactional", work, results)
}

/// What is sent for one feature.
fn part(queue: &str, sections: MessageSections, scale: Scale) -> Plan {
    Plan {
        queue: queue.to_owned(),
        size: 1_024,
        count: scale.messages / 4,
        in_flight: IN_FLIGHT,
        sections,
        every: None,
    }
}

fn feature(
    fresh: Fresh,
    scale: Scale,
    name: &str,
    work: Vec<Workload>,
    results: &mut Results,
) -> Result<()> {
    let run = throughput::execute(&fresh.place()?, work, scale, 0)?;
    let row = format!("send, receive, settle 1 KiB, {name}");
    throughput::record(results, &row, run.settled, &run);
    fresh.stop()
}
