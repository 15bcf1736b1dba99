//! Debug: the `Debug` output of events and settings, without secrets.
//!
//! A SASL response holds a password, and a delivery may hold a token, so only their sizes are
//! shown: an event or a configuration can be logged without a leak.

use std::fmt;

use crate::config::Config;
use crate::event::Event;

/// Bytes that are not shown.
struct Redacted(usize);

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0)
    }
}

/// Writes a struct's name and fields as a derived `Debug` would.
macro_rules! show {
    ($f:expr, $name:literal $(, $field:ident = $value:expr)* $(,)?) => {
        $f.debug_struct($name)$(.field(stringify!($field), &$value))*.finish()
    };
}

impl fmt::Debug for Event {
    #[rustfmt::skip] // One line for each kind of event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SaslInit { mechanism, initial_response, hostname } => {
                let response = initial_response.as_ref().map(|bytes| Redacted(bytes.len()));
                show!(f, "SaslInit", mechanism = mechanism, initial_response = response, hostname = hostname)
            }
            Self::SaslOutcome(code) => f.debug_tuple("SaslOutcome").field(code).finish(),
            Self::Opened(open) => f.debug_tuple("Opened").field(open).finish(),
            Self::Begun { session } => show!(f, "Begun", session = session),
            Self::AttachRequested { link, session, attach } => {
                show!(f, "AttachRequested", link = link, session = session, attach = attach)
            }
            Self::Attached { link, attach } => show!(f, "Attached", link = link, attach = attach),
            Self::Credit { link, limit, drain } => {
                show!(f, "Credit", link = link, limit = limit, drain = drain)
            }
            Self::Drained { link } => show!(f, "Drained", link = link),
            Self::Delivery { link, session, delivery_id, tag, message_format, settled, state, payload } => {
                show!(
                    f, "Delivery", link = link, session = session, delivery_id = delivery_id, tag = tag,
                    message_format = message_format, settled = settled, state = state,
                    payload = Redacted(payload.len()),
                )
            }
            Self::TooLarge { link, session, delivery_id, settled, state, limit } => {
                show!(
                    f, "TooLarge", link = link, session = session, delivery_id = delivery_id,
                    settled = settled, state = state, limit = limit,
                )
            }
            Self::Disposed { link, cookie, delivery_id, settled, state } => {
                show!(
                    f, "Disposed", link = link, cookie = cookie, delivery_id = delivery_id,
                    settled = settled, state = state,
                )
            }
            Self::Missed { session, state } => show!(f, "Missed", session = session, state = state),
            Self::Updated { link, delivery_id, settled, state } => {
                show!(f, "Updated", link = link, delivery_id = delivery_id, settled = settled, state = state)
            }
            Self::Detached { link, closed, error, with_session, unsettled } => {
                let parts = (with_session, unsettled);
                show!(f, "Detached", link = link, closed = closed, error = error, with_session = parts.0, unsettled = parts.1)
            }
            Self::Ended { session, error } => show!(f, "Ended", session = session, error = error),
            Self::Closed { error, in_order } => show!(f, "Closed", error = error, in_order = in_order),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client_sasl = self.client_sasl.as_ref();
        show!(
            f,
            "Config",
            container_id = self.container_id,
            hostname = self.hostname,
            max_frame_size = self.max_frame_size,
            channel_max = self.channel_max,
            handle_max = self.handle_max,
            idle_time_out = self.idle_time_out,
            properties = self.properties,
            incoming_window = self.incoming_window,
            sasl_mechanisms = self.sasl_mechanisms,
            client_sasl =
                client_sasl.map(|(mechanism, response)| (mechanism, Redacted(response.len()))),
            sasl_required = self.sasl_required,
            max_sessions = self.max_sessions,
            max_links_per_session = self.max_links_per_session,
            max_links = self.max_links,
            max_unsettled = self.max_unsettled,
            max_partial_bytes = self.max_partial_bytes,
            handshake_time_out = self.handshake_time_out,
        )
    }
}

#[cfg(test)]
mod tests {
    use amqp::Symbol;
    use bytes::Bytes;

    use super::*;
    use crate::id::{LinkId, SessionId};

    const SECRET: &str = "topsecret";

    #[test]
    fn a_password_is_not_shown() {
        let init = Event::SaslInit {
            mechanism: Symbol::new("PLAIN"),
            initial_response: Some(Bytes::from(format!("\0root\0{SECRET}"))),
            hostname: Some("localhost".to_owned()),
        };
        let config = Config {
            client_sasl: Some((Symbol::new("PLAIN"), SECRET.as_bytes().to_vec())),
            ..Config::default()
        };
        let bytes = format!("{:?}", SECRET.as_bytes());
        for text in [format!("{init:?}"), format!("{config:?}")] {
            assert!(!text.contains(SECRET), "{text}");
            assert!(!text.contains(bytes.trim_matches(['[', ']'])), "{text}");
            assert!(text.contains("PLAIN"), "{text}");
        }
    }

    #[test]
    fn a_message_is_not_shown() {
        let delivery = Event::Delivery {
            link: LinkId(1),
            session: SessionId(2),
            delivery_id: 3,
            tag: Bytes::from_static(b"tag"),
            message_format: 0,
            settled: false,
            state: None,
            payload: Bytes::from(SECRET),
        };
        let text = format!("{delivery:?}");
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("payload: <9 bytes>"), "{text}");
    }

    #[test]
    fn every_setting_is_shown() {
        // Fields that are added later must not be forgotten.
        let text = format!("{:?}", Config::default());
        assert_eq!(text.matches(": ").count(), 17, "{text}");
    }
}
