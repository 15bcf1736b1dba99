//! Citations: whatever cites a contract names a page and an anchor under `docs/spec/` that are
//! there.
//!
//! The form is `docs/spec/amqp.md#3.4`, and further anchors of the same page may follow it: `,
//! #4.1`, ` to #4.4`, ` and #5`. The standard is cited as `[AMQP 2.6.7]` and is not looked up here.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// Where the contracts are.
const FOLDER: &str = "docs/spec/";
/// What a page's anchors look like.
const ANCHOR: &str = "<a id=\"";
/// What may stand between two anchors of one citation, but for the markers of comments.
const JOINTS: [&str; 3] = [", ", " to ", " and "];
/// Names of contracts without the place where they are. Split in two, so that this file does not
/// contain them.
const NAMELESS: [(&str, &str); 4] = [
    ("wire con", "tract "),
    ("entities con", "tract "),
    ("admin con", "tract "),
    ("`spec/", "README.md"),
];

/// The anchors of each page, by the page's path.
type Pages<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Finds citations that lead nowhere.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    let pages: Pages<'_> = sources
        .iter()
        .filter(|source| source.path.starts_with(FOLDER))
        .map(|page| (page.path.as_str(), anchors(&page.text)))
        .collect();
    for source in sources {
        let text = joined(&source.text);
        for (page, anchor) in citations(&text) {
            if !pages
                .get(page)
                .is_some_and(|anchors| anchors.contains(anchor))
            {
                let path = &source.path;
                findings.push(format!("{path}: {page}#{anchor} is not there to be cited"));
            }
        }
        nameless(source, findings);
    }
}

/// The anchors that a page has.
fn anchors(page: &str) -> BTreeSet<&str> {
    let starts = page.split(ANCHOR).skip(1);
    starts.filter_map(|rest| rest.split('"').next()).collect()
}

/// A text whose lines are one, without the markers of comments at their beginnings.
fn joined(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        let bare = ["//!", "///", "//", "#", "*"]
            .iter()
            .find_map(|marker| line.strip_prefix(marker));
        bare.unwrap_or(line).trim()
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Page and anchor of each citation in a text.
fn citations(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(FOLDER) {
        let Some((page, rest)) = text[at..].split_once('#') else {
            continue;
        };
        if !page.ends_with(".md") || page.contains(char::is_whitespace) {
            continue;
        }
        let mut rest = rest;
        loop {
            let end = rest.find(|c: char| !is_of_anchor(c)).unwrap_or(rest.len());
            let anchor = rest[..end].trim_end_matches('.');
            found.push((page, anchor));
            let next = JOINTS.iter().find_map(|joint| {
                let rest = rest[anchor.len()..].strip_prefix(joint)?;
                rest.strip_prefix('#')
            });
            match next {
                Some(next) => rest = next,
                None => break,
            }
        }
    }
    found
}

fn is_of_anchor(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-')
}

/// Finds sections that are cited without saying where they are.
fn nameless(source: &Source, findings: &mut Vec<String>) {
    for (number, line) in source.text.lines().enumerate() {
        let line = line.to_lowercase();
        for name in NAMELESS.map(|(start, end)| [start, end].concat()) {
            let mut after = line
                .match_indices(&name)
                .map(|(at, _)| &line[at + name.len()..]);
            if after.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                let (path, number) = (&source.path, number + 1);
                findings.push(format!(
                    "{path}:{number}: cites a contract by no page of {FOLDER}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn findings(text: &str) -> Vec<String> {
        let page = source(
            "docs/spec/a.md",
            "## <a id=\"1\"></a>1 One\n### <a id=\"1.2\"></a>1.2\n<a id=\"rule-3\"></a>",
        );
        let mut findings = Vec::new();
        check(&[page, source("x.rs", text)], &mut findings);
        findings
    }

    #[test]
    fn citations_of_what_is_there_are_sound() {
        let page = "docs/spec/a.md";
        assert_eq!(
            findings(&format!("//! See {page}#1. And ({page}#1.2, #rule-3)")),
            [""; 0]
        );
        assert_eq!(
            findings(&format!(
                "// {page}#1 to #1.2,\n    // #rule-3; {page} is a page"
            )),
            [""; 0]
        );
    }

    #[test]
    fn citations_of_what_is_not_there_are_found() {
        let page = "docs/spec/a.md";
        let missing = |anchor: &str| format!("x.rs: {page}#{anchor} is not there to be cited");
        assert_eq!(findings(&format!("({page}#2)")), [missing("2")]);
        assert_eq!(findings(&format!("({page}#1, #1.3)")), [missing("1.3")]);
        assert_eq!(
            findings(&format!("({page}#1,\n//! #4 and #1.2)")),
            [missing("4")]
        );
        let other = ["docs/spec/", "b.md#1"].concat();
        assert_eq!(findings(&other).len(), 1);
    }

    #[test]
    fn a_contract_that_is_cited_without_its_page_is_found() {
        let nameless = ["(Wire con", "tract 4.2)"].concat();
        assert_eq!(findings(&nameless).len(), 1);
        assert_eq!(findings("as a contract 4 of them signed").len(), 0);
    }
}
