//! Access: a token put to `$cbs` before links are asked for. (docs/spec/amqp.md#2.4)

use amqp::Value;
use endpoint::{Connection, Event, SessionId};

use crate::asking::Asking;
use crate::{Error, Token};

/// A token on its way.
pub(crate) struct Access {
    token: Token,
    asking: Asking,
    asked: bool,
    granted: bool,
}

impl Access {
    /// Asks for the links that it goes over.
    pub(crate) fn new(token: Token, engine: &mut Connection, session: SessionId) -> Self {
        let mut asking = Asking::of_node("$cbs");
        asking.attach(engine, session);
        asking.start(engine);
        Self {
            token,
            asking,
            asked: false,
            granted: false,
        }
    }

    /// Whether the broker has taken it.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Shows the token, once there is credit for it.
    pub(crate) fn act(&mut self, engine: &mut Connection) {
        if self.asked {
            return;
        }
        let properties = [
            ("operation", "put-token"),
            ("type", "servicebus.windows.net:sastoken"),
            ("name", self.token.audience.as_str()),
        ];
        let token = Value::from(self.token.text.as_str());
        self.asked = self.asking.put(&properties, &token, engine);
    }

    /// Takes the answer, if it is one.
    pub(crate) fn handle(&mut self, event: &Event, engine: &mut Connection) -> Result<(), Error> {
        let Event::Delivery {
            link,
            session,
            delivery_id,
            payload,
            ..
        } = event
        else {
            return Ok(());
        };
        if !self.asking.is_answered_by(*link) {
            return Ok(());
        }
        let answer = self
            .asking
            .answered(*session, *delivery_id, payload, engine)?;
        match answer.code {
            200..300 => self.granted = true,
            code => {
                return Err(Error::Token {
                    code: code.into(),
                    reason: answer.description().to_owned(),
                });
            }
        }
        Ok(())
    }
}
