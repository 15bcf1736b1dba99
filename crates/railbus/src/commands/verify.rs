//! `railbus verify`: reads all of a data directory and lists what is damaged. A broker may use the
//! directory meanwhile: then what is on its disk is read beside it.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::arguments::{ServeArguments, VerifyArguments};
use crate::command_error::CommandError;
use crate::serve::data_directory::Location;
use crate::settings::Settings;
use crate::stdout;

/// Between two lines on what was read so far.
const PROGRESS: Duration = Duration::from_secs(1);

/// Prints a line on each damage, and one at the end.
pub fn run(arguments: VerifyArguments) -> Result<(), CommandError> {
    let settings = Settings::resolve(&ServeArguments {
        config: arguments.config,
        data_dir: arguments.data_dir,
        ..ServeArguments::default()
    })?;
    let Location::Lasting(path) = settings.data else {
        return Err(CommandError::VerifyEphemeral);
    };
    check_there(&path)?;
    let mut shown = Instant::now();
    let report = |progress: rocks::Progress| {
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            eprintln!("rows={} bytes={}", progress.rows, progress.bytes);
        }
    };
    let verified = rocks::verify(&path, &settings.store, report);
    let verified = verified.map_err(|error| CommandError::Store {
        path: path.clone(),
        error,
    })?;
    for damage in &verified.damage {
        stdout::print_line(format_args!("damage: {damage}"))?;
    }
    stdout::print_line(format_args!(
        "directory={} in-use={} rows={} bytes={} damaged={}",
        path.display(),
        verified.is_in_use,
        verified.progress.rows,
        verified.progress.bytes,
        verified.damage.len()
    ))?;
    match verified.damage.len() {
        0 => Ok(()),
        places => Err(CommandError::Damaged { path, places }),
    }
}

/// An empty directory is not made into a store.
fn check_there(path: &Path) -> Result<(), CommandError> {
    if path.join("format").exists() {
        return Ok(());
    }
    Err(CommandError::DataDirectory {
        path: path.to_owned(),
        error: std::io::Error::new(ErrorKind::NotFound, "there is no store in it"),
    })
}
