//! Tidy: the project's own rules, which no other tool knows, as ratchets.
//!
//! Each rule is a function from a file to findings, in a file of its own under `tidy/`. What a
//! rule allows can only shrink: an allowance that is no longer needed is itself a finding.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

mod arrows;
mod citations;
mod length;
mod secrets;
mod shown;
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
    let sources = sources(root)?;
    let mut findings = Vec::new();
    for source in &sources {
        text::check(source, &mut findings);
        arrows::check(source, &mut findings);
        secrets::check(source, &mut findings);
        words::check(source, &mut findings);
    }
    citations::check(&sources, &mut findings);
    length::check(&sources, &mut findings);
    shown::check(&sources, &mut findings);
    findings.sort();
    Ok(findings)
}

/// All files that git tracks or would track.
fn sources(root: &Path) -> Result<Vec<Source>> {
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
    let mut sources = Vec::new();
    for path in listing.split_terminator('\0') {
        // Deleted but still tracked files and binary ones have no text to judge.
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            sources.push(Source {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(sources)
}
