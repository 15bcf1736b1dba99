//! Bill: the bill of materials of the program, compared with what cargo says that it is built of.
//!
//! It has to be a document of CycloneDX in which each component has what the format requires, and
//! which refers to nothing that it does not have. What it says is required is each crate that is
//! linked into the program, with version, licence and checksum, and nothing else; crates that only
//! run while it is built are marked as excluded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;

#[cfg(test)]
mod tests;

/// A crate: its name and version.
type Name = (String, String);

/// What cargo says of a crate.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Known {
    /// An expression of SPDX.
    licence: String,
    /// Of what was downloaded; nothing for a crate of the workspace.
    checksum: Option<String>,
}

/// What the program is built of.
type Crates = BTreeMap<Name, Known>;

/// Compares the bill of materials in `file` with the crates of the workspace. Returns what is wrong
/// with it, in sentences.
///
/// # Errors
/// When it could not be read, or cargo did not answer.
pub fn check(workspace: &Workspace, file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let bill = serde_json::from_str(&text).with_context(|| format!("{}", file.display()))?;
    let lock = fs::read_to_string(workspace.root().join("Cargo.lock"))?;
    let crates = linked(&tree(workspace)?, &checksums(&lock))?;
    Ok(compare(&bill, &crates))
}

/// What cargo lists of the program: one crate a line, with its licence.
fn tree(workspace: &Workspace) -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(workspace.root());
    cargo.args(["tree", "--locked", "--package", "railbus"]);
    cargo.args(["--edges", "normal", "--prefix", "none"]);
    cargo.args(["--format", "{p}\t{l}"]);
    let said = cargo.output().context("starting cargo tree")?;
    if !said.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&said.stderr));
    }
    Ok(String::from_utf8(said.stdout)?)
}

/// The crates of what `cargo tree` has printed, but for the program's own.
fn linked(tree: &str, checksums: &BTreeMap<Name, String>) -> Result<Crates> {
    let mut crates = Crates::new();
    for line in tree.lines() {
        let (package, licence) = line.split_once('\t').context("a line has a licence")?;
        let mut words = package.split(' ');
        let name = words.next().zip(words.next());
        let (name, version) = name.with_context(|| format!("{line} names no crate"))?;
        let name = (name.to_owned(), version.trim_start_matches('v').to_owned());
        // A crate that was listed before is marked so.
        let licence = licence.trim_end_matches(" (*)").to_owned();
        let checksum = checksums.get(&name).cloned();
        crates.insert(name, Known { licence, checksum });
    }
    crates.retain(|(name, _), _| name != "railbus");
    Ok(crates)
}

/// The checksums in `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<Name, String> {
    let packages = lock.split("[[package]]").skip(1);
    let field = |package: &str, name: &str| {
        let mut lines = package.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let known = packages.filter_map(|package| {
        let name = (field(package, "name")?, field(package, "version")?);
        Some((name, field(package, "checksum")?))
    });
    known.collect()
}

/// All that is wrong with a bill of materials.
fn compare(bill: &Value, crates: &Crates) -> Vec<String> {
    let mut wrong = check_head(bill);
    let components = bill["components"].as_array();
    let Some(components) = components.filter(|it| !it.is_empty()) else {
        wrong.push("it has no components".to_owned());
        return wrong;
    };
    let mut missing: BTreeSet<_> = crates.keys().collect();
    let mut references = BTreeSet::new();
    let program = &bill["metadata"]["component"];
    for component in components.iter().chain([program]) {
        wrong.extend(check_fields(component));
        if !references.insert(text(component, "bom-ref")) {
            wrong.push(format!("two components are {}", component["bom-ref"]));
        }
    }
    for component in components {
        let name = name_of(component);
        let is_linked = text(component, "scope") != "excluded";
        match crates.get(&name) {
            Some(known) if is_linked => {
                if !missing.remove(&name) {
                    wrong.push(format!("{} {} is there twice", name.0, name.1));
                }
                wrong.extend(check_crate(&name, component, known));
            }
            // It runs while the program is built, too.
            Some(_) | None if !is_linked => {}
            _ => wrong.push(format!("{} {} is not in the program", name.0, name.1)),
        }
    }
    let missing = missing.into_iter();
    wrong.extend(missing.map(|(name, version)| format!("{name} {version} is missing")));
    wrong.extend(check_dependencies(bill, &references));
    wrong
}

