//! Client: one connection and one session to a broker, driven until the awaited event arrives.
//!
//! The commands for messages (`send`, `receive`, `peek`) use it. Each request waits for its answer,
//! and what else comes meanwhile stays for the next one. A request that is not answered within a
//! minute fails.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, Source, Symbol, Target, TargetTerminus, Value};
use bytes::BytesMut;
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Error;
use crate::remote::{Remote, Wire};

/// How long to wait for an answer.
const TIME_OUT: Duration = Duration::from_secs(60);
/// How long closing may take.
const CLOSE_TIME_OUT: Duration = Duration::from_secs(2);

/// One connection.
pub struct Client {
    pub authority: String,
    host: String,
    remote: Remote,
    wire: Wire,
    engine: Connection,
    session: SessionId,
    input: BytesMut,
    events: VecDeque<Event>,
    began: Instant,
    names: u64,
}

impl Client {
    /// A connection that is open.
    pub async fn open(remote: &Remote) -> Result<Self, Error> {
        let wire = remote.dial().await?;
        let host = remote.broker.host().to_owned();
        let config = Config {
            container_id: format!("railbus-{}", std::process::id()),
            hostname: Some(host.clone()),
            // Tokens authenticate it.
            client_sasl: Some((Symbol::new("ANONYMOUS"), Vec::new())),
            ..Config::default()
        };
        let mut engine = Connection::new(Side::Client, config, Mono(0));
        let session = engine.begin();
        let mut client = Self {
            authority: remote.broker.authority.clone(),
            host,
            remote: remote.clone(),
            wire,
            engine,
            session,
            input: BytesMut::new(),
            events: VecDeque::new(),
            began: Instant::now(),
            names: 0,
        };
        client
            .answer("the connection", |event| {
                matches!(event, Event::Opened(_)).then_some(Ok(()))
            })
            .await?;
        Ok(client)
    }

    /// Puts a token for an entity. (docs/spec/amqp.md#2.4)
    pub async fn show_token(&mut self, entity: &str) -> Result<(), Error> {
        let audience = format!("amqp://{}/{entity}", self.host);
        match self.remote.broker.token(&audience) {
            Some(token) => self.put_token(entity, &audience, &token).await,
            None => Ok(()),
        }
    }

    /// Opens a link and waits for it to be granted.
    pub async fn attach(&mut self, attach: Attach, what: &str) -> Result<LinkId, Error> {
        match tokio::time::timeout(TIME_OUT, self.attach_without_time_out(attach, what)).await {
            Ok(granted) => granted,
            Err(_) => Err(Error::Late(what.to_owned())),
        }
    }

    /// The same without a time-out.
    pub async fn attach_without_time_out(
        &mut self,
        attach: Attach,
        what: &str,
    ) -> Result<LinkId, Error> {
        let link = self.engine.attach(self.session, attach);
        let granted = self.wait(|event| match event {
            // A refusal has no termini, and its reason follows.
            Event::Attached { link: l, attach } if *l == link => {
                (attach.source.is_some() && attach.target.is_some()).then_some(Ok(()))
            }
            Event::Detached { link: l, error, .. } if *l == link => {
                Some(Err(refused(what, error.as_ref())))
            }
            _ => None,
        });
        granted.await.map(|()| link)
    }

    /// The attach of a link, with a unique name.
    pub fn link(&mut self, role: Role, source: Source, target: Target) -> Attach {
        self.names += 1;
        Attach {
            name: format!("railbus-{}-{}", std::process::id(), self.names),
            handle: 0,
            role,
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(match role {
                Role::Sender => ReceiverSettleMode::First,
                Role::Receiver => ReceiverSettleMode::Second,
            }),
            source: Some(Box::new(source)),
            target: Some(Box::new(TargetTerminus::Node(target))),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: (role == Role::Sender).then_some(0),
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }

    /// Sends a message, when there is credit, without waiting for its outcome.
    pub async fn send(&mut self, link: LinkId, cookie: u128, message: &[u8]) -> Result<(), Error> {
        while self.engine.send_credit(link) == 0 {
            let what = "a request for credit";
            self.answer(what, |event| match event {
                Event::Credit { link: l, .. } if *l == link => Some(Ok(())),
                Event::Detached { link: l, error, .. } if *l == link => {
                    Some(Err(refused("the link", error.as_ref())))
                }
                _ => None,
            })
            .await?;
        }
        let outgoing = Outgoing {
            tag: &cookie.to_be_bytes(),
            cookie,
            ..Outgoing::default()
        };
        let sent = self.engine.send(link, &outgoing, &[message]);
        sent.map_err(|_| Error::Late("a request for credit".to_owned()))
    }

    /// Waits until the broker has taken a message.
    pub async fn wait_until_accepted(&mut self, link: LinkId, cookie: u128) -> Result<(), Error> {
        let what = "a message";
        self.answer(what, |event| match event {
            Event::Disposed {
                cookie: c, state, ..
            } if *c == cookie => Some(match state {
                Some(DeliveryState::Accepted) => Ok(()),
                Some(DeliveryState::Rejected(error)) => Err(refused(what, error.as_ref())),
                _ => Err(Error::Silent(what.to_owned())),
            }),
            Event::Detached { link: l, error, .. } if *l == link => {
                Some(Err(refused("the link", error.as_ref())))
            }
            _ => None,
        })
        .await
    }

    /// Gives a receiver credit. With `drain` it is used up by what is there.
    pub fn credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        self.engine.set_credit(link, credit, drain);
    }

