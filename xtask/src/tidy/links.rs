//! Links: a relative link of a document leads to a file that is there, and its anchor to a heading
//! or an `<a id>` of that file.
//!
//! Anchors of headings are formed as GitHub forms them. Only documents have anchors: a line of any
//! other file moves, so nothing links to one. Links of other hosts are not looked up. Code in
//! backquotes and in fences has no links.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// What encloses blocks of code.
const FENCES: [&str; 2] = ["```", "~~~"];
/// How an anchor that is no heading begins.
const ANCHOR: &str = "<a id=\"";

/// The anchors of each document, by the document's path.
type Documents<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// Finds links that lead nowhere. `paths` are all files, also those that are no text.
pub fn check(sources: &[Source], paths: &[String], findings: &mut Vec<String>) {
    let documents: Documents<'_> = sources
        .iter()
        .filter(|source| source.path.ends_with(".md"))
        .map(|source| (source.path.as_str(), anchors(&source.text)))
        .collect();
    for source in sources {
        if !documents.contains_key(source.path.as_str()) {
            continue;
        }
        for (number, line) in prose(&source.text) {
            for target in targets(&without_code(line)) {
                if let Some(fault) = fault(&source.path, target, paths, &documents) {
                    findings.push(format!("{}:{number}: {fault}", source.path));
                }
            }
        }
    }
}

/// What is wrong with a link of the document `from`.
fn fault(from: &str, target: &str, paths: &[String], documents: &Documents<'_>) -> Option<String> {
    if is_elsewhere(target) {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let Some(path) = resolved(from, path) else {
        return Some(format!("the link {target} leaves the repository"));
    };
    if !is_there(&path, paths) {
        return Some(format!("the link {target} leads to no file"));
    }
    let anchor = anchor?;
    let is_anchor = documents
        .get(path.as_str())
        .is_some_and(|anchors| anchors.contains(anchor));
    (!is_anchor).then(|| format!("the link {target} names an anchor that is not there"))
}

/// Whether a link begins with a scheme, as `https:` and `mailto:`.
fn is_elsewhere(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The path of a link from the root of the repository; none if it leads out of it.
fn resolved(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (start, path) = match path.strip_prefix('/') {
        Some(path) => ("", path),
        None => (folder, path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a path is that of a file, or of a folder with files.
fn is_there(path: &str, paths: &[String]) -> bool {
    path.is_empty()
        || paths.iter().any(|file| {
            file.strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

/// The lines of a document that are not in a block of code, by number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = line.trim_start();
        let mark = FENCES.into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, None) => return Some((at + 1, line)),
            (None, opened) => fence = opened,
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

/// A line without its code in backquotes. A run of backquotes that nothing closes is text.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        let run = from.len() - from.trim_start_matches('`').len();
        let (mark, inside) = from.split_at(run);
        kept.push_str(before);
        match end_of_code(inside, run) {
            Some(end) => rest = &inside[end..],
            None => {
                kept.push_str(mark);
                rest = inside;
            }
        }
    }
    kept + rest
}

/// Where the text goes on behind code that a run of as many backquotes closes.
fn end_of_code(inside: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = inside[at..].find('`') {
        let start = at + found;
        let length = inside[start..].len() - inside[start..].trim_start_matches('`').len();
        at = start + length;
        if length == run {
            return Some(at);
        }
    }
    None
}

/// What the links and images of a line lead to: `[text](target)`, and `[name]: target` at its
/// beginning.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.match_indices("](").filter_map(|(at, mark)| {
        let target = &line[at + mark.len()..];
        let end = target.find([')', ' '])?;
        Some(target[..end].trim_matches(['<', '>']))
    });
    let named = line.strip_prefix('[').and_then(|rest| {
        let (_, target) = rest.split_once("]: ")?;
        target.split_whitespace().next()
    });
    inline.chain(named).collect()
}

/// All anchors of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(text) {
        let named = line.split(ANCHOR).skip(1);
        anchors.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        let Some(heading) = heading(line) else {
            continue;
        };
        let anchor = anchor_of(heading);
        let before = times.entry(anchor.clone()).or_default();
        anchors.insert(match *before {
            0 => anchor,
            before => format!("{anchor}-{before}"),
        });
        *before += 1;
    }
    anchors
}

