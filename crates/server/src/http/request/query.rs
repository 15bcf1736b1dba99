//! Query: the parameters behind the question mark of a request's target.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use admin::query::fields;
use percent_encoding::percent_decode_str;

/// Names and values, in their order. What is empty says nothing.
pub fn parameters(query: &str) -> impl Iterator<Item = (&str, Result<Cow<'_, str>, String>)> {
    fields(query).map(|(name, value)| {
        let value = percent_decode_str(value).decode_utf8();
        (name, value.map_err(|_| format!("{name} is not UTF-8")))
    })
}

/// The whole number that a parameter says.
pub fn number(name: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    let (from, to) = range.into_inner();
    number.ok_or_else(|| match to {
        u64::MAX => format!("{name} must be a number"),
        to => format!("{name} must be a number from {from} to {to}"),
    })
}
