//! Begin and end: sessions begin and end. [AMQP 2.5.1-5]
//!
//! The peer's channel numbers are its own; each is bound to a session from its begin to its end.
//! After our end everything on the session is dropped until the peer's end.

use amqp::error::condition;
use amqp::{Begin, End, Error, Performative};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::phase::Phase;
use crate::detected_error::ErrorScope;
use crate::event::Event;
use crate::id::SessionId;
use crate::link::DetachReason;
use crate::session::{Session, Stage};
use crate::slab::NONE;

/// The most that handle-max may be, since handles index a table.
const MAX_HANDLE_MAX: u32 = 65_535;

impl Connection {
    /// Client: begins a session (may be called before the peer's open arrives: frames are
    /// pipelined). When there is no channel left, `Ended` is the answer.
    pub fn begin(&mut self) -> SessionId {
        let Some(key) = self.new_session(None) else {
            // A key that was never given out: whatever is done with it does nothing.
            let session = SessionId(NONE);
            if !self.over {
                let text = "every channel up to channel-max has a session";
                let error = Some(Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
                self.events.push_back(Event::Ended { session, error });
            }
            return session;
        };
        self.send_begin(key);
        SessionId(key)
    }

    /// The peer begins a session, or answers our begin.
    pub(crate) fn handle_begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Fault> {
        if channel > self.channel_max() {
            let most = self.channel_max();
            let text = format!("channel {channel} is above the channel-max of {most}");
            return Err(Fault::connection(condition::FRAMING_ERROR, text));
        }
        if self.remote_channels.get(channel.into()).is_some() {
            let text = format!("channel {channel} already has a session");
            return Err(Fault::connection(condition::ILLEGAL_STATE, text));
        }
        match begin.remote_channel {
            Some(ours) => self.join_session(channel, ours, begin),
            None => self.answer_begin(channel, begin),
        }
    }

    fn answer_begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Fault> {
        let Some(key) = self.new_session(Some(channel)) else {
            let text = "the connection has the maximum number of sessions";
            return Err(Fault::connection(condition::RESOURCE_LIMIT_EXCEEDED, text));
        };
        self.send_begin(key);
        self.bind_session(key, channel, begin);
        Ok(())
    }

    fn join_session(&mut self, channel: u16, ours: u16, begin: &Begin) -> Result<(), Fault> {
        let offered = self.local_channels.get(ours.into()).filter(|&key| {
            let session = self.sessions.get(key);
            session.is_some_and(|session| session.remote_channel.is_none())
        });
        let Some(key) = offered else {
            let text = format!("no session on remote-channel {ours} waits for a begin");
            return Err(Fault::connection(condition::NOT_ALLOWED, text));
        };
        self.bind_session(key, channel, begin);
        Ok(())
    }

    fn bind_session(&mut self, key: u32, channel: u16, begin: &Begin) {
        self.remote_channels.bind(channel.into(), key);
        self.ended_channels.remove(&channel);
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.join(channel, begin);
        if session.stage == Stage::Active {
            let session = SessionId(key);
            self.events.push_back(Event::Begun { session });
        }
    }

    fn new_session(&mut self, remote_channel: Option<u16>) -> Option<u32> {
        let closing = matches!(
            self.phase,
            Phase::Failing | Phase::Closing | Phase::Draining | Phase::Finished
        );
        if closing || self.sessions.len() >= self.bounds.sessions {
            return None;
        }
        let channels = &mut self.local_channels;
        let channel_max = self.peer_channel_max.into();
        let config = &self.config;
        let key = self
            .sessions
            .insert(|_| Session::new(0, remote_channel, config))?;
        let channel = channels
            .bind_free(channel_max, key)
            .and_then(|channel| u16::try_from(channel).ok());
        match (channel, self.sessions.get_mut(key)) {
            (Some(channel), Some(session)) => session.local_channel = channel,
            _ => {
                self.sessions.remove(key);
                return None;
            }
        }
        Some(key)
    }

    fn send_begin(&mut self, key: u32) {
        let handle_max = self.handle_max();
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let begin = Begin {
            remote_channel: session.remote_channel,
            next_outgoing_id: session.window.next_outgoing_id,
            incoming_window: session.window.size(),
            outgoing_window: session.window.size(),
            handle_max,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        let begin = Performative::Begin(Box::new(begin));
        self.outbox.write(session.local_channel, &begin);
    }

    /// The largest handle that the peer may use.
    pub(crate) fn handle_max(&self) -> u32 {
        self.config.handle_max.min(MAX_HANDLE_MAX)
    }

    /// The peer ends a session, or answers our end.
    pub(crate) fn handle_end(&mut self, channel: u16, end: End) -> Result<(), Fault> {
        let key = self.session_on(channel)?;
        self.write_dispositions(key);
        self.forget_links(key, end.error.as_ref());
        let Some(session) = self.sessions.get_mut(key) else {
            return Ok(());
        };
        if session.stage != Stage::Ending {
            let answer = Performative::End(End { error: None });
            self.outbox.write(session.local_channel, &answer);
        }
        if !session.reported {
            let session = SessionId(key);
            let error = end.error;
            self.events.push_back(Event::Ended { session, error });
        }
        self.remove_session(key);
        Ok(())
    }

    /// Ends a session.
    pub fn end(&mut self, session: SessionId, error: Option<Error>) {
        let key = session.0;
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        if session.stage == Stage::Ending {
            return;
        }
        let channel = session.local_channel;
        self.write_dispositions(key);
        self.forget_links(key, error.as_ref());
        self.outbox
            .write(channel, &Performative::End(End { error }));
        if let Some(session) = self.sessions.get_mut(key) {
            session.stage = Stage::Ending;
        }
    }

    /// Ends a session for an error that we detected; the owner gets the event at once.
    pub(crate) fn fail_session(&mut self, key: u32, error: Error) {
        let is_alive = |session: &Session| session.stage != Stage::Ending;
        if self.sessions.get(key).is_some_and(is_alive) {
            self.record_error(ErrorScope::Session, &error);
        }
        self.end(SessionId(key), Some(error.clone()));
        if let Some(session) = self.sessions.get_mut(key)
            && !session.reported
        {
            session.reported = true;
            self.events.push_back(Event::Ended {
                session: SessionId(key),
                error: Some(error),
            });
        }
    }

    /// The session goes, and its links with it.
    fn forget_links(&mut self, key: u32, error: Option<&Error>) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        for link in std::mem::take(&mut session.links) {
            let reason = DetachReason {
                closed: true,
                error: error.cloned(),
                with_session: true,
            };
            self.report_detached(link, reason);
            self.remove_link(link);
        }
    }

    fn remove_session(&mut self, key: u32) {
        if let Some(session) = self.sessions.remove(key) {
            self.local_channels.release(session.local_channel.into());
            if let Some(channel) = session.remote_channel {
                self.remote_channels.release(channel.into());
                self.ended_channels.insert(channel);
            }
        }
    }

    /// The session that the peer's frames on `channel` belong to.
    #[inline]
    pub(crate) fn session_on(&self, channel: u16) -> Result<u32, Fault> {
        self.remote_channels.get(channel.into()).ok_or_else(|| {
            let text = format!("channel {channel} has no session");
            Fault::connection(condition::ILLEGAL_STATE, text)
        })
    }
}
