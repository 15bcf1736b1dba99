//! `railbus ca`: shows or exports the certificate authority that a broker makes itself, and prints
//! what makes clients trust it.

mod environment;

use std::path::PathBuf;

use crate::arguments::{CaArguments, CaCommand, ServeArguments};
use crate::command_error::CommandError;
use crate::serve::data_directory::Location;
use crate::settings::Settings;
use crate::stdout;
use crate::tls::{self, Authority, CertificateInfo, Error, Source};

/// Does what is asked for.
pub fn run(command: CaCommand) -> Result<(), CommandError> {
    match command {
        CaCommand::Show(arguments) => show(&authority(arguments)?),
        CaCommand::Export {
            authority: arguments,
            out,
        } => export(&authority(arguments)?, out),
        CaCommand::Env(arguments) => {
            let (authority, settings) = open(arguments)?;
            let text = environment::text(&authority, settings.host.as_ref())?;
            stdout::print(text)
        }
    }
}

/// The authority of a broker that is started with the same options.
fn authority(arguments: CaArguments) -> Result<Authority, CommandError> {
    open(arguments).map(|(authority, _)| authority)
}

fn open(arguments: CaArguments) -> Result<(Authority, Settings), CommandError> {
    let settings = Settings::resolve(&ServeArguments {
        config: arguments.config,
        data_dir: arguments.data_dir,
        tls_dir: arguments.tls_dir,
        host: arguments.host,
        ..ServeArguments::default()
    })?;
    let directory = match (&settings.tls, &settings.data) {
        (Source::Files(pair), _) => {
            return Err(Error::NotLocal(pair.certificate.clone()).into());
        }
        (
            Source::Local {
                directory: Some(directory),
                ..
            },
            _,
        ) => directory.clone(),
        (Source::Local { .. }, Location::Lasting(data)) => tls::directory_in(data),
        (Source::Local { .. }, Location::Ephemeral) => return Err(Error::Ephemeral.into()),
    };
    Ok((Authority::open(&directory)?, settings))
}

fn show(authority: &Authority) -> Result<(), CommandError> {
    let path = authority.certificate_path();
    let mut text = String::new();
    describe(
        &mut text,
        "authority",
        &path,
        &CertificateInfo::read(&path)?,
    );
    let pair = authority.pair();
    if pair.certificate.exists() {
        let info = CertificateInfo::read(&pair.certificate)?;
        describe(&mut text, "certificate", &pair.certificate, &info);
        text.push_str(&format!("  names        {}\n", info.names.join(", ")));
    }
    stdout::print(text)
}

fn describe(text: &mut String, what: &str, path: &std::path::Path, info: &CertificateInfo) {
    text.push_str(&format!(
        "{what:<14} {}\n  subject      {}\n  sha256       {}\n  valid        {} to {}\n",
        path.display(),
        info.subject,
        info.fingerprint,
        time(info.from),
        time(info.until),
    ));
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |time| time.to_string())
}

fn export(authority: &Authority, out: Option<PathBuf>) -> Result<(), CommandError> {
    let path = authority.certificate_path();
    let text = std::fs::read(&path).map_err(|error| Error::Certificate {
        path,
        reason: error.to_string(),
    })?;
    match out {
        Some(path) => {
            std::fs::write(&path, text).map_err(|error| CommandError::Write { path, error })
        }
        None => stdout::print(text),
    }
}
