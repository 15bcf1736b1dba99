//! Checks: the steps that are one call of cargo or of our own rules.

use std::process::Command;

use anyhow::Result;

use crate::shell::{self, Logged};
use crate::workspace::Workspace;
use crate::{setup, tidy};

/// rustfmt over the workspace, and over the fuzz targets, which are a workspace of their own.
pub fn format(workspace: &Workspace) -> Result<Logged> {
    let mut all = Logged {
        success: true,
        code: None,
        output: String::new(),
    };
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut command = shell::cargo(workspace, &workspace.quick_target());
        command.args(["fmt", "--all", "--check", "--manifest-path", manifest]);
        let logged = shell::logged(workspace, "fmt", command)?;
        all.success &= logged.success;
        all.output.push_str(&logged.output);
    }
    Ok(all)
}

/// The rules of the module [`tidy`](mod@tidy).
pub fn tidy(workspace: &Workspace) -> Result<Logged> {
    let findings = tidy::check(workspace.root())?;
    Ok(Logged {
        success: findings.is_empty(),
        code: None,
        output: findings.join("\n"),
    })
}

/// Lints of the default members.
pub fn clippy_pure(workspace: &Workspace) -> Result<Logged> {
    let mut command = shell::cargo(workspace, &workspace.quick_target());
    command.args(["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
    shell::logged(workspace, "clippy", command)
}

/// Tests of the default members.
pub fn test_pure(workspace: &Workspace) -> Result<Logged> {
    let mut command = shell::cargo(workspace, &workspace.quick_target());
    command.args(["test", "--quiet", "--no-fail-fast"]);
    shell::logged(workspace, "unit", command)
}

/// Documentation of the default members, without a broken link.
pub fn documentation(workspace: &Workspace) -> Result<Logged> {
    let mut command = shell::cargo(workspace, &workspace.quick_target());
    command
        .args(["doc", "--quiet", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    shell::logged(workspace, "doc", command)
}

/// The rules of `deny.toml` but for advisories, whose database is fetched from elsewhere.
pub fn deny(workspace: &Workspace) -> Result<Logged> {
    let mut command = setup::cargo_deny(workspace)?;
    command.args([
        "--all-features",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    shell::logged(workspace, "deny", command)
}

/// The alert rules of Prometheus, each on series that make it fire and series that do not.
pub fn alerts(workspace: &Workspace) -> Result<Logged> {
    setup::for_alerts()?;
    let mut command = Command::new("promtool");
    command.args(["test", "rules", "deploy/prometheus/alerts_test.yaml"]);
    command.current_dir(workspace.root());
    shell::logged(workspace, "alerts", command)
}

/// Lints of everything. In the release profile, which shares RocksDB with the release build.
pub fn clippy_all(workspace: &Workspace) -> Result<Logged> {
    let mut command = shell::cargo(workspace, &workspace.target());
    command.args([
        "clippy",
        "--quiet",
        "--release",
        "--workspace",
        "--all-targets",
    ]);
    command.args(["--", "-D", "warnings"]);
    shell::logged(workspace, "clippy-all", command)
}
