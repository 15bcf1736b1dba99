//! What tests of files have in common: a file that is written, read and forgotten.

use broker::Tier;

use super::entities::{Entities, read_entities};

/// The entities of a file of this name and text; errors and warnings without its directory.
pub fn check(name: &str, text: &str) -> Result<Entities, String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    std::fs::write(&file, text).unwrap();
    let without_directory =
        |text: String| text.replace(&format!("{}/", directory.path().display()), "");
    let mut entities = read_entities(&file, Tier::Standard)
        .map_err(|error| without_directory(error.to_string()))?;
    let warnings = entities.warnings.into_iter();
    entities.warnings = warnings.map(without_directory).collect();
    Ok(entities)
}

/// A `Config.json` with these queues, which begin in its third line.
pub fn emulator(queues: &str) -> Result<Entities, String> {
    namespaces(&format!(
        "{{\"Name\": \"sbemulatorns\",\n\"Queues\": [\n{queues}\n]}}"
    ))
}

/// A `Config.json` with these topics, which begin in its first line.
pub fn topics(topics: &str) -> Result<Entities, String> {
    namespaces(&format!(r#"{{"Name": "n", "Topics": [{topics}]}}"#))
}

/// A `Config.json` with these namespaces.
pub fn namespaces(namespaces: &str) -> Result<Entities, String> {
    let text = format!(r#"{{"UserConfig": {{"Namespaces": [{namespaces}]}}}}"#);
    check("Config.json", &text)
}
