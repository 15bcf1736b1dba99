//! Query: the fields of a query or a form; of a list, the client's protocol version and the page
//! that it requests.
//! (docs/spec/admin.md#3)
//!
//! Parameters come in any order; unknown and empty ones are ignored.

use percent_encoding::percent_decode_str;

use crate::error::Error;

/// Most entities of one page.
const MAX_TOP: usize = 100;

/// Names and values in their order, as they were sent. A field without `=` has an empty value.
pub fn fields(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let fields = query.split('&').filter(|field| !field.is_empty());
    fields.map(|field| field.split_once('=').unwrap_or((field, "")))
}

/// The parameters of a query.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Query {
    pub version: Version,
    pub skip: usize,
    pub top: usize,
}

/// The version of the protocol; responses of later versions contain more.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Version {
    /// `2013-10` to `2017-04`.
    Old,
    /// `2021-05`: sizes of messages.
    WithMessageSize,
    /// `2024-05`: counts of filters. What is not known is as new as this.
    WithFilterCounts,
}

impl Version {
    fn parse(text: &str) -> Self {
        let is_date = text.len() == 7 && text.is_ascii() && text.as_bytes()[4] == b'-';
        match text {
            "2021-05" => Self::WithMessageSize,
            old if is_date && ("2013-10"..="2017-04").contains(&old) => Self::Old,
            _ => Self::WithFilterCounts,
        }
    }
}

impl Query {
    /// Parses the text after the question mark.
    pub(crate) fn parse(query: &str) -> Result<Self, Error> {
        let mut found = Self {
            version: Version::WithFilterCounts,
            skip: 0,
            top: MAX_TOP,
        };
        for (name, value) in fields(query) {
            let name = percent_decode_str(name).decode_utf8_lossy().to_lowercase();
            let value = percent_decode_str(value).decode_utf8_lossy();
            if value.is_empty() {
                continue;
            }
            match &*name {
                "api-version" => found.version = Version::parse(&value),
                "$skip" => found.skip = number("$skip", &value)?,
                "$top" => found.top = number("$top", &value)?.min(MAX_TOP),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The value of `api-version` as it was sent, for links.
pub(crate) fn sent_version(query: &str) -> Option<&str> {
    let mut fields = fields(query);
    let is_version = |name: &str| name.eq_ignore_ascii_case("api-version");
    let version = fields.find(|(name, value)| is_version(name) && !value.is_empty());
    version.map(|(_, value)| value)
}

fn number(name: &str, text: &str) -> Result<usize, Error> {
    let number = text.trim().parse::<usize>();
    number.map_err(|_| Error::value(name, "it is no number from 0 on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, version: Version, skip: usize, top: usize) {
        assert_eq!(
            Query::parse(query),
            Ok(Query { version, skip, top }),
            "{query}"
        );
    }

    #[test]
    fn queries_are_read_as_clients_write_them() {
        let newest = Version::WithFilterCounts;
        check("", newest, 0, 100);
        check("api-version=2017-04&enrich=False", Version::Old, 0, 100);
        check("api-version=2013-10", Version::Old, 0, 100);
        check(
            "api-version=2021-05&%24skip=20&%24top=10",
            Version::WithMessageSize,
            20,
            10,
        );
        check("&$top=5&api-version=2024-05", newest, 0, 5);
        check("$top=0", newest, 0, 0);
        check("$skip=&$top=1000&api-version=", newest, 0, 100);
        check("api-version=2099-01", newest, 0, 100);
        check("api-version=2017-04-preview", newest, 0, 100);
        for query in ["$top=-1", "$skip=x", "$skip=99999999999999999999999"] {
            assert!(Query::parse(query).is_err(), "{query}");
        }
    }
}
