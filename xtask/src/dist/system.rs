//! What is installed on a machine rather than in a project: the Debian package, the archive, and
//! the list of what is in the program.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::{Dist, VERSION, copy};
use crate::{setup, shell};

/// Shells, and what the files by which they complete commands are called.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "railbus.bash"),
    ("fish", "railbus.fish"),
    ("zsh", "_railbus"),
];

impl Dist<'_> {
    /// The archive and the Debian package.
    pub(super) fn system(&self) -> Result<()> {
        self.print()?;
        self.archive()?;
        if std::env::consts::OS == "linux" {
            self.debian()?;
        }
        Ok(())
    }

    /// Puts the program, and what it prints about itself, where a build would put the program.
    fn print(&self) -> Result<()> {
        let release = self.staging.join("target/release");
        let (completions, man) = (release.join("completions"), release.join("man"));
        fs::create_dir_all(&completions)?;
        fs::create_dir_all(&man)?;
        fs::copy(self.program, release.join("railbus"))?;
        for (shell, name) in COMPLETIONS {
            let mut command = Command::new(self.program);
            command.args(["completions", shell]);
            command.stdout(Stdio::from(File::create(completions.join(name))?));
            shell::visible(command)?;
        }
        let mut pages = Command::new(self.program);
        pages.arg("man").arg(man);
        shell::visible(pages)
    }

    /// The program with its licences, for any Linux.
    fn archive(&self) -> Result<()> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        let name = format!("railbus-{VERSION}-{arch}-{os}");
        let folder = self.staging.join(&name);
        copy(&self.staging.join("target/release"), &folder)?;
        for file in [
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "deploy/railbus.service",
            "deploy/railbus.toml",
        ] {
            copy(&self.workspace.root().join(file), &folder)?;
        }
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--gzip").arg("--file");
        tar.arg(self.out.join(format!("{name}.tar.gz")));
        tar.arg("--directory").arg(self.staging).arg(name);
        shell::visible(tar)
    }

    fn debian(&self) -> Result<()> {
        let mut deb = setup::cargo_deb(self.workspace)?;
        deb.env("CARGO_TARGET_DIR", self.staging.join("target"));
        deb.args(["deb", "--package", "railbus", "--quiet"]);
        deb.args(["--no-build", "--no-strip", "--fast", "--output"]);
        deb.arg(self.out);
        shell::visible(deb)
    }

    /// The crates that are linked into the program, in the format of CycloneDX.
    pub(super) fn bill_of_materials(&self) -> Result<()> {
        // The tool writes beside the manifests of the crates, so it works on a copy of them.
        let sources = self.staging.join("sources");
        fs::create_dir_all(&sources)?;
        let root = self.workspace.root();
        for name in [
            "Cargo.toml",
            "Cargo.lock",
            "crates",
            "tests",
            "examples",
            "interop",
            "xtask",
        ] {
            copy(&root.join(name), &sources)?;
        }
        let mut tool = setup::cargo_cyclonedx(self.workspace)?;
        tool.current_dir(&sources);
        tool.args(["cyclonedx", "--quiet", "--format", "json"]);
        tool.args(["--override-filename", "bom"]);
        tool.arg("--manifest-path").arg("crates/railbus/Cargo.toml");
        shell::visible(tool)?;
        let made = sources.join("crates/railbus/bom.json");
        fs::copy(made, self.out.join(format!("railbus-{VERSION}.cdx.json")))?;
        Ok(())
    }
}
