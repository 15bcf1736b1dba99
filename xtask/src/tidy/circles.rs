//! Circles: how many files of a crate lead back to each other by the paths they name.
//!
//! An edge leads from a file to each file in which a path of it begins: `crate::`, `super::` and
//! `self::` paths, paths that begin with a child module, and those that begin with an imported
//! module. Tests do not count. Files that reach each other are a circle: none of them can be read
//! without all others. The largest circle may have as many files as stand here, and the figure may
//! only fall: one above the truth is a finding too.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// Folders of crates, and the number of files in the largest circle of each.
const CRATES: [(&str, usize); 19] = [
    ("crates/access/src/", 7),
    ("crates/admin/src/", 10),
    ("crates/amqp/src/", 4),
    ("crates/broker/src/", 4),
    ("crates/endpoint/src/", 2),
    ("crates/entity/src/", 4),
    ("crates/filter/src/", 2),
    ("crates/index/src/", 4),
    ("crates/journal/src/", 3),
    ("crates/load/src/", 7),
    ("crates/rabbitmq/src/", 13),
    ("crates/railbus/src/", 12),
    ("crates/rocks/src/", 4),
    ("crates/server/src/", 16),
    ("crates/servicebus/src/", 12),
    ("crates/sim/src/", 26),
    ("crates/store/src/", 10),
    ("xtask/bench/src/", 5),
    ("xtask/src/", 10),
];

/// Finds a circle that is larger than the largest allowed, and a figure that can fall.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    for (folder, allowed) in CRATES {
        let files = sources.iter().filter_map(|source| {
            let file = source.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            // The root of a program is as the root of a library.
            let file = if file == "main" { "lib" } else { file };
            Some((file, source.text.as_str()))
        });
        let circle = largest(&edges(&files.collect()));
        findings.extend(judge(folder, &circle, allowed));
    }
}

fn judge(folder: &str, circle: &[&str], allowed: usize) -> Option<String> {
    match circle.len() {
        more if more > allowed => Some(format!(
            "{folder}: a circle of {more} files, more than {allowed}: {}",
            circle.join(", ")
        )),
        fewer if fewer < allowed => Some(format!(
            "{folder}: the largest circle has {fewer} files, so the figure of {allowed} can fall"
        )),
        _ => None,
    }
}

/// The files that each file names, without itself.
fn edges<'a>(files: &BTreeMap<&'a str, &str>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let files = files.iter().filter(|(file, _)| !is_test(file));
    let files: BTreeMap<&str, &str> = files.map(|(file, text)| (*file, *text)).collect();
    let named = |file: &&'a str| {
        let module = if *file == "lib" { "" } else { file };
        let mut named: BTreeSet<&str> = paths(files[file], module, &files)
            .iter()
            .map(|path| file_of(path, &files))
            .collect();
        named.remove(file);
        (*file, named)
    };
    files.keys().map(named).collect()
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests") || file.ends_with("_tests")
}

/// The file in which an absolute path, with `/`, begins.
fn file_of<'a>(path: &str, files: &BTreeMap<&'a str, &str>) -> &'a str {
    let mut path = path;
    loop {
        if let Some((file, _)) = files.get_key_value(path) {
            return file;
        }
        let Some((above, _)) = path.rsplit_once('/') else {
            return "lib";
        };
        path = above;
    }
}

/// All paths into this crate that the file of `module` names, absolute and with `/`.
fn paths(text: &str, module: &str, files: &BTreeMap<&str, &str>) -> Vec<String> {
    let tokens = tokens(text);
    let mut imported: BTreeMap<&str, String> = BTreeMap::new();
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_only(&tokens[at..]) {
            at = behind_item(&tokens, at);
            continue;
        }
        let follows = at > 0 && tokens[at - 1] == "::";
        if follows || tokens.get(at + 1) != Some(&"::") {
            at += 1;
            continue;
        }
        let (tree, behind) = tree(&tokens, at);
        for segments in tree {
            let Some(path) = absolute(&segments, module, &imported, files) else {
                continue;
            };
            // Later paths may begin with a module that this one imports.
            if files.contains_key(path.as_str()) {
                imported.insert(segments[segments.len() - 1], path.clone());
            }
            paths.push(path);
        }
        at = behind.max(at + 1);
    }
    paths
}

/// The path that `segments` mean in the file of `module`, if it leads into this crate.
fn absolute(
    segments: &[&str],
    module: &str,
    imported: &BTreeMap<&str, String>,
    files: &BTreeMap<&str, &str>,
) -> Option<String> {
    let child = join(module, segments[0]);
    let mut base = match segments[0] {
        "crate" => "",
        "self" | "super" => module,
        first => match imported.get(first) {
            Some(path) => path,
            None if files.contains_key(child.as_str()) => &child,
            None => return None,
        },
    };
    let mut rest = segments;
    while rest.first() == Some(&"super") {
        base = base.rsplit_once('/').map_or("", |(above, _)| above);
        rest = &rest[1..];
    }
    if rest.len() == segments.len() {
        rest = &rest[1..];
    }
    Some(
        rest.iter()
            .fold(base.to_owned(), |path, next| join(&path, next)),
    )
}

fn join(path: &str, next: &str) -> String {
    if path.is_empty() {
        next.to_owned()
    } else {
        format!("{path}/{next}")
    }
}

