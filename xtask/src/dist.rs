//! Dist: every package that users install, in one folder, with checksums and a list of what is in
//! the program.
//!
//! All packages hold the same program. They are made from a copy of `packages/`, so the sources
//! stay clean, and each has the licences in it. Invariant: `SHA256SUMS` names every file of the
//! folder but itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{package, setup, shell};

mod system;

/// What is made, and from what.
struct Dist<'a> {
    workspace: &'a Workspace,
    /// The stripped program.
    program: &'a Path,
    /// Copies of sources, and what is made on the way.
    staging: &'a Path,
    /// Where packages go.
    out: &'a Path,
}

/// Builds the program as it is installed, and all packages in `out`, which must be empty or new.
///
/// # Errors
/// When a tool is missing or a package could not be built.
pub fn run(workspace: &Workspace, out: &Path) -> Result<()> {
    let folder = workspace.temporary()?;
    let program = folder.path().join("railbus");
    package::run(workspace, &program)?;
    build(workspace, &program, out, true)
}

/// Makes all packages of `program` in `out`, which must be empty or new; with a bill of materials
/// if that is wanted, for which a large tool is compiled.
///
/// # Errors
/// As [`run`].
pub fn build(workspace: &Workspace, program: &Path, out: &Path, has_bill: bool) -> Result<()> {
    setup::for_dist()?;
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    let out = out.canonicalize()?;
    if fs::read_dir(&out)?.next().is_some() {
        bail!("{} is not empty", out.display());
    }
    let staging = workspace.temporary()?;
    let dist = Dist {
        workspace,
        program,
        staging: staging.path(),
        out: &out,
    };
    dist.stage()?;
    dist.python()?;
    dist.npm()?;
    dist.go()?;
    if shell::is_installed("mvn") {
        dist.maven()?;
    } else {
        println!("without the packages for Java: mvn is missing");
    }
    dist.system()?;
    if has_bill {
        dist.bill_of_materials()?;
    }
    dist.checksums()
}

/// The version of all packages, which is that of this crate too.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// System and processor as Node.js names them, which is what packages of npm and Maven are called.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        processor => processor,
    };
    format!("{system}-{processor}")
}

impl Dist<'_> {
    /// Copies the sources of the packages, each with the licences.
    fn stage(&self) -> Result<()> {
        let root = self.workspace.root();
        copy(&root.join("packages"), self.staging)?;
        for folder in ["python", "js/railbus", "js/platform", "go", "java"] {
            for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
                let copy = self.packages().join(folder).join(licence);
                fs::copy(root.join(licence), &copy)
                    .with_context(|| format!("writing {}", copy.display()))?;
            }
        }
        Ok(())
    }

    fn packages(&self) -> PathBuf {
        self.staging.join("packages")
    }

    /// The folder `name` in the folder of packages.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.out.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// A wheel with the program.
    fn python(&self) -> Result<()> {
        let venv = self.staging.join("venv");
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&venv);
        shell::visible(create)?;
        let mut wheel = Command::new(venv.join("bin/pip"));
        wheel.args(["wheel", "--quiet", "--disable-pip-version-check"]);
        wheel.args(["--no-deps", "--wheel-dir"]);
        wheel.arg(self.folder("python")?);
        wheel.arg(self.packages().join("python"));
        wheel.env("RAILBUS_BIN", self.program);
        shell::visible(wheel)
    }

    /// A package for all platforms, and one with the program of this platform.
    fn npm(&self) -> Result<()> {
        let platform = platform();
        let packages = self.packages().join("js");
        let program = packages.join("platform/bin/railbus");
        fs::create_dir_all(packages.join("platform/bin"))?;
        fs::copy(self.program, program)?;
        edit(&packages.join("platform/package.json"), |manifest| {
            manifest["name"] = format!("@railbus/{platform}").into();
            let (system, processor) = platform.split_once('-').unwrap_or_default();
            manifest["os"] = [system].as_slice().into();
            manifest["cpu"] = [processor].as_slice().into();
        })?;
        // It installs the program of the machine that it is on.
        edit(&packages.join("railbus/package.json"), |manifest| {
            manifest["optionalDependencies"][format!("@railbus/{platform}")] = VERSION.into();
        })?;
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", "--pack-destination"]);
        pack.arg(self.folder("npm")?);
        pack.arg(packages.join("railbus"));
        pack.arg(packages.join("platform"));
        pack.stdout(Stdio::null());
        shell::visible(pack)
    }

    /// The module as an archive. It finds the program on the path.
    fn go(&self) -> Result<()> {
        let archive = self
            .folder("go")?
            .join(format!("railbus-go-{VERSION}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--gzip").arg("--file").arg(archive);
        tar.arg("--exclude=example").arg("--exclude=check");
        tar.arg(format!("--transform=s,^go,railbus-go-{VERSION},"));
        tar.arg("--directory").arg(self.packages()).arg("go");
        shell::visible(tar)
    }

    /// A repository with the extension of JUnit, and the program as a jar of its own.
    fn maven(&self) -> Result<()> {
        let platform = platform();
        let programs = self.staging.join("programs");
        let folder = programs.join("railbus/program").join(&platform);
        fs::create_dir_all(&folder)?;
        fs::copy(self.program, folder.join("railbus"))?;
        let sum = checksum(&folder, Path::new("railbus"))?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        fs::write(folder.join("railbus.sha256"), sum)?;
        let mut deploy = Command::new("mvn");
        deploy.current_dir(self.packages().join("java"));
        deploy.args(["--batch-mode", "--quiet", "-Dstyle.color=never", "deploy"]);
        deploy.arg(format!("-Dplatform={platform}"));
        deploy.arg(format!("-Dprograms={}", programs.display()));
        let repository = self.folder("maven")?;
        let repository = format!("local::file://{}", repository.display());
        deploy.arg(format!("-DaltDeploymentRepository={repository}"));
        shell::visible(deploy)
    }

    fn checksums(&self) -> Result<()> {
        let mut files = Vec::new();
        files_below(self.out, &mut files)?;
        files.sort();
        let mut sums = String::new();
        for file in files {
            sums.push_str(&checksum(self.out, file.strip_prefix(self.out)?)?);
        }
        fs::write(self.out.join("SHA256SUMS"), sums)?;
        Ok(())
    }
}

/// The line of `sha256sum` for `file` in `folder`.
fn checksum(folder: &Path, file: &Path) -> Result<String> {
    let mut command = Command::new("sha256sum");
    let said = command.current_dir(folder).arg(file).output();
    let said = said.context("starting sha256sum")?;
    if !said.status.success() {
        bail!("sha256sum of {} ended with {}", file.display(), said.status);
    }
    Ok(String::from_utf8(said.stdout)?)
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    command.arg("-R").arg(from).arg(to);
    shell::visible(command)
}

fn edit(file: &Path, change: impl FnOnce(&mut serde_json::Value)) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut manifest = serde_json::from_str(&text)?;
    change(&mut manifest);
    fs::write(file, serde_json::to_string_pretty(&manifest)?)?;
    Ok(())
}
