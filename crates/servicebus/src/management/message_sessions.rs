//! Get-message-sessions: the ids of sessions, one page per request. (docs/spec/amqp.md#7.3)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId, SessionPage, Wall};

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::request_response::response::{self, Status};

/// Clients send the last time that their clocks can represent for all sessions with messages or a
/// state: the end of the year 9999.
const ALL_SINCE: i64 = 253_402_300_799_000;
/// Most ids of one page, and what it may take.
const MAX_TOP: usize = 10_000;
const MAX_BYTES: usize = 1 << 20;
/// A page without a size.
const DEFAULT_TOP: i64 = 100;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    super::check_sessions(entity_ref)?;
    let updated_after = match body.integer("last-updated-time")? {
        Some(since) if since < ALL_SINCE => Some(Wall(u64::try_from(since).unwrap_or_default())),
        _ => None,
    };
    let count = |key: &str, default: i64| {
        let count = body.integer(key)?.unwrap_or(default);
        let text = format!("The argument '{key}' must not be negative.");
        usize::try_from(count).map_err(|_| errors::bad_argument(text))
    };
    let (skip, top) = (count("skip", 0)?, count("top", DEFAULT_TOP)?.min(MAX_TOP));
    let entity = entity_ref.id;
    let command = Box::new(move |request| Command::ListSessions {
        request,
        entity,
        updated_after,
        skip,
        top,
    });
    Ok(Prepared {
        command,
        count: top,
        answer: MAX_BYTES,
        without_bodies: false,
    })
}

impl Client {
    /// The broker has listed sessions. None is 204 with an empty map.
    pub(crate) fn handle_sessions(
        &mut self,
        request: RequestId,
        result: Result<SessionPage, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(page) if page.ids.is_empty() => {
                self.answer_request(&pending, Status::no_content(), response::empty_map);
            }
            Ok(page) => {
                let ids = page.ids.iter().map(|id| String::from_utf8_lossy(id));
                let ids = ids.map(|id| Value::String(id.into_owned())).collect();
                let skip = i32::try_from(page.skip).unwrap_or(i32::MAX);
                let map = [
                    (Value::from("skip"), Value::Int(skip)),
                    (Value::from("sessions-ids"), Value::Array(ids)),
                ];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
