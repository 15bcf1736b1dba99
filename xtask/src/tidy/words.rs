//! Words: plain English in documents and comments.
//!
//! A sentence is about a thing that has a name, so pronouns for persons stand for nothing here.
//! Documents have none of the words below. Comments of Rust sources may have as many as their
//! folder is allowed, a number that can only shrink.

use std::collections::BTreeMap;

use super::Source;

/// What is not written, split in two so that this file does not contain it, and what is instead.
const BANNED: &[(&str, &str, &str)] = &[
    ("wh", "o", "name the thing"),
    ("wh", "om", "name the thing"),
    ("who", "ever", "name the thing"),
    ("some", "body", "name the thing"),
    ("no", "body", "name the thing"),
    ("every", "body", "name the thing"),
    ("any", "body", "name the thing"),
    ("so ", "many", "say the number or what it depends on"),
    ("can ", "not", "it is one word"),
];

/// How many banned words the comments of a folder may have, while they are rewritten.
const ALLOWED: &[(&str, usize)] = &[];

/// How many fewer a folder may have before its number must follow.
const SLACK: usize = 10;

/// Finds banned words in documents, and folders whose comments have more than they may.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    let mut comments: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        if source.path.ends_with(".md") {
            findings.extend(faults(source, prose));
        } else if source.is_rust() {
            let folder = folder(&source.path);
            let faults = faults(source, comment);
            comments.entry(folder).or_default().extend(faults);
        }
    }
    for (folder, faults) in comments {
        let allowed = ALLOWED.iter().find(|(listed, _)| *listed == folder);
        judge(
            folder,
            faults,
            allowed.map_or(0, |(_, most)| *most),
            findings,
        );
    }
}

fn judge(folder: &str, faults: Vec<String>, allowed: usize, findings: &mut Vec<String>) {
    let count = faults.len();
    if count > allowed {
        findings.extend(faults);
        let text = format!("{folder}: {count} such words in comments, and {allowed} are allowed");
        findings.push(text);
    } else if count + SLACK < allowed {
        findings.push(format!(
            "{folder}: {count} such words in comments, so its allowance of {allowed} can shrink"
        ));
    }
}

/// A crate, or the first part of any other path.
fn folder(path: &str) -> &str {
    let inner = path.strip_prefix("crates/");
    let start = path.len() - inner.unwrap_or(path).len();
    let end = inner.unwrap_or(path).find('/');
    &path[..end.map_or(path.len(), |end| start + end)]
}

fn faults(source: &Source, text_of: fn(&str) -> Option<String>) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    let found = lines.filter_map(|(number, line)| {
        let (word, instead) = banned(&text_of(line)?)?;
        Some(format!(
            "{}:{}: `{word}` is not written here: {instead}",
            source.path,
            number + 1
        ))
    });
    found.collect()
}

/// The text of a line of a document, without names and code in backquotes.
fn prose(line: &str) -> Option<String> {
    Some(line.split('`').step_by(2).collect())
}

/// The text of a comment that has its line to itself, as that of a document.
fn comment(line: &str) -> Option<String> {
    prose(line.trim_start().strip_prefix("//")?)
}

fn banned(line: &str) -> Option<(String, &'static str)> {
    let line = line.to_lowercase();
    BANNED.iter().find_map(|(start, end, instead)| {
        let word = [*start, *end].concat();
        let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let is_whole = line.match_indices(&word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
        });
        is_whole.then_some((word, *instead))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: &str, end: &str) -> String {
        [start, end].concat()
    }

    #[test]
    fn whole_words_are_found_in_any_case() {
        assert!(banned(&of("Wh", "o waits")).is_some());
        assert!(banned(&of("it can ", "not be")).is_some());
        assert!(banned("the whole of it cannot").is_none());
        assert!(banned("a connection whose peer is gone").is_none());
    }

    #[test]
    fn a_comment_has_its_line_to_itself() {
        assert_eq!(comment("    // why"), Some(" why".to_owned()));
        assert_eq!(comment("let url = \"http://x\";"), None);
    }

    #[test]
    fn code_is_no_prose() {
        assert_eq!(prose("as `x` and `y z`.").as_deref(), Some("as  and ."));
    }

    #[test]
    fn a_folder_is_a_crate_or_the_first_part_of_a_path() {
        assert_eq!(folder("crates/amqp/src/frame.rs"), "crates/amqp");
        assert_eq!(folder("xtask/src/tidy.rs"), "xtask");
        assert_eq!(folder("build.rs"), "build.rs");
    }

    #[test]
    fn an_allowance_only_shrinks() {
        let count = |faults: usize, allowed: usize| {
            let mut findings = Vec::new();
            let faults = vec![String::new(); faults];
            judge("crates/a", faults, allowed, &mut findings);
            findings.len()
        };
        assert_eq!(count(0, 0), 0);
        assert_eq!(count(2, 1), 3);
        assert_eq!(count(5, 15), 0);
        assert_eq!(count(4, 15), 1);
    }
}
