//! Output of messages: their bodies for pipes, or JSON with all their properties.

use std::io::Write;

use bytes::Bytes;
use serde_json::Value as Json;
use server::messages::DecodedMessage;

use super::Error;

/// Prints an encoded message: its body and the end of a line, or an object in one line.
pub fn print(payload: &Bytes, as_json: bool) -> Result<(), Error> {
    let shown = DecodedMessage::read(payload)?;
    let mut stdout = std::io::stdout().lock();
    let printed = match as_json {
        true => writeln!(stdout, "{}", Json::Object(shown.json(usize::MAX))),
        false => stdout
            .write_all(shown.body())
            .and_then(|()| writeln!(stdout)),
    };
    printed.and_then(|()| stdout.flush()).map_err(Error::Output)
}
