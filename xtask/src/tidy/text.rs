//! Text: what every file must say and no file may say.

use super::Source;

/// Marks of work that was left, machines that are not the reader's, and hosts that packages came
/// from. Split in two, so that this file does not contain them.
const NOWHERE: &[(&str, &str, &str)] = &[
    ("TO", "DO", "is unfinished"),
    ("FIX", "ME", "is unfinished"),
    ("XX", "X", "is unfinished"),
    ("to", "do!(", "is unfinished"),
    ("unimpl", "emented!(", "is unfinished"),
    ("/ro", "ot/", "is a path of one machine"),
    ("/ho", "me/", "is a path of one machine"),
    ("/wo", "rk/", "is a path of one machine"),
    ("artif", "actory", "names the host of a registry"),
    ("registry.npm", "js.org", "names the host of a registry"),
    ("files.python", "hosted.org", "names the host of a registry"),
    ("proxy.go", "lang.org", "names the host of a registry"),
    ("repo.maven.", "apache.org", "names the host of a registry"),
    ("repo1.", "maven.org", "names the host of a registry"),
];

/// Words in Rust sources that switch a test off.
const IGNORED: (&str, &str) = ("#[ign", "ore");

/// Most characters of a line that is a comment.
const WIDTH: usize = 100;

/// Finds what is missing from or forbidden in `source`.
pub fn check(source: &Source, findings: &mut Vec<String>) {
    if source.is_rust() && !source.text.starts_with("//!") {
        findings.push(format!(
            "{}: does not open with what it is (`//!`)",
            source.path
        ));
    }
    if source.path.starts_with("LICENSE") {
        return;
    }
    for (number, line) in source.text.lines().enumerate() {
        if let Some(fault) = fault(line, source.is_rust()) {
            findings.push(format!("{}:{}: {fault}", source.path, number + 1));
        }
    }
}

fn fault(line: &str, is_rust: bool) -> Option<String> {
    let ignored = [IGNORED.0, IGNORED.1].concat();
    if is_rust && line.contains(&ignored) {
        return Some(format!("{ignored} switches a test off"));
    }
    if is_rust && line.trim_start().starts_with("//") && line.chars().count() > WIDTH {
        return Some(format!("a comment is wider than {WIDTH} characters"));
    }
    NOWHERE.iter().find_map(|(start, end, why)| {
        let word = [*start, *end].concat();
        contains_word(line, &word).then(|| format!("{word} {why}"))
    })
}

/// Whether `line` contains `word`, not as the inside of a longer one.
fn contains_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_letter);
        let after = line[at + word.len()..]
            .chars()
            .next()
            .is_some_and(is_letter);
        let ends_open = !word.ends_with(is_letter);
        !before && (ends_open || !after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_found() {
        let word = ["to", "do!("].concat();
        assert!(fault(&format!("    {word})"), true).is_some());
        assert!(fault("a mastodon", true).is_none());
    }

    #[test]
    fn a_path_of_one_machine_is_found_and_a_relative_one_is_not() {
        assert!(fault(&["read /ro", "ot/x"].concat(), false).is_some());
        assert!(fault(&["target/ro", "ot/x"].concat(), false).is_none());
    }

    #[test]
    fn a_test_that_is_switched_off_is_found() {
        let line = ["#[ign", "ore]"].concat();
        assert!(fault(&line, true).is_some());
        assert!(fault(&line, false).is_none());
    }

    #[test]
    fn a_comment_that_is_too_wide_is_found() {
        let line = |width: usize| format!("    // {}", "x".repeat(width - 7));
        assert!(fault(&line(WIDTH), true).is_none());
        assert!(fault(&line(WIDTH + 1), true).is_some());
        assert!(fault(&line(WIDTH + 1), false).is_none());
    }

    #[test]
    fn a_rust_file_opens_with_what_it_is() {
        let mut findings = Vec::new();
        check(
            &Source {
                path: "a.rs".to_owned(),
                text: "use x;\n".to_owned(),
            },
            &mut findings,
        );
        assert_eq!(findings.len(), 1);
    }
}