/// The text of a line that is a heading.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(())?;
    text.strip_prefix(' ').map(str::trim)
}

/// The anchor of a heading: its text in lower case, without tags, targets of links and
/// punctuation, and with hyphens for blanks.
fn anchor_of(heading: &str) -> String {
    let text = shown(heading);
    let kept = text.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.collect::<String>().to_lowercase()
}

/// What a reader sees of a heading, without tags and targets of links.
fn shown(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    while let Some(at) = rest.find(['<', ']']) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let close = match from {
            from if from.starts_with("](") => ')',
            from if from.starts_with('<') => '>',
            _ => ']',
        };
        rest = from.split_once(close).map_or("", |(_, rest)| rest);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in `docs/a.md` with this text, beside other files.
    fn findings(text: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = [
            source("docs/a.md", text),
            source("docs/b.md", "# B\n\n## Two words\n<a id=\"own\"></a>"),
            source("README.md", "# R\n"),
            source("src/c.rs", "//! [x](nowhere.md)"),
        ];
        let images = ["docs/images/d.png"].map(str::to_owned);
        let paths = sources.iter().map(|source| source.path.clone());
        let paths: Vec<String> = paths.chain(images).collect();
        let mut findings = Vec::new();
        check(&sources, &paths, &mut findings);
        findings
    }

    #[test]
    fn links_to_files_folders_and_anchors_that_are_there_are_sound() {
        assert_eq!(findings("[b](b.md), [b](./b.md#two-words)"), [""; 0]);
        assert_eq!(findings("[r](../README.md#r) [c](/src/c.rs)"), [""; 0]);
        assert_eq!(findings("[![d](images/d.png)](b.md#own)"), [""; 0]);
        assert_eq!(findings("[i](images) [i](images/) [up](..)"), [""; 0]);
        assert_eq!(findings("# A b\n[up](#a-b)\n\n[x]: b.md#b"), [""; 0]);
    }

    #[test]
    fn links_of_other_hosts_are_not_looked_up() {
        assert_eq!(findings("[x](https://x/y.md#z) [m](mailto:a@b)"), [""; 0]);
    }

    #[test]
    fn a_file_that_is_not_there_is_found_where_the_link_stands() {
        assert_eq!(
            findings("one\n[x](c.md \"title\")"),
            ["docs/a.md:2: the link c.md leads to no file"]
        );
        assert_eq!(findings("![d](images/d.pn)").len(), 1);
        assert_eq!(findings("[x]: c.md").len(), 1);
    }

    #[test]
    fn an_anchor_that_is_not_there_is_found() {
        assert_eq!(
            findings("[x](b.md#three-words)"),
            ["docs/a.md:1: the link b.md#three-words names an anchor that is not there"]
        );
        assert_eq!(findings("[x](#nothing)").len(), 1);
        assert_eq!(findings("[x](../src/c.rs#L3)").len(), 1);
    }

    #[test]
    fn a_link_out_of_the_repository_is_found() {
        assert_eq!(
            findings("[x](../../z.md)"),
            ["docs/a.md:1: the link ../../z.md leaves the repository"]
        );
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(findings("`[x](c.md)` and ``a ` [x](c.md)``"), [""; 0]);
        assert_eq!(findings("```md\n[x](c.md)\n~~~\n[x](c.md)\n```"), [""; 0]);
        assert_eq!(findings("a ` [x](c.md)").len(), 1);
    }

    #[test]
    fn anchors_are_formed_as_github_forms_them() {
        let text = "# `a_b`: C & d\n```\n# no\n```\n## [X](y.md), z\n## <a id=\"1.2\"></a>1.2 N";
        let expected = ["1.2", "12-n", "a_b-c--d", "x-z"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }

    #[test]
    fn a_heading_that_is_there_before_has_a_number() {
        let expected = ["a", "a-1", "a-2"].map(str::to_owned);
        assert_eq!(anchors("# A\n## A\n### a"), BTreeSet::from(expected));
        assert_eq!(anchors("#A\n####### A"), BTreeSet::new());
    }
}