/// What the format requires of a document.
fn check_head(bill: &Value) -> Vec<String> {
    let program = name_of(&bill["metadata"]["component"]);
    let serial = text(bill, "serialNumber").strip_prefix("urn:uuid:");
    let rules = [
        ("bomFormat", text(bill, "bomFormat") == "CycloneDX"),
        ("specVersion", text(bill, "specVersion").starts_with("1.")),
        ("version", bill["version"].as_u64().is_some_and(|it| it > 0)),
        ("serialNumber", serial.is_some_and(|it| it.len() == 36)),
        (
            "metadata.timestamp",
            bill["metadata"]["timestamp"].is_string(),
        ),
        (
            "metadata.component",
            program == ("railbus".to_owned(), super::VERSION.to_owned()),
        ),
    ];
    let broken = rules.into_iter().filter(|(_, holds)| !holds);
    let broken = broken.map(|(name, _)| format!("{name} is not as it must be"));
    broken.collect()
}

/// What the format requires of a component, and what names a crate elsewhere.
fn check_fields(component: &Value) -> Vec<String> {
    let (name, version) = name_of(component);
    let fields = ["type", "name", "version", "bom-ref", "purl"];
    let empty = fields.iter().filter(|it| text(component, it).is_empty());
    let mut wrong: Vec<_> = empty
        .map(|field| format!("{name} {version} has no {field}"))
        .collect();
    let purl = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
    if !text(component, "purl").starts_with(&purl) {
        wrong.push(format!(
            "{name} {version} has the purl {}",
            component["purl"]
        ));
    }
    wrong
}

/// What cargo knows of a crate.
fn check_crate((name, version): &Name, component: &Value, known: &Known) -> Vec<String> {
    let mut wrong = Vec::new();
    let licence = &component["licenses"][0];
    let said = ["/expression", "/license/id", "/license/name"];
    let said = said.map(|path| licence.pointer(path).and_then(Value::as_str));
    let said = said.into_iter().flatten().next().unwrap_or_default();
    // An older way to write OR.
    let wanted = known.licence.replace('/', " OR ");
    if said.is_empty() || squeezed(said) != squeezed(&wanted) {
        let wanted = &known.licence;
        wrong.push(format!(
            "{name} {version} has the licence {said:?}, not {wanted:?}"
        ));
    }
    let hashes = component["hashes"].as_array().into_iter().flatten();
    let mut hashes = hashes.filter(|hash| text(hash, "alg") == "SHA-256");
    let hash = hashes.next().map(|hash| text(hash, "content"));
    if hash != known.checksum.as_deref() {
        wrong.push(format!(
            "{name} {version} has another checksum in Cargo.lock"
        ));
    }
    wrong
}

/// A text in which spaces stand between words alone.
fn squeezed(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// Dependencies are among components that are there.
fn check_dependencies(bill: &Value, references: &BTreeSet<&str>) -> Vec<String> {
    let dependencies = bill["dependencies"].as_array().into_iter().flatten();
    let named = dependencies.flat_map(|dependency| {
        let on = dependency["dependsOn"].as_array().into_iter().flatten();
        on.chain([&dependency["ref"]])
    });
    let named = named.map(|it| it.as_str().unwrap_or_default());
    let named: BTreeSet<_> = named.collect();
    let mut wrong = Vec::new();
    if named.is_empty() {
        wrong.push("it has no dependencies".to_owned());
    }
    let unknown = named.difference(references);
    wrong.extend(unknown.map(|it| format!("a dependency is on {it:?}, which is no component")));
    wrong
}

fn name_of(component: &Value) -> Name {
    let field = |name| text(component, name).to_owned();
    (field("name"), field("version"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
