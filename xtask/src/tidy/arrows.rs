//! Arrows: which crate may depend on which. [ARCHITECTURE.md, Crates]
//!
//! The deterministic crates also name no runtime, clock or random source, neither as a dependency
//! nor through the standard library.

use super::Source;

/// What each crate may depend on among ours. A crate that is not listed may depend on any.
const ARROWS: &[(&str, &[&str])] = &[
    ("amqp", &[]),
    ("endpoint", &["amqp"]),
    ("filter", &["amqp"]),
    ("store", &[]),
    ("broker", &["amqp", "filter", "store"]),
    ("access", &["broker", "store"]),
    ("dialect", &["access", "endpoint", "broker", "amqp"]),
    (
        "servicebus",
        &["dialect", "access", "endpoint", "broker", "store", "amqp"],
    ),
    (
        "rabbitmq",
        &["dialect", "access", "endpoint", "broker", "store", "amqp"],
    ),
    ("entity", &["broker", "filter", "amqp"]),
    ("admin", &["entity", "broker", "amqp"]),
    ("journal", &["store"]),
    ("index", &["journal", "store"]),
    ("rocks", &["index", "journal", "store"]),
    (
        "server",
        &[
            "access",
            "admin",
            "dialect",
            "entity",
            "rabbitmq",
            "servicebus",
            "endpoint",
            "broker",
            "filter",
            "store",
            "amqp",
        ],
    ),
    (
        "sim",
        &[
            "access",
            "dialect",
            "rabbitmq",
            "servicebus",
            "endpoint",
            "broker",
            "index",
            "journal",
            "store",
            "amqp",
        ],
    ),
    ("load", &["endpoint", "amqp"]),
];

/// All crates an arrow can point to.
const OURS: &[&str] = &[
    "access",
    "dialect",
    "amqp",
    "endpoint",
    "filter",
    "store",
    "broker",
    "servicebus",
    "rabbitmq",
    "entity",
    "admin",
    "journal",
    "index",
    "rocks",
    "server",
    "sim",
    "load",
    "railbus",
];

/// Crates that perform nothing: commands and time go in, effects come out.
const PURE: &[&str] = &[
    "access",
    "dialect",
    "amqp",
    "endpoint",
    "filter",
    "broker",
    "servicebus",
    "rabbitmq",
    "entity",
    "admin",
    "store",
    "index",
    "sim",
];

/// Dependencies that perform something.
const IMPURE: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "rand",
    "getrandom",
    "rustix",
    "libc",
    "chrono",
    "tempfile",
];

/// Ways to reach the outside through the standard library.
const OUTSIDE: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "thread::sleep",
    "std::net",
    "std::fs",
    "std::env",
    "thread::spawn",
];

/// Finds forbidden dependencies and forbidden uses of the standard library.
pub fn check(source: &Source, findings: &mut Vec<String>) {
    let Some((name, file)) = source
        .path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once('/'))
    else {
        return;
    };
    if file == "Cargo.toml" {
        let dependencies = dependencies(&source.text);
        findings.extend(
            forbidden(name, &dependencies)
                .map(|to| format!("{}: {name} must not depend on {to}", source.path)),
        );
    } else if file.starts_with("src/") && PURE.contains(&name) {
        let used = OUTSIDE
            .iter()
            .filter(|outside| source.text.contains(**outside));
        findings.extend(used.map(|outside| {
            format!(
                "{}: {outside} in a crate that performs nothing",
                source.path
            )
        }));
    }
}

/// Those of `dependencies` that the crate `name` must not have.
fn forbidden<'a>(name: &str, dependencies: &'a [String]) -> impl Iterator<Item = &'a String> {
    let arrows = ARROWS
        .iter()
        .find(|(from, _)| *from == name)
        .map(|(_, to)| *to);
    let is_pure = PURE.contains(&name);
    dependencies.iter().filter(move |dependency| {
        let dependency = dependency.as_str();
        let is_off =
            arrows.is_some_and(|to| OURS.contains(&dependency) && !to.contains(&dependency));
        is_off || (is_pure && IMPURE.contains(&dependency))
    })
}

/// The names in the `[dependencies]` table of a manifest; what tests depend on is their business.
fn dependencies(manifest: &str) -> Vec<String> {
    let table = manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1);
    let entries = table.take_while(|line| !line.trim_start().starts_with('['));
    let names = entries.filter_map(|line| line.split(['.', '=', ' ']).next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_manifest(name: &str, manifest: &str, expected: &[&str]) {
        let dependencies = dependencies(manifest);
        assert_eq!(forbidden(name, &dependencies).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found() {
        let manifest = "[package]\nname = \"broker\"\n\n[dependencies]\nendpoint.workspace = true\nstore.workspace = true\n";
        check_manifest("broker", manifest, &["endpoint"]);
    }

    #[test]
    fn a_runtime_is_found_in_a_pure_crate_only() {
        let manifest = "[dependencies]\ntokio = \"1\"\n";
        check_manifest("endpoint", manifest, &["tokio"]);
        check_manifest("server", manifest, &[]);
    }

    #[test]
    fn tests_may_depend_on_more() {
        check_manifest(
            "store",
            "[dependencies]\nbytes = \"1\"\n\n[dev-dependencies]\ntempfile = \"3\"\n",
            &[],
        );
    }
}
