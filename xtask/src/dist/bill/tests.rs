//! Tests of the comparison: a bill that lacks something, or has too much, is found.

use serde_json::{Value, json};

use super::{Crates, checksums, compare, linked};

const LOCK: &str = r#"
[[package]]
name = "railbus"
version = "0.1.0"

[[package]]
name = "amqp"
version = "0.1.0"

[[package]]
name = "bytes"
version = "1.2.3"
source = "registry"
checksum = "abc"
dependencies = [
 "other",
]
"#;

fn crates() -> Crates {
    let tree = "railbus v0.1.0 (/src/railbus)\tMIT OR Apache-2.0\n\
                amqp v0.1.0 (/src/amqp)\tMIT OR Apache-2.0\n\
                bytes v1.2.3\tMIT/Apache-2.0\n\
                amqp v0.1.0 (/src/amqp)\tMIT OR Apache-2.0 (*)\n";
    linked(tree, &checksums(LOCK)).expect("it is what cargo prints")
}

fn component(name: &str, version: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "scope": "required",
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    })
}

/// One with which nothing is wrong.
fn bill() -> Value {
    let mut bytes = component("bytes", "1.2.3");
    bytes["hashes"] = json!([{ "alg": "SHA-256", "content": "abc" }]);
    let mut tool = component("cc", "1.0.0");
    tool["scope"] = "excluded".into();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.3",
        "version": 1,
        "serialNumber": "urn:uuid:00000000-0000-4000-8000-000000000000",
        "metadata": {
            "timestamp": "2026-01-01T00:00:00Z",
            "component": component("railbus", crate::dist::VERSION),
        },
        "components": [component("amqp", "0.1.0"), bytes, tool],
        "dependencies": [
            { "ref": "railbus", "dependsOn": ["amqp", "cc"] },
            { "ref": "amqp", "dependsOn": ["bytes"] },
        ],
    })
}

/// What is wrong after a change.
fn wrong(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut bill = bill();
    change(&mut bill);
    compare(&bill, &crates())
}

#[test]
fn a_bill_of_what_is_linked_is_right() {
    assert_eq!(wrong(|_| ()), [""; 0]);
}

#[test]
fn a_crate_that_is_missing_or_of_another_version_is_found() {
    let found = wrong(|bill| {
        let bytes = bill["components"].as_array_mut().expect("a list").remove(1);
        assert_eq!(bytes["name"], "bytes");
        bill["dependencies"] = json!([{ "ref": "railbus", "dependsOn": ["amqp"] }]);
    });
    assert_eq!(found, ["bytes 1.2.3 is missing"]);
    let found = wrong(|bill| {
        bill["components"][1]["version"] = "1.2.4".into();
        bill["components"][1]["purl"] = "pkg:cargo/bytes@1.2.4".into();
    });
    assert_eq!(
        found,
        [
            "bytes 1.2.4 is not in the program",
            "bytes 1.2.3 is missing"
        ]
    );
}

#[test]
fn a_crate_that_only_builds_is_excluded() {
    let found = wrong(|bill| bill["components"][2]["scope"] = "required".into());
    assert_eq!(found, ["cc 1.0.0 is not in the program"]);
    let found = wrong(|bill| bill["components"][0]["scope"] = "excluded".into());
    assert_eq!(found, ["amqp 0.1.0 is missing"]);
}

#[test]
fn another_licence_and_another_checksum_are_found() {
    let found = wrong(|bill| {
        bill["components"][0]["licenses"][0]["expression"] = "GPL-3.0".into();
        bill["components"][1]["hashes"][0]["content"] = "abd".into();
    });
    assert_eq!(
        found,
        [
            "amqp 0.1.0 has the licence \"GPL-3.0\", not \"MIT OR Apache-2.0\"",
            "bytes 1.2.3 has another checksum in Cargo.lock",
        ]
    );
}

#[test]
fn what_the_format_requires_is_missed() {
    let found = wrong(|bill| {
        bill["bomFormat"] = "SPDX".into();
        bill["version"] = 0.into();
        bill["components"][0]["type"] = Value::Null;
        bill["dependencies"][1]["dependsOn"] = json!(["gone"]);
    });
    assert_eq!(
        found,
        [
            "bomFormat is not as it must be",
            "version is not as it must be",
            "amqp 0.1.0 has no type",
            "a dependency is on \"gone\", which is no component",
        ]
    );
}
