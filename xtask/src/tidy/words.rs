//! Words: plain English in documents, comments, and what users are told.
//!
//! A sentence is about a thing that has a name, so pronouns for persons stand for nothing here.
//! Documents have none of the words below, nor have comments and literals of Rust sources. Of
//! literals only those are looked at that have a blank, so they are text, and no test's.

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

/// Finds the words.
pub fn check(source: &Source, findings: &mut Vec<String>) {
    let text_of = match source.is_rust() {
        true => comment,
        false if source.path.ends_with(".md") => prose,
        false => return,
    };
    find(source, text_of, source.text.lines().count(), findings);
    if source.is_rust() && !source.path.contains("/tests/") && !source.path.ends_with("tests.rs") {
        let tests = source.text.lines().position(|line| line == "#[cfg(test)]");
        find(source, literals, tests.unwrap_or(usize::MAX), findings);
    }
}

/// Finds the words in what a line is taken for, in the first `most` lines.
fn find(
    source: &Source,
    text_of: fn(&str) -> Option<String>,
    most: usize,
    findings: &mut Vec<String>,
) {
    for (number, line) in source.text.lines().enumerate().take(most) {
        if let Some((word, instead)) = text_of(line).and_then(|text| banned(&text)) {
            let (path, number) = (&source.path, number + 1);
            findings.push(format!(
                "{path}:{number}: `{word}` is not written here: {instead}"
            ));
        }
    }
}

/// The text of a line of a document, without names and code in backquotes.
fn prose(line: &str) -> Option<String> {
    Some(line.split('`').step_by(2).collect())
}

/// The text of a comment that has its line to itself, as that of a document.
fn comment(line: &str) -> Option<String> {
    prose(line.trim_start().strip_prefix("//")?)
}

/// The literals of a line that are text.
fn literals(line: &str) -> Option<String> {
    let literals = line.split('"').skip(1).step_by(2);
    let texts: Vec<_> = literals.filter(|literal| literal.contains(' ')).collect();
    (!texts.is_empty() && comment(line).is_none()).then(|| texts.join("\n"))
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
    fn literals_with_blanks_are_text() {
        let line = r#"    tell("a text", "value", x, "and another");"#;
        assert_eq!(literals(line).as_deref(), Some("a text\nand another"));
        assert_eq!(literals(r#"// as "he said""#), None);
    }

    #[test]
    fn tests_may_say_what_they_like() {
        let word = of("some", "body");
        let found = |path: &str, text: String| {
            let mut findings = Vec::new();
            let path = path.to_owned();
            check(&Source { path, text }, &mut findings);
            findings.len()
        };
        let line = format!("let x = \"{word} waits\";\n");
        assert_eq!(found("crates/a/src/b.rs", line.clone()), 1);
        assert_eq!(found("crates/a/tests/b.rs", line.clone()), 0);
        assert_eq!(
            found("crates/a/src/b.rs", format!("#[cfg(test)]\n{line}")),
            0
        );
        assert_eq!(found("docs/a.md", format!("{word} waits")), 1);
    }
}
