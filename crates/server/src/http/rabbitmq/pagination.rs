//! Pagination: a part of a list, for a request that names a `page`. (docs/spec/rabbitmq.md#13)
//!
//! `name` keeps the entries whose names contain it, whatever the case. It has no effect without a
//! page, as in RabbitMQ.

use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::{Failure, bad_request};
use crate::http::request::query::parameters;

/// Entries of a page, unless the request says how many.
const PAGE_SIZE: usize = 100;
/// Entries of a page at most.
const MOST: usize = 500;

/// What a request says of the list that it asks for.
struct Page {
    number: usize,
    size: usize,
    /// In lower case.
    name: String,
}

/// The page of a list that a query names, or the whole list.
pub(super) fn paginate(list: Vec<Json>, query: &str) -> Result<Json, Failure> {
    match Page::read(query)? {
        Some(page) => page.of(list),
        None => Ok(list.into()),
    }
}

impl Page {
    fn read(query: &str) -> Result<Option<Self>, Failure> {
        let (mut page, mut size, mut name) = (None, PAGE_SIZE.to_string(), String::new());
        let mut is_regex = false;
        for (key, value) in parameters(query) {
            let value = value.map_err(bad_request)?.into_owned();
            match key {
                "page" => page = Some(value),
                "page_size" => size = value,
                "name" => name = value.to_lowercase(),
                "use_regex" => is_regex = value == "true",
                _ => {}
            }
        }
        let Some(page) = page else { return Ok(None) };
        if is_regex {
            let text = "use_regex: this broker does not support it yet";
            return Err(bad_request(text));
        }
        let positive = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let given = (
            positive(&page),
            positive(&size).filter(|size| *size <= MOST),
        );
        let (Some(number), Some(size)) = given else {
            let text =
                format!("Invalid pagination parameters: page number {page}, page size {size}");
            return Err(refused("invalid_pagination_parameters", text));
        };
        Ok(Some(Self { number, size, name }))
    }

    fn of(&self, mut list: Vec<Json>) -> Result<Json, Failure> {
        let total = list.len();
        let has_name = |name: &str| name.to_lowercase().contains(&self.name);
        list.retain(|entry| entry["name"].as_str().is_some_and(has_name));
        let filtered = list.len();
        let start = (self.number - 1).saturating_mul(self.size);
        if start > filtered {
            let (number, size) = (self.number, self.size);
            let text =
                format!("Page out of range, page: {number} page size: {size}, len: {filtered}");
            return Err(refused("page_out_of_range", text));
        }
        let items: Vec<_> = list.into_iter().skip(start).take(self.size).collect();
        Ok(json!({
            "total_count": total,
            "item_count": items.len(),
            "filtered_count": filtered,
            "page": self.number,
            "page_size": self.size,
            "page_count": filtered.div_ceil(self.size),
            "items": items,
        }))
    }
}

fn refused(error: &'static str, reason: String) -> Failure {
    Failure::Refused((StatusCode::BAD_REQUEST, error, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and the counts of a page, or the error.
    fn page(query: &str) -> Result<(Vec<String>, [u64; 4]), &'static str> {
        let list = ["a1", "a2", "B1", "b2", "c"].map(|name| json!({ "name": name }));
        let page = match paginate(list.into(), query) {
            Ok(page) => page,
            Err(Failure::Refused((_, error, _))) => return Err(error),
            Err(Failure::Shard(_)) => panic!("no shard is asked"),
        };
        let items = page["items"].as_array().unwrap().iter();
        let counts = ["total_count", "filtered_count", "item_count", "page_count"];
        Ok((
            items
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect(),
            counts.map(|count| page[count].as_u64().unwrap()),
        ))
    }

    #[test]
    fn a_page_has_its_part_of_the_list() {
        let check = |query, names: &[&str], counts| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(page(query), Ok((names, counts)), "{query}");
        };
        check("page=1&page_size=2", &["a1", "a2"], [5, 5, 2, 3]);
        check("page=3&page_size=2", &["c"], [5, 5, 1, 3]);
        check("page=2&page_size=5", &[], [5, 5, 0, 1]);
        check("page=1", &["a1", "a2", "B1", "b2", "c"], [5, 5, 5, 1]);
        check("page=1&name=b", &["B1", "b2"], [5, 2, 2, 1]);
        check("page=1&name=%61", &["a1", "a2"], [5, 2, 2, 1]);
    }

    #[test]
    fn a_list_is_whole_without_a_page() {
        let list = vec![json!({"name": "a"})];
        let whole = paginate(list.clone(), "page_size=1&name=b&use_regex=true");
        assert!(matches!(whole, Ok(whole) if whole == Json::Array(list)));
    }

    #[test]
    fn a_page_that_cannot_be_is_refused() {
        for query in [
            "page=0",
            "page=-1",
            "page=x",
            "page=1&page_size=0",
            "page=1&page_size=501",
        ] {
            assert_eq!(page(query), Err("invalid_pagination_parameters"), "{query}");
        }
        assert_eq!(page("page=3&page_size=5"), Err("page_out_of_range"));
        let last = "page=18446744073709551615&page_size=500";
        assert_eq!(page(last), Err("page_out_of_range"));
        assert_eq!(page("page=1&use_regex=true&name=a"), Err("bad_request"));
    }
}
