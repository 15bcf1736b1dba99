//! Subjects: the first line of a commit fits into 72 characters, as CONTRIBUTING.md says.
//!
//! Looked at are the commits that the upstream of the branch does not have, which can still be
//! changed; on a branch without an upstream the newest ones.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Most characters of a subject.
const WIDTH: usize = 72;
/// How many commits are looked at on a branch without an upstream.
const NEWEST: &str = "-20";
/// Published commits whose subjects are longer, since they cannot be changed any more.
const LONG: &[&str] = &[
    "14c49c0aa9a372a6",
    "9b5573ba24864940",
    "142d11f211be70fe",
    "561fbdd8dbff3e43",
    "34567db09bd19cd9",
    "e7c83d0c9dc371d4",
];

/// Finds subjects that are too long.
pub fn check(root: &Path, findings: &mut Vec<String>) -> Result<()> {
    let upstream = git(root, &["rev-parse", "--verify", "--quiet", "@{upstream}"])?;
    let range = match upstream.status.success() {
        true => "@{upstream}..HEAD",
        false => NEWEST,
    };
    let log = git(root, &["log", "--no-merges", "--format=%H %s", range])?;
    if !log.status.success() {
        bail!("git log: {}", String::from_utf8_lossy(&log.stderr));
    }
    findings.extend(long(&String::from_utf8_lossy(&log.stdout)));
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> Result<Output> {
    let mut git = Command::new("git");
    git.current_dir(root).args(arguments);
    git.output().context("starting git")
}

/// The findings in lines of a commit's id and subject.
fn long(log: &str) -> Vec<String> {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let long = commits.filter_map(|(id, subject)| {
        let width = subject.chars().count();
        let is_listed = LONG.iter().any(|listed| id.starts_with(listed));
        let short = id.get(..8).unwrap_or(id);
        (width > WIDTH && !is_listed)
            .then(|| format!("commit {short}: a subject of {width} characters, more than {WIDTH}"))
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_that_is_too_long_is_found() {
        let commit = |width: usize| format!("0123456789abcdef {}\n", "é".repeat(width));
        assert_eq!(long(&(commit(WIDTH) + &commit(1))), [""; 0]);
        assert_eq!(
            long(&(commit(1) + &commit(WIDTH + 1))),
            ["commit 01234567: a subject of 73 characters, more than 72"]
        );
    }

    #[test]
    fn a_commit_without_a_subject_has_none_that_is_too_long() {
        assert_eq!(long("0123456789abcdef \n"), [""; 0]);
    }
}
