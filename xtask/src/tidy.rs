//! Tidy: the project's own rules, which no other tool knows, as ratchets.
//!
//! Each rule is a function from files to findings, in a file of its own under `tidy/`; one rule
//! looks at commits. What a rule allows can only shrink: an allowance of a file that is no longer
//! needed is itself a finding.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

mod arrows;
mod circles;
mod citations;
mod length;
mod links;
mod secrets;
mod shown;
mod subjects;
mod text;
mod words;

/// A tracked file that is text.
struct Source {
    /// Relative to the workspace, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Everything that breaks a rule, one line each.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let paths = paths(root)?;
    let sources = sources(root, &paths);
    let mut findings = Vec::new();
    for source in &sources {
        text::check(source, &mut findings);
        arrows::check(source, &mut findings);
        secrets::check(source, &mut findings);
        words::check(source, &mut findings);
    }
    circles::check(&sources, &mut findings);
    citations::check(&sources, &mut findings);
    length::check(&sources, &mut findings);
    shown::check(&sources, &mut findings);
    links::check(&sources, &paths, &mut findings);
    subjects::check(root, &mut findings)?;
    findings.sort();
    Ok(findings)
}

/// All files that git tracks or would track, and that are there.
fn paths(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listing = git.output().context("starting git")?;
    if !listing.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
    }
    let listing = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
    let paths = listing.split_terminator('\0').map(str::to_owned);
    Ok(paths.filter(|path| root.join(path).exists()).collect())
}

/// Those of the files that are text; binary ones have none to judge.
fn sources(root: &Path, paths: &[String]) -> Vec<Source> {
    let texts = paths.iter().filter_map(|path| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let path = path.clone();
        Some(Source { path, text })
    });
    texts.collect()
}
