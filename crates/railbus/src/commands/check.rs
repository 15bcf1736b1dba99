//! `railbus config check`: validates a configuration file and prints its contents.

use std::path::Path;

use broker::Tier;

use crate::command_error::CommandError;
use crate::config::{self, Entities, RailbusToml, read_entities, read_railbus_toml};
use crate::stdout;

/// Checks `file`: TOML as a `railbus.toml`, anything else as an entities file.
pub fn run(file: &Path) -> Result<(), CommandError> {
    let entities = read(file)?;
    let policies = match entities.policies.len() {
        0 => String::new(),
        count => format!(", {count} policies"),
    };
    let namespaces = match entities.namespaces.len() {
        0 => String::new(),
        count => format!(", {count} other namespaces"),
    };
    let of_others = entities.namespaces.iter().map(|it| it.faults.len());
    let faults = match entities.faults.len() + of_others.sum::<usize>() {
        0 => String::new(),
        count => format!(", {count} fault rules"),
    };
    stdout::print_line(format_args!(
        "{} is valid: {} queues, {} topics{policies}{namespaces}{faults}",
        file.display(),
        entities.queues.len(),
        entities.topics.len(),
    ))
}

/// The entities of `file`. What a user should know of them goes to stderr.
pub fn read(file: &Path) -> Result<Entities, config::Error> {
    let entities = entities(file)?;
    for warning in entities.warnings.iter().chain(&entities.missing_targets()) {
        eprintln!("railbus: {warning}");
    }
    Ok(entities)
}

fn entities(file: &Path) -> Result<Entities, config::Error> {
    if file
        .extension()
        .is_none_or(|extension| !extension.eq_ignore_ascii_case("toml"))
    {
        return read_entities(file, Tier::Standard);
    }
    let (config, of_settings) = read_railbus_toml(file)?;
    let mut entities = match &config.entities {
        Some(path) => {
            let path = file.parent().unwrap_or(Path::new("")).join(path);
            read_entities(&path, config.sku.unwrap_or_default())?
        }
        None => Entities::default(),
    };
    entities.add(of_settings);
    // Settings alone are as good as entities. A file without both is hardly meant.
    if config == RailbusToml::default() {
        entities.warn_if_none(file);
    }
    Ok(entities)
}
