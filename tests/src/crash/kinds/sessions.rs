//! Sessions: messages of three sessions, and states that are set while the sessions are held.

use std::net::SocketAddr;
use std::sync::Mutex;

use amqp::Value;
use bytes::Bytes;
use endpoint::LinkId;

use super::{Kind, Worker, complete, lock};
use crate::crash::client::{Client, Node, Step, map};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::Draft;
use crate::crash::survey::Survey;

const QUEUE: &str = "sessions";
const SESSIONS: [&str; 3] = ["red", "green", "blue"];
/// With more messages than this, all that are received are completed.
const MOST: usize = 40;

#[derive(Debug)]
pub(super) struct Sessions {
    /// A message's place is its session, by its position above.
    messages: Mutex<Ledger<usize>>,
    /// A session's place is the number in its state.
    states: Mutex<Ledger<u64>>,
}

impl Sessions {
    pub fn new(kind: u64) -> Self {
        Self {
            messages: Mutex::new(Ledger::new(kind)),
            states: Mutex::new(Ledger::new(kind)),
        }
    }
}

impl Kind for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        let mut receivers = Vec::new();
        for session in SESSIONS {
            receivers.push(client.session(QUEUE, session)?);
        }
        Ok(Box::new(Holder {
            sender: client.sender(QUEUE)?,
            node: client.node(QUEUE)?,
            receivers,
            client,
            kind: self,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let mut found = Vec::new();
        let mut last = [0; SESSIONS.len()];
        for seen in survey.messages(QUEUE)? {
            let (number, session) = (seen.number, seen.session.unwrap_or_default());
            let place = SESSIONS.iter().position(|name| *name == session);
            let place = place.ok_or_else(|| format!("message {number} is in {session:?}"))?;
            if number < last[place] {
                return Err(format!("message {number} of {session} overtook another"));
            }
            last[place] = number;
            found.push((number, place));
        }
        lock(&self.messages).count(&found)?;
        let mut states = Vec::new();
        for (session, name) in (0..).zip(SESSIONS) {
            match survey.session_state(QUEUE, name)? {
                Value::Null => {}
                Value::Binary(state) => states.push((session, state_number(&state)?)),
                other => return Err(format!("the state of {name} is {other:?}")),
            }
        }
        let counted = lock(&self.states).count(&states);
        counted.map_err(|text| format!("states: {text}"))?;
        survey.has_no_dead_letters(QUEUE)
    }

    fn open_window(&self) {
        lock(&self.messages).open_window();
        lock(&self.states).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        Box::new(Self {
            messages: Mutex::new(lock(&self.messages).close_window()),
            states: Mutex::new(lock(&self.states).close_window()),
        })
    }
}

fn state(number: u64) -> Bytes {
    Bytes::from(format!("state {number}").repeat(40))
}

fn state_number(found: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(found);
    let number = text.split("state ").nth(1).and_then(|n| n.parse().ok());
    let is_whole = number.filter(|number| found == state(*number));
    is_whole.ok_or_else(|| format!("a state is not as it was set: {text}"))
}

struct Holder<'a> {
    client: Client,
    kind: &'a Sessions,
    sender: LinkId,
    receivers: Vec<LinkId>,
    node: Node,
}

impl Worker for Holder<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        let session = usize::try_from(dice.roll(SESSIONS.len() as u64)).unwrap_or(0);
        match dice.roll(5) {
            0 | 1 => self.send(session),
            2 | 3 => self.set_state(session, dice),
            _ => self.receive(session, dice),
        }
    }
}

impl Holder<'_> {
    fn send(&mut self, session: usize) -> Step<()> {
        let number = lock(&self.kind.messages).number();
        lock(&self.kind.messages).send(number, &[session]);
        let draft = Draft {
            session: Some(SESSIONS[session]),
            ..Draft::default()
        };
        self.client.send(self.sender, &draft.encode(number))?;
        lock(&self.kind.messages).end(number, &[Some(session)]);
        Ok(())
    }

    /// Sets the state, or clears it.
    fn set_state(&mut self, session: usize, dice: &mut Dice) -> Step<()> {
        let number = lock(&self.kind.states).number();
        let (place, value) = match dice.roll(4) {
            0 => (None, Value::Null),
            _ => (Some(number), Value::Binary(state(number))),
        };
        let key = session as u64;
        // A session without a state is not listed.
        if lock(&self.kind.states).place(key).is_none() {
            lock(&self.kind.states).begin(key, None);
        }
        lock(&self.kind.states).begin(key, place);
        let body = map([
            ("session-id", Value::from(SESSIONS[session])),
            ("session-state", value),
        ]);
        let operation = "com.microsoft:set-session-state";
        self.client.ask_well(self.node, operation, body)?;
        lock(&self.kind.states).end(key, &[place]);
        Ok(())
    }

    fn receive(&mut self, session: usize, dice: &mut Dice) -> Step<()> {
        let has_many = lock(&self.kind.messages).len() > MOST;
        for delivery in self.client.take(self.receivers[session], 3)? {
            lock(&self.kind.messages).expect(delivery.seen.number, session)?;
            if has_many || dice.roll(2) == 0 {
                complete(&mut self.client, &self.kind.messages, &delivery)?;
            }
        }
        Ok(())
    }
}
