//! `[[auth.certificates]]`: which rights a client certificate gives by a name in it.
//! (docs/spec/amqp.md#1.3)

use entity::EntityPath;
use serde::Deserialize;

use super::Error;
use super::choice::Right;
use super::railbus_toml::RailbusToml;
use super::toml_file::TomlFile;

/// One of `[[auth.certificates]]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthCertificate {
    /// A DNS name of the certificate; of one without such names, the common name of its subject.
    pub name: String,
    pub rights: Vec<Right>,
    /// The queue or topic it holds for; the whole namespace otherwise.
    pub entity: Option<EntityPath>,
}

/// Checks what no type says.
pub fn check(file: &TomlFile<'_, RailbusToml>) -> Result<(), Error> {
    let certificates = &file.value.auth.certificates;
    let refuse = |index: usize, key: &str, message: &str| {
        let key = format!("auth.certificates[{index}].{key}");
        Err(file.error(key, message.to_owned()))
    };
    for (index, certificate) in certificates.iter().enumerate() {
        if certificate.name.is_empty() {
            return refuse(index, "name", "the name in a certificate is not empty");
        }
        if certificate.rights.is_empty() {
            return refuse(index, "rights", "a rule has at least one right");
        }
        if file.value.tls_client_authority.is_none() {
            let message = "no certificate is asked for without tls-client-authority";
            return refuse(index, "name", message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::read_railbus_toml;

    fn check(text: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("railbus.toml");
        std::fs::write(&file, text).unwrap();
        let result = read_railbus_toml(&file).map(drop);
        let found = result.map_or_else(|error| error.to_string(), |()| String::new());
        let found = found.replace(&format!("{}/", directory.path().display()), "");
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_certificate_has_a_name_rights_and_an_authority() {
        let authority = "tls-client-authority = 'clients.pem'\n";
        let worker = "[[auth.certificates]]\nname = 'worker'\nrights = ['listen']\n";
        check(&format!("{authority}{worker}entity = 'orders'\n"), "");
        check(
            worker,
            "railbus.toml:2: auth.certificates[0].name: no certificate is asked for without tls-client-authority",
        );
        check(
            &format!("{authority}[[auth.certificates]]\nname = ''\nrights = ['listen']\n"),
            "railbus.toml:3: auth.certificates[0].name: the name in a certificate is not empty",
        );
        check(
            &format!("{authority}[[auth.certificates]]\nname = 'worker'\nrights = []\n"),
            "railbus.toml:4: auth.certificates[0].rights: a rule has at least one right",
        );
    }
}
