//! Counts: a table of entities, one row for each, sorted and filtered here so that a reader takes
//! one page of thousands.

use std::cmp::Reverse;

use broker::{EntityKind, QueueInfo};
use serde_json::{Value as Json, json};
use store::Part;

use crate::http::request::query;

/// Rows of an answer, unless it is asked for fewer or more.
const COUNT: u64 = 100;
/// Rows of an answer at most.
const MOST: u64 = 1_000;

/// Which rows are asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CountsQuery {
    /// A part of the path, in lower case.
    search: String,
    /// A whole path, in lower case.
    path: Option<String>,
    kind: Option<EntityKind>,
    sort: Column,
    is_descending: bool,
    skip: usize,
    count: usize,
}

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    Path,
    Active,
    DeadLetter,
    Scheduled,
    Deferred,
    Bytes,
    Receivers,
    Age,
}

impl CountsQuery {
    /// Parses a query.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut parsed = Self {
            search: String::new(),
            path: None,
            kind: None,
            sort: Column::Path,
            is_descending: false,
            skip: 0,
            count: 0,
        };
        let mut count = COUNT;
        for (name, value) in query::parameters(query) {
            let value = value?;
            match name {
                "search" => parsed.search = value.to_lowercase(),
                "path" => parsed.path = Some(value.to_lowercase()),
                "kind" => parsed.kind = Some(kind(&value)?),
                "sort" => parsed.sort = Column::parse(&value)?,
                "order" => parsed.is_descending = is_descending(&value)?,
                "skip" => {
                    let skip = query::number(name, &value, 0..=u64::MAX)?;
                    parsed.skip = usize::try_from(skip).unwrap_or(usize::MAX);
                }
                "count" => count = query::number(name, &value, 1..=MOST)?,
                other => {
                    return Err(format!(
                        "unknown parameter `{other}`: the parameters are search, path, kind, sort, order, skip and count"
                    ));
                }
            }
        }
        parsed.count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(parsed)
    }

    /// The path of the only entity that fits.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The page of those entities that fit, and how many fit.
    pub fn table(&self, mut entities: Vec<QueueInfo>) -> Json {
        entities.retain(|queue| self.fits(queue));
        match self.sort {
            Column::Path => entities.sort_by_cached_key(|queue| queue.path.to_lowercase()),
            column => entities
                .sort_by_cached_key(|queue| (column.of(queue), Reverse(queue.path.to_lowercase()))),
        }
        if self.is_descending {
            entities.reverse();
        }
        let total = entities.len();
        let page = entities.iter().skip(self.skip).take(self.count);
        json!({"entities": page.map(row).collect::<Vec<_>>(), "total": total})
    }

    fn fits(&self, queue: &QueueInfo) -> bool {
        let path = queue.path.to_lowercase();
        path.contains(&self.search)
            && self.kind.is_none_or(|kind| kind == queue.kind)
            && self.path.as_ref().is_none_or(|wanted| *wanted == path)
    }
}

impl Column {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "path" => Self::Path,
            "active" => Self::Active,
            "dead-letter" => Self::DeadLetter,
            "scheduled" => Self::Scheduled,
            "deferred" => Self::Deferred,
            "bytes" => Self::Bytes,
            "receivers" => Self::Receivers,
            "oldest-age" => Self::Age,
            other => {
                return Err(format!(
                    "sort `{other}` is not path, active, dead-letter, scheduled, deferred, bytes, receivers or oldest-age"
                ));
            }
        })
    }

    fn of(self, queue: &QueueInfo) -> u64 {
        match self {
            Self::Path => 0,
            Self::Active => queue.active,
            Self::DeadLetter => queue.dead_letter,
            Self::Scheduled => queue.scheduled,
            Self::Deferred => queue.deferred,
            Self::Bytes => queue.size(),
            Self::Receivers => queue.receivers,
            Self::Age => queue.oldest_age_ms.unwrap_or(0),
        }
    }
}

fn kind(text: &str) -> Result<EntityKind, String> {
    let kinds = [
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ];
    let kind = kinds.into_iter().find(|kind| kind.to_string() == text);
    kind.ok_or_else(|| format!("kind `{text}` is not queue, topic or subscription"))
}

fn is_descending(text: &str) -> Result<bool, String> {
    match text {
        "ascending" => Ok(false),
        "descending" => Ok(true),
        other => Err(format!("order `{other}` is not ascending or descending")),
    }
}

/// An entity as a row.
pub fn row(queue: &QueueInfo) -> Json {
    json!({
        "path": queue.path,
        "kind": queue.kind.to_string(),
        "status": queue.settings.status,
        "requires-session": queue.settings.requires_session,
        "active": queue.active,
        "locked": queue.locked,
        "dead-letter": queue.dead_letter,
        "deferred": queue.deferred,
        "scheduled": queue.scheduled,
        "transfer": queue.transfer,
        "transfer-dead-letter": queue.transfer_dead_letter,
        "bytes": queue.size(),
        "max-bytes": queue.settings.max_size,
        "forward-to": queue.settings.forward_to,
        "forward-dead-lettered-messages-to": queue.settings.forward_dead_lettered_messages_to,
        "receivers": queue.receivers,
        "oldest-age-ms": queue.oldest_age_ms,
        "arrived": queue.traffic.arrived(Part::Active),
        "delivered": queue.traffic.delivered,
        "completed": queue.traffic.completed,
        "expired": queue.traffic.expired,
        "departed": queue.traffic.departed(Part::Active),
        "dead-letters-departed": queue.traffic.departed(Part::DeadLetter),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &str, part: &str) {
        let error = CountsQuery::parse(query).unwrap_err();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_query_says_which_rows() {
        let query = CountsQuery::parse(
            "search=Or%20d&kind=topic&sort=active&order=descending&skip=7&count=3",
        );
        let expected = CountsQuery {
            search: "or d".to_owned(),
            path: None,
            kind: Some(EntityKind::Topic),
            sort: Column::Active,
            is_descending: true,
            skip: 7,
            count: 3,
        };
        assert_eq!(query, Ok(expected));
        assert_eq!(CountsQuery::parse("").unwrap().count, 100);
    }

    #[test]
    fn what_is_no_such_query_is_refused() {
        refused("kind=queues", "kind `queues` is not");
        refused("sort=name", "sort `name` is not");
        refused("order=up", "order `up` is not");
        refused("count=1001", "count must be a number from 1 to 1000");
        refused("top=5", "unknown parameter `top`");
    }
}
