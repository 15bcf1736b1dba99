//! What the examples share: from a connection string to an open connection.
//!
//! Each example is a file beside this folder and takes the connection string of the broker's ready
//! line as its only argument; without one it looks for a broker on this machine.

use std::error::Error;

use fe2o3_amqp::Connection;
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::sasl_profile::SaslProfile;

/// The queue that the examples use; `cargo xtask run` makes it.
pub const QUEUE: &str = "orders";

/// What a broker prints when it was started without configuration.
const DEVELOPMENT: &str = "Endpoint=sb://localhost:5672;SharedAccessKeyName=RootManageSharedAccessKey;\
                           SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

/// Opens a connection to the broker named by the first argument.
///
/// # Errors
/// When the connection string is incomplete, no broker listens, or the key is wrong.
pub async fn connect() -> Result<ConnectionHandle<()>, Box<dyn Error>> {
    let string = std::env::args()
        .nth(1)
        .unwrap_or_else(|| DEVELOPMENT.to_owned());
    let host = field(&string, "Endpoint")?
        .trim_start_matches("sb://")
        .trim_end_matches('/');
    let connection = Connection::builder()
        .container_id("railbus-example")
        .sasl_profile(SaslProfile::Plain {
            username: field(&string, "SharedAccessKeyName")?.to_owned(),
            password: field(&string, "SharedAccessKey")?.to_owned(),
        })
        .open(format!("amqp://{host}").as_str())
        .await?;
    Ok(connection)
}

/// One field of a connection string. A key may itself contain `=`.
fn field<'a>(string: &'a str, name: &str) -> Result<&'a str, String> {
    let fields = string.split(';').filter_map(|field| field.split_once('='));
    let found = fields
        .filter(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .next();
    found.ok_or_else(|| format!("the connection string has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_connection_string_are_found() {
        assert_eq!(field(DEVELOPMENT, "Endpoint"), Ok("sb://localhost:5672"));
        assert_eq!(
            field("A=1;SharedAccessKey=abc=;", "sharedaccesskey"),
            Ok("abc=")
        );
        assert_eq!(
            field("A=1", "Endpoint"),
            Err("the connection string has no Endpoint".to_owned())
        );
    }
}
