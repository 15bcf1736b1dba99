//! Sweep: one fixed story in which every kind of write set occurs, told again and again, each
//! time up to another of its commits and with another ending.
//!
//! After each ending the broker starts again on what is durable, the ledger looks whether that
//! can be, and everything is taken out.

use broker::{Command, Order, ReceiveMode, Subqueue};

use super::script::{Ending, Script, Stop};
use super::{World, administration};
use crate::ledger::Ask;
use crate::message::SendOptions;
use crate::rule::{Rule, Selects};
use crate::server;
use crate::session::Session;
use crate::violation::Violation;

/// Nothing asked.
const PLAIN: SendOptions = SendOptions {
    ttl: None,
    due: None,
    key: None,
    unnamed: false,
};

/// What a sweep saw.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Swept {
    pub commits: u64,
    pub endings: u64,
}

impl World {
    /// Ends the story after each of its commits, in each way.
    ///
    /// # Errors
    /// The first violation, and after which ending.
    pub fn sweep() -> Result<Swept, Violation> {
        let commits = play(None)?;
        let mut swept = Swept {
            commits,
            endings: 0,
        };
        for commit in 1..=commits {
            for ending in [Ending::Lost, Ending::Unannounced, Ending::Announced] {
                swept.endings += 1;
                play(Some((commit, ending))).map_err(|violation| {
                    let what = format!("{}, with commit {commit} {ending:?}", violation.what);
                    Violation::new(violation.invariant, what)
                })?;
            }
        }
        Ok(swept)
    }
}

/// Plays the story up to an ending. Returns how many commits it took.
fn play(ending: Option<(u64, Ending)>) -> Result<u64, Violation> {
    let mut script = Script::new(ending)?;
    match story(&mut script) {
        Ok(()) | Err(Stop::Ended) => {
            let commits = script.commits;
            script.finish()?;
            Ok(commits)
        }
        Err(Stop::Violated(violation)) => Err(violation),
    }
}

fn story(script: &mut Script) -> Result<(), Stop> {
    settling(script)?;
    forwarding(script)?;
    publishing(script)?;
    scheduling(script)?;
    in_transactions(script)?;
    by_session(script)?;
    deleting(script)?;
    expiring(script)
}

/// Batches, and every way to end a lock.
fn settling(script: &mut Script) -> Result<(), Stop> {
    script.send("plain", &[PLAIN; 6])?;
    let given = script.take("plain", Subqueue::Main, 5, ReceiveMode::PeekLock)?;
    let asks = [
        Ask::Complete,
        Ask::Abandon,
        Ask::Release,
        Ask::DeadLetter,
        Ask::Defer,
    ];
    for (given, ask) in given.into_iter().zip(asks) {
        script.settle(given, ask)?;
    }
    script.send("fast", &[PLAIN; 2])?;
    script.take("fast", Subqueue::Main, 1, ReceiveMode::ReceiveAndDelete)?;
    script.send("expires-to-dead-letter", &[PLAIN])?;
    for _ in 0..3 {
        let path = "expires-to-dead-letter";
        let given = script.take(path, Subqueue::Main, 1, ReceiveMode::PeekLock)?;
        for given in given {
            script.settle(given, Ask::Abandon)?;
        }
    }
    Ok(())
}

/// Chains, and what is a duplicate at their ends.
fn forwarding(script: &mut Script) -> Result<(), Stop> {
    let same = SendOptions {
        key: Some(77),
        ..PLAIN
    };
    script.send("forwards", &[same, PLAIN])?;
    script.send("forwards", &[same])?;
    script.send("detects-duplicates", &[same, PLAIN])?;
    script.send("forwards-dead-letters", &[PLAIN])?;
    let path = "forwards-dead-letters";
    let given = script.take(path, Subqueue::Main, 1, ReceiveMode::PeekLock)?;
    for given in given {
        script.settle(given, Ask::DeadLetter)?;
    }
    script.send("publishes", &[PLAIN; 2])?;
    Ok(())
}