    /// Settles a message without waiting.
    pub fn dispose(&mut self, session: SessionId, delivery_id: u32, state: DeliveryState) {
        self.engine
            .dispose_received(session, delivery_id, state, false);
    }

    /// Settles a message of a response link, of which nothing comes back.
    pub fn accept(&mut self, session: SessionId, delivery_id: u32) {
        let state = DeliveryState::Accepted;
        self.engine
            .dispose_received(session, delivery_id, state, true);
    }

    /// Ends a link.
    pub fn detach(&mut self, link: LinkId) {
        self.engine.detach(link, true, None);
    }

    /// Closes the connection, without waiting long for the answer.
    pub async fn close(mut self) {
        self.engine.close(None);
        let closed = self.wait(|event| matches!(event, Event::Closed { .. }).then_some(Ok(())));
        drop(tokio::time::timeout(CLOSE_TIME_OUT, closed).await);
    }

    /// Waits with a time-out for the first event that `pick` selects; other events stay.
    pub async fn answer<T>(
        &mut self,
        what: &str,
        pick: impl FnMut(&Event) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(TIME_OUT, self.wait(pick)).await {
            Ok(answered) => answered,
            Err(_) => Err(Error::Late(what.to_owned())),
        }
    }

    /// Waits for the first event that `pick` selects; other events stay.
    pub async fn wait<T>(
        &mut self,
        mut pick: impl FnMut(&Event) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut seen = 0;
        loop {
            while let Some(event) = self.events.get(seen) {
                if let Some(found) = pick(event) {
                    drop(self.events.remove(seen));
                    return found;
                }
                if let Event::Closed { error, .. } = event {
                    let reason = match error {
                        Some(error) => describe_error(error),
                        None => "without a reason".to_owned(),
                    };
                    return Err(self.ended(reason));
                }
                seen += 1;
            }
            self.poll_once().await?;
        }
    }

    /// Writes what there is and reads what comes, or lets time pass that the engine waits for.
    async fn poll_once(&mut self) -> Result<(), Error> {
        let now = self.now();
        self.engine.handle_timeout(now);
        let output = self.engine.output(now);
        let written = self.wire.write_all(&output.split()).await;
        self.collect_events();
        if let Err(error) = written {
            return Err(self.ended(error.to_string()));
        }
        if !self.events.is_empty() && self.engine.is_finished() {
            return Ok(());
        }
        let deadline = self.engine.deadline();
        let time_out = deadline.map_or(TIME_OUT, |at| {
            Duration::from_millis(at.0.saturating_sub(now.0).max(1))
        });
        match tokio::time::timeout(time_out, self.wire.read_buf(&mut self.input)).await {
            // The engine gets the time in the next round.
            Err(_) => {}
            Ok(Ok(0)) => self.engine.handle_eof(),
            Ok(Ok(_)) => {
                let now = self.now();
                self.engine.handle_input(now, &mut self.input);
            }
            Ok(Err(error)) => return Err(self.ended(error.to_string())),
        }
        self.collect_events();
        Ok(())
    }

    fn collect_events(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            self.events.push_back(event);
        }
    }

    fn ended(&self, reason: String) -> Error {
        Error::Ended {
            authority: self.authority.clone(),
            reason,
        }
    }

    fn now(&self) -> Mono {
        Mono(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// Where a link comes from.
pub fn source(address: &str) -> Source {
    Source {
        address: Some(Value::from(address)),
        ..Source::default()
    }
}

/// Where a link goes to.
pub fn target(address: &str) -> Target {
    Target {
        address: Some(Value::from(address)),
        ..Target::default()
    }
}

/// A refusal and its reason.
pub fn refused(what: &str, error: Option<&amqp::Error>) -> Error {
    match error {
        Some(error) => Error::Refused {
            what: what.to_owned(),
            condition: error.condition.clone(),
            reason: error.description.clone().unwrap_or_default().into_owned(),
        },
        None => Error::Silent(what.to_owned()),
    }
}

/// The text of a broker's error.
pub fn describe_error(error: &amqp::Error) -> String {
    let description = error.description.as_deref().unwrap_or_default();
    format!("{}: {description}", error.condition.as_str())
}
