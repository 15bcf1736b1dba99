//! SASL: authentication, decided by the owner on a server, chosen by configuration on a client.
//! [AMQP 5.3]
//!
//! One init, one outcome: no mechanism here has challenges. Input behind the init waits for the
//! decision, within a limit.

use std::borrow::Cow;

use amqp::error::condition;
use amqp::sasl::{Code, SaslFrame};
use amqp::{Error, Symbol};
use bytes::Bytes;

use crate::connection::Connection;
use crate::connection::phase::Phase;
use crate::detected_error::ErrorScope;
use crate::event::Event;

/// What a peer may send ahead of the decision on its SASL init.
const MAX_SENT_AHEAD: usize = 256 << 10;

impl Connection {
    pub(crate) fn handle_sasl(&mut self, body: &Bytes) {
        match (self.phase, SaslFrame::decode(body)) {
            (Phase::SaslInit, Ok(init @ SaslFrame::Init { .. })) => self.handle_sasl_init(init),
            // No mechanism here has challenges, so there is nothing to respond to.
            (Phase::SaslInit, _) => {
                self.refuse_sasl(Code::Sys, "the server expects a sasl-init frame");
            }
            (Phase::SaslMechanisms, Ok(SaslFrame::Mechanisms(offered))) => self.choose(&offered),
            (Phase::SaslOutcome, Ok(SaslFrame::Outcome { code, .. })) => {
                self.handle_sasl_outcome(code);
            }
            _ => self.fail_without_close(Error::new(
                condition::NOT_IMPLEMENTED,
                "the SASL frame is not expected at this point",
            )),
        }
    }

    /// Server: asks the owner, if the mechanism is one that was offered.
    fn handle_sasl_init(&mut self, init: SaslFrame) {
        let SaslFrame::Init {
            mechanism,
            initial_response,
            hostname,
        } = init
        else {
            return;
        };
        if !self.config.sasl_mechanisms.contains(&mechanism) {
            let text = format!("the SASL mechanism '{mechanism}' is not offered");
            self.refuse_sasl(Code::Auth, text);
            return;
        }
        self.phase = Phase::SaslDecision;
        self.events.push_back(Event::SaslInit {
            mechanism,
            initial_response,
            hostname,
        });
    }

    /// Server: ends the SASL exchange. Any code but `Ok` ends the connection after it is written.
    pub fn finish_sasl(&mut self, code: Code) {
        if self.phase == Phase::SaslDecision {
            self.write_sasl_outcome(code);
            self.resume();
        }
    }

    /// Server: writes the outcome; only `Ok` goes on.
    fn write_sasl_outcome(&mut self, code: Code) {
        self.outbox.sasl(&SaslFrame::Outcome {
            code,
            additional_data: None,
        });
        if code == Code::Ok {
            self.phase = Phase::AmqpHeader;
        } else {
            self.end_without_close(unauthorized());
        }
    }

    /// Server: writes an outcome that the owner was not asked for. SASL has no words for the
    /// reason.
    fn refuse_sasl(&mut self, code: Code, text: impl Into<Cow<'static, str>>) {
        let error = Error::new(condition::UNAUTHORIZED_ACCESS, text);
        self.record_error(ErrorScope::Connection, &error);
        self.write_sasl_outcome(code);
    }

    /// Client: answers the server's offer with our choice.
    fn choose(&mut self, offered: &[Symbol]) {
        let choice = self.config.client_sasl.clone();
        let Some((mechanism, response)) = choice.filter(|(choice, _)| offered.contains(choice))
        else {
            self.fail_without_close(unauthorized());
            return;
        };
        self.outbox.sasl(&SaslFrame::Init {
            mechanism,
            initial_response: Some(response.into()),
            hostname: self.config.hostname.clone(),
        });
        self.phase = Phase::SaslOutcome;
    }

    fn handle_sasl_outcome(&mut self, code: Code) {
        self.events.push_back(Event::SaslOutcome(code));
        if code == Code::Ok {
            self.phase = Phase::AmqpHeader;
            self.start_amqp();
        } else {
            self.fail_without_close(unauthorized());
        }
    }

    /// Ends the connection if too much was sent ahead of the owner's SASL decision.
    pub(crate) fn check_stalled_handshake(&mut self) {
        if self.stalled_input.len() > MAX_SENT_AHEAD {
            self.fail_without_close(Error::new(
                condition::RESOURCE_LIMIT_EXCEEDED,
                format!("more than {MAX_SENT_AHEAD} bytes arrived before the SASL outcome"),
            ));
        }
    }
}

fn unauthorized() -> Error {
    Error::new(
        condition::UNAUTHORIZED_ACCESS,
        "the SASL authentication failed",
    )
}
