//! `railbus restore`: makes a data directory from a backup. It is there whole and verified, or not
//! at all. With `--namespace` a running broker gives a namespace what the backup of one has.

use crate::arguments::{RestoreArguments, ServeArguments};
use crate::command_error::CommandError;
use crate::commands::administration;
use crate::serve::data_directory::Location;
use crate::settings::Settings;
use crate::stdout;

/// Restores to the data directory of a broker that is started with the same options, and prints
/// one line about what is in it.
pub fn run(arguments: RestoreArguments) -> Result<(), CommandError> {
    if let Some(name) = &arguments.namespace {
        return administration::restore_namespace(name, &arguments.backup, &arguments.broker);
    }
    let settings = Settings::resolve(&ServeArguments {
        config: arguments.config,
        data_dir: arguments.data_dir,
        ..ServeArguments::default()
    })?;
    let Location::Lasting(target) = settings.data else {
        return Err(CommandError::RestoreEphemeral);
    };
    let contents = rocks::restore(&arguments.backup, &target, &settings.store)?;
    stdout::print_line(format_args!(
        "directory={} entities={} messages={} position={}",
        target.display(),
        contents.entities,
        contents.messages,
        contents.position
    ))
}
