//! `railbus identity`: prints how programs find the development issuer. (docs/spec/admin.md#2.4)

use std::net::{IpAddr, SocketAddr};

use crate::arguments::{IdentityArguments, IdentityCommand, ServeArguments};
use crate::command_error::CommandError;
use crate::serve::keys::DEVELOPMENT_KEY;
use crate::settings::Settings;
use crate::stdout;

/// The port that is for HTTP by convention.
const HTTP_PORT: u16 = 5_300;
/// Variables by which the identity libraries would choose another protocol.
const OTHERS: &str = "IDENTITY_SERVER_THUMBPRINT IMDS_ENDPOINT MSI_ENDPOINT MSI_SECRET";

/// Does what is asked for.
pub fn run(command: IdentityCommand) -> Result<(), CommandError> {
    match command {
        IdentityCommand::Env(arguments) => env(arguments),
    }
}

/// Prints the variables for a broker that is started with the same options.
fn env(arguments: IdentityArguments) -> Result<(), CommandError> {
    let settings = Settings::resolve(&ServeArguments {
        config: arguments.config,
        listen: arguments.listen,
        ..ServeArguments::default()
    })?;
    if !settings.server.rules.is_development {
        return Err(CommandError::NoDevelopmentIssuer);
    }
    let address = address(&settings.server.listen).ok_or(CommandError::NoLocalPort)?;
    let text = format!(
        "export IDENTITY_ENDPOINT=http://{address}/msi/token\n\
         export IDENTITY_HEADER={DEVELOPMENT_KEY}\n\
         unset {OTHERS}\n"
    );
    stdout::print(text)
}

/// Where HTTP is spoken on loopback: at its usual port, or at the first one.
fn address(listen: &[SocketAddr]) -> Option<String> {
    let local = |address: &&SocketAddr| address.ip().is_loopback() && address.port() != 0;
    let usual = listen
        .iter()
        .filter(local)
        .find(|address| address.port() == HTTP_PORT);
    let address = usual.or_else(|| listen.iter().find(local))?;
    let is_localhost = |ip: IpAddr| ip.to_string() == "127.0.0.1" || ip.to_string() == "::1";
    Some(match is_localhost(address.ip()) {
        true => format!("localhost:{}", address.port()),
        false => address.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &[&str], expected: Option<&str>) {
        let listen: Vec<_> = listen.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(address(&listen).as_deref(), expected);
    }

    #[test]
    fn the_port_of_http_is_preferred_and_only_loopback_counts() {
        check(
            &["127.0.0.1:5672", "127.0.0.1:5300"],
            Some("localhost:5300"),
        );
        check(&["127.0.0.1:7000"], Some("localhost:7000"));
        check(&["0.0.0.0:5300", "127.0.0.9:7000"], Some("127.0.0.9:7000"));
        check(&["127.0.0.1:0"], None);
        check(&["0.0.0.0:5300"], None);
    }
}
