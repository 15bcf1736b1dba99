//! Disturb: what other clients do to a broker, on connections and in a thread of their own, while a
//! quiet queue is measured.

use std::sync::mpsc::Sender as Channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::client::{Client, Workload};
use super::deleter::Deleter;
use super::drive;
use super::giant::Giant;
use super::http_client::HttpClient;
use super::place::Place;
use super::process::as_f64;
use super::scale::Scale;
use super::site;
use super::slow::Slow;
use super::{memory, namespaces, traffic};
use load::bodies;
use load::message_sections::MessageSections;
use load::sender::{Plan, Sender};

/// The longest a disturbance may take.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Messages a second to a queue that is hardly emptied.
const RATE: u32 = 1_000;
/// Messages in the queue before the measurement.
const WAITING: u64 = 20_000;
/// The namespace that is deleted, and its key.
const OTHER: &str = "other";
/// What a purge deletes with one request: as the SDKs ask of Premium.
const BATCH: i32 = 4_000;

/// What is disturbed, and for how long.
pub struct Scene {
    /// The broker.
    pub place: Place,
    /// How much, and for how many seconds.
    pub scale: Scale,
    /// Told when all is prepared.
    pub ready: Channel<()>,
}

/// Prepares, says so, disturbs, and returns when that is over how many messages a second that were.
pub type Disturbance = fn(&Scene) -> Result<f64>;

/// All of them, by name.
pub const DISTURBANCES: [(&str, Disturbance); 6] = [
    ("a queue with a slow receiver", slow),
    ("a connection that never reads", unread),
    ("a purge", purge),
    ("the deletion of a namespace", deletion),
    ("messages of 100 MiB", giants),
    ("as many bytes over a bare socket", bare),
];

/// A queue grows while its receiver keeps a thousand locked and completes ten a second.
fn slow(scene: &Scene) -> Result<f64> {
    let queue = site::pair(1);
    let mut clients = vec![
        scene.connect(feeder(&queue, scene.scale))?,
        scene.connect(Workload::Task(Box::new(Slow::new(&queue, 1_000))))?,
    ];
    drive::open(&mut clients)?;
    scene.begin()?;
    scene.workload(&mut clients)
}

/// A queue grows while its receiver wants all of it and reads nothing.
fn unread(scene: &Scene) -> Result<f64> {
    let queue = site::pair(1);
    memory::fill_queue(&scene.place, &queue, WAITING)?;
    let mut deaf = [scene.connect(Workload::Task(Box::new(Slow::new(&queue, u32::MAX / 4))))?];
    let mut clients = vec![scene.connect(feeder(&queue, scene.scale))?];
    drive::open(&mut deaf)?;
    drive::open(&mut clients)?;
    scene.begin()?;
    let [deaf] = &mut deaf;
    deaf.start(Instant::now());
    let left = deaf.act(Instant::now())?;
    ensure!(!left, "a flow did not fit in an empty socket");
    scene.workload(&mut clients)
}

/// A large queue is emptied by batch deletes.
fn purge(scene: &Scene) -> Result<f64> {
    memory::fill(&scene.place, scene.scale.backlog)?;
    let deleter = Deleter::new(site::QUEUE, BATCH);
    let mut clients = vec![scene.connect(Workload::Delete(Box::new(deleter)))?];
    drive::open(&mut clients)?;
    scene.begin()?;
    let began = drive::purge(&mut clients, PATIENCE)?;
    let took = began.elapsed().as_secs_f64();
    if let Workload::Delete(deleter) = clients[0].workload() {
        let (deleted, all) = (deleter.deleted(), scene.scale.backlog);
        ensure!(deleted == all, "{deleted} of {all} messages were deleted");
    }
    Ok(as_f64(scene.scale.backlog) / took)
}

/// A namespace is deleted whose only queue is as large. Its messages leave the disk afterwards, so
/// the measurement goes on for a while.
fn deletion(scene: &Scene) -> Result<f64> {
    let mut http = HttpClient::connect(scene.place.address)?;
    let created = namespaces::create(&mut http, OTHER)?;
    let key = created
        .split_once("SharedAccessKey=")
        .and_then(|(_, rest)| rest.split_once(';'));
    let (key, _) = key.context("the broker says the key of a new namespace")?;
    http.ask(
        "PUT",
        &format!("namespaces/{OTHER}/entities/{}", site::QUEUE),
        r#"{"max-size-in-megabytes":5120}"#,
    )?;
    let place = Place {
        sasl: Place::plain(OTHER, key),
        ..scene.place.clone()
    };
    memory::fill(&place, scene.scale.backlog)?;
    scene.begin()?;
    let began = Instant::now();
    http.ask("DELETE", &format!("namespaces/{OTHER}"), "")?;
    let took = began.elapsed();
    let rest = Duration::from_secs(scene.scale.seconds).saturating_sub(took);
    thread::sleep(rest);
    Ok(as_f64(scene.scale.backlog) / took.as_secs_f64())
}

/// The largest messages are sent, one after the other.
fn giants(scene: &Scene) -> Result<f64> {
    let mut clients = vec![scene.connect(Workload::Task(Box::new(Giant::new(site::HUGE))))?];
    drive::open(&mut clients)?;
    scene.begin()?;
    scene.workload(&mut clients)
}

/// What the machine does for such messages, without the broker.
fn bare(scene: &Scene) -> Result<f64> {
    scene.begin()?;
    traffic::send(bodies::block(), Duration::from_secs(scene.scale.seconds))
}

impl Scene {
    fn connect(&self, work: Workload) -> Result<Client> {
        Client::connect(&self.place, work)
    }

    /// Says that all is prepared.
    fn begin(&self) -> Result<()> {
        Ok(self.ready.send(())?)
    }

    /// Lets `clients` work until the time is over and all they have sent is answered.
    fn workload(&self, clients: &mut [Client]) -> Result<f64> {
        let end = Instant::now() + Duration::from_secs(self.scale.seconds);
        let began = drive::work_until(clients, PATIENCE, |_| Instant::now() >= end)?;
        let accepted = clients.iter().map(|client| match client.workload() {
            Workload::Send(sender) => sender.accepted(),
            Workload::Task(task) => task.tally().accepted,
            _ => 0,
        });
        Ok(as_f64(accepted.sum()) / began.elapsed().as_secs_f64())
    }
}

/// Sends at a fixed rate, for longer than the measurement takes.
fn feeder(queue: &str, scale: Scale) -> Workload {
    Workload::Send(Box::new(Sender::new(Plan {
        queue: queue.to_owned(),
        size: 1_024,
        count: u64::from(RATE) * (scale.seconds + 1),
        in_flight: u64::MAX,
        sections: MessageSections::Plain,
        every: Some(Duration::from_secs(1) / RATE),
    })))
}