/// The paths of a tree as after `use`, and where the tokens go on behind it.
fn tree<'a>(tokens: &[&'a str], at: usize) -> (Vec<Vec<&'a str>>, usize) {
    match tokens.get(at) {
        Some(&"{") => {
            let mut found = Vec::new();
            let mut at = at + 1;
            while tokens.get(at).is_some_and(|token| *token != "}") {
                let (paths, behind) = tree(tokens, at);
                found.extend(paths);
                // A comma, or a name behind `as`.
                at = behind.max(at + 1);
            }
            (found, at + 1)
        }
        Some(&"self") if tokens.get(at + 1) != Some(&"::") => (vec![Vec::new()], at + 1),
        Some(name) if is_name(name) => {
            if tokens.get(at + 1) != Some(&"::") {
                return (vec![vec![name]], at + 1);
            }
            let (below, behind) = tree(tokens, at + 2);
            if below.is_empty() {
                return (vec![vec![name]], behind);
            }
            let paths = below.into_iter().map(|below| {
                let mut path = vec![*name];
                path.extend(below);
                path
            });
            (paths.collect(), behind)
        }
        _ => (Vec::new(), at),
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Whether an item begins here that is there for tests alone.
fn is_test_only(tokens: &[&str]) -> bool {
    tokens.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"])
}

/// Where the tokens go on behind the item that begins at `at`.
fn behind_item(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "{" => depth += 1,
            "}" if depth == 1 => return index + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Names, `::` and single characters, without comments, strings and characters in quotes.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            quoted(rest)
        } else if first == '\'' {
            quoted_character(rest)
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let length = token(rest, first);
            tokens.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    tokens
}

fn token(text: &str, first: char) -> usize {
    let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
    if is_part(first) {
        text.find(|next| !is_part(next)).unwrap_or(text.len())
    } else if text.starts_with("::") {
        2
    } else {
        first.len_utf8()
    }
}

/// Bytes of the string that begins here.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Bytes of the character in quotes that begins here, or of the quote of a lifetime.
fn quoted_character(text: &str) -> usize {
    let mut next = text.chars().skip(1);
    let width = match next.next() {
        Some('\\') => return text[3..].find('\'').map_or(text.len(), |at| at + 4),
        Some(character) => character.len_utf8(),
        None => return 1,
    };
    if next.next() == Some('\'') {
        width + 2
    } else {
        1
    }
}

/// The files of the largest circle, in order; none if no file leads back to itself.
fn largest<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<&'a str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|file| (*file, reached(file, edges)))
        .collect();
    let circle = |file: &&str| -> Vec<&'a str> {
        let others = reached[file].iter();
        others
            .filter(|other| reached[*other].contains(file))
            .copied()
            .collect()
    };
    edges
        .keys()
        .map(circle)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

/// All files that the files named by `file` lead to.
fn reached<'a>(file: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = edges[file].iter().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(&edges[file]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that `a/b` names, next to the files `a/b/c`, `a/d`, `e` and `lib`.
    fn check_edges(text: &str, expected: &[&str]) {
        let files = ["a", "a/b/c", "a/d", "e", "e/f", "lib"].map(|file| (file, ""));
        let mut files = BTreeMap::from(files);
        files.insert("a/b", text);
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(edges(&files)["a/b"], expected, "{text}");
    }

    #[test]
    fn every_kind_of_path_is_an_edge() {
        check_edges("use crate::e::Thing;", &["e"]);
        check_edges(
            "use crate::{a::d, e::{f::{self, X}, Y as Z}};",
            &["a/d", "e", "e/f"],
        );
        check_edges("use super::d::Thing;", &["a/d"]);
        check_edges("use super::{Thing, d};", &["a", "a/d"]);
        check_edges("fn x() { c::y(self::c::z()) }", &["a/b/c"]);
        check_edges("fn x() -> crate::e::f::Y<crate::a::Z> {}", &["a", "e/f"]);
        check_edges("use crate::e; fn x() { e::f::y() }", &["e", "e/f"]);
        check_edges("use crate::Thing;", &["lib"]);
    }

    #[test]
    fn other_crates_comments_strings_and_tests_are_none() {
        check_edges("use std::e::Thing; fn x() { Self::e() }", &[]);
        check_edges(
            "// crate::e::x\nconst C: &str = \"crate::e::x \\\" crate::e\";",
            &[],
        );
        check_edges(
            "const C: char = '\"'; use crate::e::x; const D: char = '\\'';",
            &["e"],
        );
        check_edges(
            "#[cfg(test)]\nmod tests { use crate::e::x; fn y() {} }",
            &[],
        );
        check_edges("#[cfg(test)]\nuse crate::e::x;\nuse crate::a::y;", &["a"]);
        assert!(is_test("a/tests") && is_test("a/b_tests") && !is_test("a/b"));
    }

    #[test]
    fn files_that_lead_back_are_a_circle() {
        let files = [
            ("a", "use crate::b::X;"),
            ("b", "use crate::c::X; use crate::d::X;"),
            ("c", "use crate::a::X;"),
            ("d", "use crate::e::X;"),
            ("e", "use crate::d::X;"),
            ("lib", "mod a; use a::X;"),
        ];
        let circle = ["a", "b", "c"];
        assert_eq!(largest(&edges(&BTreeMap::from(files))), circle);
        assert_eq!(judge("a/", &circle, 3), None);
        assert!(judge("a/", &circle, 2).is_some_and(|finding| finding.contains("a, b, c")));
        assert!(judge("a/", &circle, 4).is_some_and(|finding| finding.contains("can fall")));
    }
}
