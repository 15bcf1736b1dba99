//! Length: a file is a room, so past 500 lines it needs a reason and may not grow. Tables of test
//! cases, which are read one row at a time, may be twice as long.

use super::Source;

/// Lines a file may have without being listed.
const LIMIT: usize = 500;
/// The same for files of integration tests.
const TEST_LIMIT: usize = 1_000;
/// How much shorter than its allowance a listed file may be before the allowance must follow.
const SLACK: usize = 25;

/// Files that are longer, and how long they may be.
const LONG: &[(&str, usize)] = &[];

/// Finds Rust files beyond the limit or their allowance, and allowances without a need.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|source| source.is_rust()) {
        findings.extend(judge(
            &source.path,
            source.text.lines().count(),
            allowance(&source.path),
        ));
    }
    for (path, _) in LONG
        .iter()
        .filter(|(path, _)| !sources.iter().any(|source| source.path == *path))
    {
        findings.push(format!("{path}: is allowed to be long, but is not there"));
    }
}

fn allowance(path: &str) -> Option<usize> {
    LONG.iter()
        .find(|(listed, _)| *listed == path)
        .map(|(_, lines)| *lines)
}

fn limit(path: &str) -> usize {
    if path.contains("/tests/") {
        TEST_LIMIT
    } else {
        LIMIT
    }
}

fn judge(path: &str, lines: usize, allowance: Option<usize>) -> Option<String> {
    let limit = limit(path);
    match allowance {
        None if lines > limit => Some(format!(
            "{path}: {lines} lines, more than {limit}; look for the second noun"
        )),
        Some(most) if lines > most => Some(format!(
            "{path}: {lines} lines, more than its allowance of {most}"
        )),
        Some(most) if lines + SLACK < most || lines <= limit => Some(format!(
            "{path}: {lines} lines, so its allowance of {most} can shrink"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_needs_an_allowance() {
        assert!(judge("a.rs", 500, None).is_none());
        assert!(judge("a.rs", 501, None).is_some());
        assert!(judge("a.rs", 600, Some(600)).is_none());
    }

    #[test]
    fn tables_of_test_cases_may_be_longer() {
        assert!(judge("crates/a/tests/table.rs", 1_000, None).is_none());
        assert!(judge("crates/a/tests/table.rs", 1_001, None).is_some());
    }

    #[test]
    fn an_allowance_only_shrinks() {
        assert!(judge("a.rs", 601, Some(600)).is_some());
        assert!(judge("a.rs", 560, Some(600)).is_some());
        assert!(judge("a.rs", 490, Some(501)).is_some());
    }
}
