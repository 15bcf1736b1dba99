//! Set-up: everything a fresh Debian or Ubuntu machine lacks, said before it is installed.
//!
//! System packages come from apt, toolchain components from rustup, tools of cargo from their
//! source. What is there already is left alone, so on a prepared machine this takes no time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

/// Pinned, since its configuration format changes between versions.
const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &[],
};

/// Makes the Debian package. Without a library of C for compression: the program `xz` does that.
const CARGO_DEB: Tool = Tool {
    name: "cargo-deb",
    version: "3.8.0",
    options: &["--no-default-features"],
};

/// Lists what is linked into the program.
const CARGO_CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
    options: &[],
};

/// A subcommand of cargo that is installed from its source.
struct Tool {
    name: &'static str,
    version: &'static str,
    options: &'static [&'static str],
}

/// A need of ours and the Debian packages that fill it.
struct Need {
    is_met: fn() -> bool,
    packages: &'static [&'static str],
}

/// What building RocksDB takes: a C++ compiler, make, and libclang for its bindings.
const BUILD: &[Need] = &[
    Need {
        is_met: || shell::is_installed("c++"),
        packages: &["g++"],
    },
    Need {
        is_met: || shell::is_installed("make"),
        packages: &["make"],
    },
    Need {
        is_met: || shell::is_installed("pkg-config"),
        packages: &["pkg-config"],
    },
    Need {
        is_met: has_libclang,
        packages: &["clang", "libclang-dev"],
    },
];

/// What the clients in `interop/` take on top. Java and Go are used if present.
const CLIENTS: &[Need] = &[Need {
    is_met: || shell::is_installed("python3"),
    packages: &["python3", "python3-venv"],
}];

/// What the web console is built with, and clients in JavaScript run on.
const NODE: &[Need] = &[
    Need {
        is_met: || shell::is_installed("node"),
        packages: &["nodejs"],
    },
    Need {
        is_met: || shell::is_installed("npm"),
        packages: &["npm"],
    },
];

/// What watches which functions run, and what lists them and strips the program.
const PACKAGING: &[Need] = &[
    Need {
        is_met: || shell::is_installed("valgrind"),
        packages: &["valgrind"],
    },
    Need {
        is_met: || shell::is_installed("nm"),
        packages: &["binutils"],
    },
];

/// What packages of other languages and of Debian take. Maven is used if present.
const DIST: &[Need] = &[
    Need {
        is_met: || shell::is_installed("strip"),
        packages: &["binutils"],
    },
    Need {
        is_met: || shell::is_installed("dpkg-shlibdeps"),
        packages: &["dpkg-dev"],
    },
    Need {
        is_met: || shell::is_installed("xz"),
        packages: &["xz-utils"],
    },
];

/// What Artemis takes: Maven to get it, Java to run it, and libaio, without which its journal is
/// slower.
const ARTEMIS: &[Need] = &[
    Need {
        is_met: || shell::is_installed("mvn"),
        packages: &["maven"],
    },
    Need {
        is_met: || shell::is_installed("java"),
        packages: &["default-jre-headless"],
    },
    Need {
        is_met: has_libaio,
        packages: &["libaio1"],
    },
];

/// What tests the alert rules of Prometheus.
const ALERTS: &[Need] = &[Need {
    is_met: || shell::is_installed("promtool"),
    packages: &["prometheus"],
}];

/// What RabbitMQ takes: a program that unpacks packages, and one that gives it a file system.
const RABBITMQ: &[Need] = &[
    Need {
        is_met: || shell::is_installed("mmdebstrap"),
        packages: &["mmdebstrap"],
    },
    Need {
        is_met: || shell::is_installed("bwrap"),
        packages: &["bubblewrap"],
    },
];

/// Installs what the build of the broker needs.
pub fn for_building() -> Result<()> {
    install(&missing(BUILD))
}

/// Installs what building the web console needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_console() -> Result<()> {
    install(&missing(NODE))
}

/// Installs what packaging the broker needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_packaging() -> Result<()> {
    for_building()?;
    for_console()?;
    install(&missing(PACKAGING))
}

/// Installs what making packages of the program needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_dist() -> Result<()> {
    let mut packages = missing(CLIENTS);
    packages.extend(missing(NODE));
    packages.extend(missing(DIST));
    install(&packages)
}

/// Installs what measuring Artemis needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_artemis() -> Result<()> {
    install(&missing(ARTEMIS))
}

/// Installs what testing alert rules needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_alerts() -> Result<()> {
    install(&missing(ALERTS))
}

/// Installs what measuring RabbitMQ needs.
///
/// # Errors
/// When a package could not be installed.
pub fn for_rabbitmq() -> Result<()> {
    install(&missing(RABBITMQ))
}

/// Installs what the whole test run needs.
pub fn for_testing() -> Result<()> {
    let mut packages = missing(BUILD);
    packages.extend(missing(CLIENTS));
    packages.extend(missing(NODE));
    install(&packages)?;
    components()
}

