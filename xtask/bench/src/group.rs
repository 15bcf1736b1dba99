//! Group: how many messages a broker commits at once, as it tells its log about once a second.
//!
//! A disk's limit means something only in groups as large: one sync costs the same for one message
//! and for hundreds.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// What makes a broker tell it.
pub const LOG_FILTER: &str = "info,rocks=debug";
/// After this long it is not coming any more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the log.
const PAUSE: Duration = Duration::from_millis(20);

/// What a broker has committed since it started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Committed {
    groups: u64,
    messages: u64,
}

/// The average number of messages in a group of the broker that writes `log` and has been sent
/// `messages`, all of them in groups as they were made for these.
pub fn average(log: &Path, messages: u64) -> Result<u64> {
    let began = Instant::now();
    loop {
        let text =
            std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
        if let Some(committed) = newest(&text).filter(|newest| newest.messages >= messages) {
            return Ok(committed.average());
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "the broker does not tell how it committed {messages} messages"
        );
        std::thread::sleep(PAUSE);
    }
}

/// What the last whole line about it says.
fn newest(log: &str) -> Option<Committed> {
    let (whole, _) = log.rsplit_once('\n')?;
    let mut lines = whole.lines().rev();
    let line = lines.find(|line| line.contains(" committed groups="))?;
    let number = |key: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    Some(Committed {
        groups: number("groups")?,
        messages: number("messages")?,
    })
}

impl Committed {
    fn average(self) -> u64 {
        let groups = self.groups.max(1);
        ((self.messages + groups / 2) / groups).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        2026-01-01T00:00:01.000000Z DEBUG committed groups=2 messages=10 bytes=9\n\
        2026-01-01T00:00:02.000000Z DEBUG committed groups=4 messages=1002 bytes=99\n\
        2026-01-01T00:00:03.000000Z  INFO stopping\n\
        2026-01-01T00:00:03.000000Z DEBUG committed groups=9 mess";

    #[test]
    fn the_last_whole_line_counts() {
        let newest = newest(LOG);
        assert_eq!(
            newest,
            Some(Committed {
                groups: 4,
                messages: 1_002
            })
        );
    }

    #[test]
    fn the_average_is_rounded_and_never_nothing() {
        let average = |groups, messages| Committed { groups, messages }.average();
        assert_eq!(average(4, 1_002), 251);
        assert_eq!(average(4, 1_001), 250);
        assert_eq!(average(4, 1), 1);
        assert_eq!(average(0, 0), 1);
    }

    #[test]
    fn a_log_without_it_says_nothing() {
        assert_eq!(newest("2026-01-01T00:00:03.000000Z  INFO stopping\n"), None);
        assert_eq!(newest(""), None);
    }
}
