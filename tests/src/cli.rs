//! The command line: the program, run as users run it to ask a broker something.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::broker::{Broker, program};

/// What a command said, and how it ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it printed beside that.
    pub err: String,
}

/// Runs `railbus` with `arguments` against `broker`.
#[must_use]
pub fn railbus(broker: &Broker, arguments: &[&str]) -> Said {
    railbus_at(&connection_string(broker), arguments, "")
}

/// What `broker` is asked with, by the development key.
#[must_use]
pub fn connection_string(broker: &Broker) -> String {
    let address = broker.address();
    format!(
        "Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
    )
}

/// Runs `railbus` with `arguments` against the broker of a connection string, with `input` on
/// stdin.
///
/// # Panics
/// When there is no program, or a signal ends it.
#[must_use]
pub fn railbus_at(connection_string: &str, arguments: &[&str], input: &str) -> Said {
    let mut process = Command::new(program())
        .args(arguments)
        .env("RAILBUS_CONNECTION_STRING", connection_string)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is there");
    let mut stdin = process.stdin.take().expect("stdin is piped");
    // A program that does not like its arguments does not read.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        code: output.status.code().expect("it ends by itself"),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}