/// All numbers, so that every rule selects, leaves and fails; rules and subscriptions that come
/// and go.
fn publishing(script: &mut Script) -> Result<(), Stop> {
    script.send("news", &[PLAIN; 8])?;
    let path = "news/Subscriptions/changed";
    let given = script.take(path, Subqueue::Main, 2, ReceiveMode::PeekLock)?;
    for (given, ask) in given.into_iter().zip([Ask::Complete, Ask::DeadLetter]) {
        script.settle(given, ask)?;
    }
    for definition in administration::temporary() {
        let order = Order::ensure(vec![server::ensured(&definition)]);
        let request = script.request();
        script.play(vec![server::administer(request, 0, order)])?;
    }
    let entity = script.entity("news/Subscriptions/temporary");
    let rule = Rule::new(Selects::Remainder { by: 2, left: 0 }, true, 9);
    let request = script.request();
    script.play(vec![Command::AddRule {
        request,
        entity,
        rule: Box::new(rule.describe()),
    }])?;
    script.send("news", &[PLAIN; 4])?;
    let request = script.request();
    script.play(vec![Command::RemoveRule {
        request,
        entity,
        name: rule.name(),
    }])?;
    script.send("news", &[PLAIN; 4])?;
    script.send("temporary", &[PLAIN; 2])?;
    for path in ["news/Subscriptions/temporary", "temporary"] {
        let path = path.to_owned();
        let request = script.request();
        script.play(vec![server::administer(request, 0, Order::Remove { path })])?;
    }
    Ok(())
}

/// What is for later, what is taken back, and what is published when it is due.
fn scheduling(script: &mut Script) -> Result<(), Stop> {
    let due = script.world.now.wall.0 + 1_500;
    let later = SendOptions {
        due: Some(due),
        ..PLAIN
    };
    script.send("news", &[later, later])?;
    let ids = script.send("plain", &[later, later, later])?;
    script.cancel("plain", &ids[..2])?;
    script.wait(2)
}

/// Several entities in one commit, and a rollback.
fn in_transactions(script: &mut Script) -> Result<(), Stop> {
    script.send("plain", &[PLAIN; 3])?;
    for fail in [false, true] {
        let plain = script.take("plain", Subqueue::Main, 2, ReceiveMode::PeekLock)?;
        let path = "news/Subscriptions/all";
        let copies = script.take(path, Subqueue::Main, 2, ReceiveMode::PeekLock)?;
        script.declare()?;
        script.enlist_send("news", &[PLAIN; 2])?;
        script.enlist_send("detects-duplicates", &[PLAIN])?;
        let asks = [Ask::Complete, Ask::DeadLetter, Ask::Complete, Ask::Defer];
        for (given, ask) in plain.into_iter().chain(copies).zip(asks) {
            script.enlist_settle(given, ask)?;
        }
        script.discharge(fail)?;
    }
    Ok(())
}

/// States, a session that expires as a whole, and copies without a session.
fn by_session(script: &mut Script) -> Result<(), Stop> {
    let session = Session::numbered(3);
    script.send_within("sessions", session, &[PLAIN; 3])?;
    let (receiver, given) = script.take_session("sessions", session, 2)?;
    let (request, entity) = (script.request(), script.entity("sessions"));
    let World {
        namespaces, rng, ..
    } = &mut script.world;
    let state = namespaces[0].ledger.fresh_state(rng);
    script.play(vec![Command::SetSessionState {
        request,
        entity,
        session: bytes::Bytes::from(session.name()),
        state,
    }])?;
    for given in given {
        script.settle(given, Ask::Complete)?;
    }
    script.play(vec![Command::Detach { receiver }])?;
    script.send_within("news", session, &[PLAIN; 4])?;
    let short = SendOptions {
        ttl: Some(1_000),
        ..PLAIN
    };
    script.send_within("sessions-cloud", session, &[short, PLAIN, PLAIN, PLAIN])?;
    script.wait(2)?;
    let (receiver, _) = script.take_session("sessions-cloud", Session::numbered(4), 1)?;
    script.wait(2)?;
    script.play(vec![Command::Detach { receiver }])
}

fn deleting(script: &mut Script) -> Result<(), Stop> {
    script.send("plain", &[PLAIN; 3])?;
    script.delete("plain", 4)?;
    script.delete("news/Subscriptions/all", 3)
}

/// Deadlines, of what was sent and of copies, and locks that run out.
fn expiring(script: &mut Script) -> Result<(), Stop> {
    script.send("expires-away", &[PLAIN; 2])?;
    script.send("expires-to-dead-letter", &[PLAIN; 2])?;
    script.send("news", &[PLAIN; 3])?;
    script.take("plain", Subqueue::Main, 2, ReceiveMode::PeekLock)?;
    script.wait(17)
}
