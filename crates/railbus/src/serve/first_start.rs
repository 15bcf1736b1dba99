//! First start: when a data directory was first used, which lasts with it.
//! (docs/spec/entities.md#2.5)

use std::path::Path;

use broker::Wall;
use jiff::Timestamp;

use crate::tls::files;

/// Its file, in the data directory.
const FILE: &str = "first-start";

/// When `data` was first used: what is noted there, or `now`, which is noted then. Nothing depends
/// on the note: one that is no time is replaced, and a disk without room for it stops no start.
pub fn open(data: &Path, now: Timestamp) -> Wall {
    let path = data.join(FILE);
    let noted = std::fs::read(&path).ok().and_then(|bytes| parse(&bytes));
    if noted.is_none()
        && let Err(error) = files::replace(&path, &format!("{now}\n"), files::Access::Public)
    {
        tracing::warn!(%error, "the time of the first start could not be noted in {}", path.display());
    }
    let first = noted.unwrap_or(now).as_millisecond();
    Wall(u64::try_from(first).unwrap_or_default())
}

fn parse(bytes: &[u8]) -> Option<Timestamp> {
    std::str::from_utf8(bytes).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_start_is_noted_and_stays() {
        let data = tempfile::tempdir().unwrap();
        let first = open(data.path(), at("2026-11-30T01:02:03.456Z"));
        assert_eq!(first, Wall(1_796_000_523_456));
        let note = std::fs::read_to_string(data.path().join(FILE)).unwrap();
        assert_eq!(note, "2026-11-30T01:02:03.456Z\n");
        assert_eq!(open(data.path(), at("2027-01-01T00:00:00Z")), first);
    }

    #[test]
    fn a_note_that_is_no_time_is_replaced() {
        for note in [&b""[..], b"yesterday", b"\xff"] {
            let data = tempfile::tempdir().unwrap();
            std::fs::write(data.path().join(FILE), note).unwrap();
            let first = open(data.path(), at("2026-11-30T00:00:00Z"));
            assert_eq!(open(data.path(), at("2027-01-01T00:00:00Z")), first);
        }
    }

    #[test]
    fn a_directory_that_takes_no_note_was_first_used_now() {
        let data = tempfile::tempdir().unwrap();
        let now = at("2026-11-30T01:02:03.456Z");
        assert_eq!(
            open(&data.path().join("missing"), now),
            Wall(1_796_000_523_456)
        );
    }
}
