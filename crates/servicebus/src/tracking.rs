//! Tracking: the end of the text of an error, by which a client's report leads to the line of the
//! log. (docs/spec/amqp.md#10)
//!
//! Each error that a client is given gets an id of its own, before it is noted for the log, so both
//! have the same one. Ids come from the connection's seed and times from its clock.

use amqp::Error;
use broker::Wall;
use dialect::MessageIds;
use jiff::Timestamp;

use crate::client::Client;
use crate::errors;

impl Client {
    /// The error as the client is given it.
    pub(crate) fn tracked(&mut self, mut error: Error) -> Error {
        // The cloud's text for it has no tracking id either.
        if !errors::is_session_required(&error) {
            let text = error.description.unwrap_or_default();
            let text = with_id(&text, &mut self.ids, self.now.wall);
            error.description = Some(text.into());
        }
        error
    }
}

/// A text with an id of its own at its end.
pub(crate) fn with_id(text: &str, ids: &mut MessageIds, now: Wall) -> String {
    let id = ids.next_id();
    let id = str::from_utf8(&id).expect("hexadecimal digits are ASCII");
    let [a, b, c, d, e] = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    let time = i64::try_from(now.0).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(time).unwrap_or(Timestamp::MAX);
    let time = time.strftime("%Y-%m-%dT%H:%M:%S");
    format!("{text} TrackingId:{a}-{b}-{c}-{d}-{e}_G2, SystemTracker:railbus, Timestamp:{time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_an_id_of_its_own_and_the_time() {
        let mut ids = MessageIds::new([7; 16]);
        let now = Wall(1_700_000_000_999);
        let [one, other] = [(); 2].map(|()| with_id("Why.", &mut ids, now));
        assert_ne!(one, other);
        let id = one
            .strip_prefix("Why. TrackingId:")
            .expect("the text is first");
        let (id, rest) = id.split_at(36);
        assert!(
            id.chars().all(|c| c == '-' || c.is_ascii_hexdigit()),
            "{id}"
        );
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        let expected = "_G2, SystemTracker:railbus, Timestamp:2023-11-14T22:13:20";
        assert_eq!(rest, expected);
    }
}
