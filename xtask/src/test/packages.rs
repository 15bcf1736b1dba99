//! Packages: what users install is made of the program under test, and used where nothing else is.
//!
//! Each package has a script `check`, which installs it from the folder of packages into an empty
//! one, runs its example there, and what it promises. It never sees the program in the target
//! folder. Exit code 3 says that the machine lacks the language.

use std::process::Command;

use anyhow::Result;

use super::interop;
use crate::shell::{self, Logged};
use crate::workspace::Workspace;
use crate::{dist, setup};

/// The folders that have a script `check`.
const CHECKED: [&str; 5] = [
    "packages/python",
    "packages/js",
    "packages/go",
    "packages/java",
    "deploy",
];

/// Makes all packages and checks each.
pub fn check(workspace: &Workspace) -> Result<Logged> {
    setup::for_dist()?;
    let folder = workspace.temporary()?;
    let program = folder.path().join("railbus");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&program).arg(workspace.railbus());
    shell::visible(strip)?;
    let packages = folder.path().join("dist");
    dist::build(workspace, &program, &packages, false)?;
    let mut all = Logged {
        success: true,
        code: Some(0),
        output: String::new(),
    };
    for name in CHECKED {
        let mut script = Command::new("bash");
        script.arg(workspace.root().join(name).join("check"));
        script.arg(&packages);
        let logged = shell::logged(workspace, &name.replace('/', "-"), script)?;
        let is_missing = logged.code == Some(interop::MISSING);
        if is_missing {
            println!("not run: {name}: {}", logged.output.trim());
        }
        all.success &= logged.success || is_missing && !interop::is_ci();
        all.output.push_str(&logged.output);
    }
    Ok(all)
}
