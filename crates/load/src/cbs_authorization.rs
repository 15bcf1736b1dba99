//! CBS authorization: a token put to `$cbs` before links are requested. (docs/spec/amqp.md#2.4)

use amqp::Value;
use endpoint::{Connection, Event, SessionId};

use crate::request_client::RequestClient;
use crate::{Error, Token};

/// A token on its way.
pub(crate) struct CbsAuthorization {
    token: Token,
    request_client: RequestClient,
    requested: bool,
    granted: bool,
}

impl CbsAuthorization {
    /// Asks for the links that it goes over.
    pub(crate) fn new(token: Token, engine: &mut Connection, session: SessionId) -> Self {
        let mut request_client = RequestClient::of_node("$cbs");
        request_client.attach(engine, session);
        request_client.start(engine);
        Self {
            token,
            request_client,
            requested: false,
            granted: false,
        }
    }

    /// Whether the broker has taken it.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Shows the token, once there is credit for it.
    pub(crate) fn act(&mut self, engine: &mut Connection) {
        if self.requested {
            return;
        }
        let properties = [
            ("operation", "put-token"),
            ("type", "servicebus.windows.net:sastoken"),
            ("name", self.token.audience.as_str()),
        ];
        let token = Value::from(self.token.text.as_str());
        self.requested = self.request_client.put(&properties, &token, engine);
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
        if !self.request_client.is_response_link(*link) {
            return Ok(());
        }
        let answer =
            self.request_client
                .handle_response(*session, *delivery_id, payload, engine)?;
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
