//! HTTP pattern: which HTTP requests a fault rule is for, by their method and path.
//!
//! `POST /{entity}/messages` is a method, or `*` for any, and a path. A part of the path in braces,
//! or `*`, stands for one part; `**`, which may come once, for any number of them, none too. Parts
//! are compared without regard to case, as the paths of entities are. Slashes at the end do not
//! count.

/// The methods that the broker has routes for.
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// See the head of this file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct HttpPattern {
    /// One of [`METHODS`]; any without it.
    method: Option<&'static str>,
    start: Vec<Part>,
    /// What follows any number of parts, if the pattern has `**`.
    end: Option<Vec<Part>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    One,
    /// In lower case.
    Text(String),
}

impl HttpPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Says what a pattern has to be.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (method, path) = text
            .split_once(' ')
            .ok_or("it is a method or *, a space and a path")?;
        let mut methods = METHODS.iter();
        let method = match methods.find(|known| known.eq_ignore_ascii_case(method)) {
            _ if method == "*" => None,
            Some(known) => Some(*known),
            None => return Err("the method is DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT or *"),
        };
        let path = path.strip_prefix('/').ok_or("the path begins with /")?;
        let mut halves = vec![Vec::new()];
        for part in parts(path) {
            if part == "**" {
                halves.push(Vec::new());
            } else if let Some(half) = halves.last_mut() {
                half.push(Part::parse(part));
            }
        }
        let mut halves = halves.into_iter();
        let (start, end) = (halves.next().unwrap_or_default(), halves.next());
        match halves.next() {
            Some(_) => Err("** may come once"),
            None => Ok(Self { method, start, end }),
        }
    }

    /// Whether a request is one of these. The path is decoded, without its query.
    pub fn fits(&self, method: &str, path: &str) -> bool {
        if self.method.is_some_and(|own| own != method) {
            return false;
        }
        let path: Vec<_> = parts(path).collect();
        let Some(end) = &self.end else {
            return fit(&self.start, &path);
        };
        let Some(between) = path.len().checked_sub(end.len()) else {
            return false;
        };
        let (first, last) = path.split_at(between);
        let first = first.get(..self.start.len());
        first.is_some_and(|first| fit(&self.start, first)) && fit(end, last)
    }
}

impl Part {
    fn parse(text: &str) -> Self {
        let is_name = text.starts_with('{') && text.ends_with('}');
        match is_name || text == "*" {
            true => Self::One,
            false => Self::Text(text.to_lowercase()),
        }
    }

    fn fits(&self, part: &str) -> bool {
        match self {
            Self::One => true,
            Self::Text(own) => *own == part.to_lowercase(),
        }
    }
}

fn fit(own: &[Part], parts: &[&str]) -> bool {
    own.len() == parts.len() && own.iter().zip(parts).all(|(own, part)| own.fits(part))
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.trim_matches('/')
        .split('/')
        .filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, method: &str, path: &str, expected: bool) {
        let parsed = HttpPattern::parse(pattern).unwrap();
        assert_eq!(
            parsed.fits(method, path),
            expected,
            "{pattern}: {method} {path}"
        );
    }

    #[test]
    fn a_part_stands_for_one_part() {
        let sends = "POST /{entity}/messages";
        check(sends, "POST", "/orders/messages", true);
        check(sends, "POST", "/Orders/Messages/", true);
        check(sends, "GET", "/orders/messages", false);
        check(sends, "POST", "/a/orders/messages", false);
        check(sends, "POST", "/orders/messages/head", false);
        check(
            "delete /orders/messages/*/*",
            "DELETE",
            "/orders/messages/1/t",
            true,
        );
        check(
            "DELETE /orders/messages/*/*",
            "DELETE",
            "/orders/messages/1",
            false,
        );
        check("GET /", "GET", "/", true);
        check("GET /", "GET", "/orders", false);
    }

    #[test]
    fn two_stars_stand_for_any_number_of_parts() {
        check("* /**", "PATCH", "/", true);
        check("* /**", "GET", "/a/b", true);
        check("POST /**/messages", "POST", "/a/b/messages", true);
        check("POST /**/messages", "POST", "/messages", true);
        check("POST /**/messages", "POST", "/a/messages/head", false);
        check("GET /a/**/a", "GET", "/a", false);
        check("GET /a/**/a", "GET", "/a/a", true);
        check("GET /$railbus/**", "GET", "/$railbus", true);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "POST",
            "/orders",
            "POST orders",
            "PO5T /",
            "BREW /",
            " /",
            "GET /**/a/**",
        ] {
            assert!(HttpPattern::parse(text).is_err(), "{text}");
        }
    }
}
