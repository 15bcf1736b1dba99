//! Host name: the name that a broker has in the place of a namespace in the cloud.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Longest name, and longest label of one. [RFC 1035 2.3.4]
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A name of at least two labels, in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostName(String);

impl HostName {
    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first label: what the namespace is called.
    pub fn label(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_label = |label: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let is_inside = !label.starts_with('-') && !label.ends_with('-');
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_part) && is_inside
        };
        let is_name = text.contains('.') && text.len() <= MAX_NAME && text.split('.').all(is_label);
        let is_address = text.parse::<std::net::IpAddr>().is_ok();
        if is_name && !is_address {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(format!(
                "`{text}` is not the name of a namespace's host, such as shop.servicebus.windows.net"
            ))
        }
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_labels() {
        let name: HostName = "Shop.servicebus.windows.net".parse().unwrap();
        assert_eq!(name.as_str(), "shop.servicebus.windows.net");
        assert_eq!(name.label(), "shop");
        let long = format!("{}.net", "a".repeat(64));
        for text in [
            "",
            "shop",
            ".net",
            "a..b",
            "a.b:443",
            "-a.b",
            "a_b.c",
            "127.0.0.1",
            &long,
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