/// Adds rustfmt and clippy to the toolchain if it came without them.
pub fn components() -> Result<()> {
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        let works = Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|out| out.status.success());
        if !works {
            println!("adding the toolchain component {component}");
            let mut rustup = Command::new("rustup");
            rustup.args(["component", "add", component]);
            shell::visible(rustup).with_context(|| format!("{component} is missing"))?;
        }
    }
    Ok(())
}

/// Checks dependencies.
pub fn cargo_deny(workspace: &Workspace) -> Result<Command> {
    CARGO_DENY.install(workspace)
}

/// Makes Debian packages.
///
/// # Errors
/// When it could not be installed.
pub fn cargo_deb(workspace: &Workspace) -> Result<Command> {
    CARGO_DEB.install(workspace)
}

/// Lists what a program is made of.
///
/// # Errors
/// When it could not be installed.
pub fn cargo_cyclonedx(workspace: &Workspace) -> Result<Command> {
    CARGO_CYCLONEDX.install(workspace)
}

impl Tool {
    /// Installs it in the cache unless it is there. Unoptimised: it runs for seconds, so a minute
    /// of compiling is enough.
    fn install(&self, workspace: &Workspace) -> Result<Command> {
        let Self { name, version, .. } = self;
        let home = workspace.tools().join(format!("{name}-{version}"));
        let program = home.join("bin").join(name);
        if !program.is_file() {
            self.compile(workspace, &home)?;
        }
        let mut command = Command::new(program);
        command.current_dir(workspace.root());
        Ok(command)
    }

    fn compile(&self, workspace: &Workspace, home: &Path) -> Result<()> {
        let Self { name, version, .. } = self;
        let target = workspace.tools().join("build").join(name);
        let mut install = shell::cargo(workspace, &target);
        install.args(["install", name, "--locked", "--debug", "--quiet"]);
        install.args(self.options);
        install.args(["--version", version, "--root"]).arg(home);
        let outcome = shell::logged(workspace, &format!("{name}-install"), install)?;
        if !outcome.success {
            bail!("{name} {version} did not install:\n{}", outcome.output);
        }
        // Many times the size of the program, and not needed again.
        std::fs::remove_dir_all(&target).with_context(|| format!("removing {}", target.display()))
    }
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs
        .iter()
        .filter(|need| !(need.is_met)())
        .flat_map(|need| need.packages)
        .copied()
        .collect()
}

fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    println!(
        "installing system packages with apt-get: {}",
        packages.join(" ")
    );
    if !shell::is_installed("apt-get") {
        bail!(
            "there is no apt-get here; install the equivalents of these Debian packages: {}",
            packages.join(" ")
        );
    }
    // A stale package list is better than none, so only the installation has to succeed.
    if let Err(error) = apt(&["update", "--quiet=2"], &[]) {
        println!("{error:#}");
    }
    if let Some(bytes) = download_size(packages) {
        println!("downloading {} MB of packages", bytes.div_ceil(1_000_000));
    }
    apt(
        &["install", "--yes", "--quiet=2", "--no-install-recommends"],
        packages,
    )
}

/// The bytes that apt will download for `packages`, their dependencies included.
fn download_size(packages: &[&str]) -> Option<u64> {
    let mut command = Command::new("apt-get");
    command.args(["install", "--yes", "--no-install-recommends"]);
    command.args(["--quiet=2", "--print-uris"]).args(packages);
    let listed = command.output().ok().filter(|out| out.status.success())?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Some(text.lines().filter_map(package_size).sum())
}

/// The third word of a line of `apt-get --print-uris`, which follows the address and the file name.
fn package_size(line: &str) -> Option<u64> {
    line.split_whitespace().nth(2)?.parse().ok()
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let mut command = if rustix::process::geteuid().is_root() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    };
    command
        .arg("DEBIAN_FRONTEND=noninteractive")
        .arg("apt-get")
        .args(arguments)
        .args(packages);
    shell::visible(command)
}

/// Whether libclang can be loaded at build time, as the bindings' generator does.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    if !shell::is_installed("clang") {
        return false;
    }
    let llvm = folders("/usr/lib").filter(|name| name.starts_with("llvm-"));
    let inside = llvm.map(|name| format!("/usr/lib/{name}/lib"));
    inside.chain(multiarch()).any(|folder| {
        folders(&folder).any(|name| name.starts_with("libclang") && name.contains(".so"))
    })
}

fn has_libaio() -> bool {
    multiarch().any(|folder| folders(&folder).any(|name| name.starts_with("libaio.so.1")))
}

fn multiarch() -> impl Iterator<Item = String> {
    folders("/usr/lib")
        .filter(|name| name.ends_with("-linux-gnu"))
        .map(|name| format!("/usr/lib/{name}"))
}

/// Names of what lies in `folder`; none if it is not there.
fn folders(folder: impl AsRef<Path>) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_package_is_read_from_the_list_of_addresses() {
        let line = "'http://deb.debian.org/debian/pool/main/m/make/make_4.4-1_amd64.deb' make_4.4-1_amd64.deb 463484 SHA256:0f";
        assert_eq!(package_size(line), Some(463_484));
        assert_eq!(package_size("Reading package lists..."), None);
    }
}
