//! Certificate: the rights of a client by the names in its TLS certificate. (docs/spec/amqp.md#1.3)
//!
//! The server has verified the certificate. Its rights are those of the rules for its names at the
//! time of each check, so a rule that is removed counts on open connections at once.

use crate::access::{Access, Credential};
use crate::rights::Rights;
use crate::scope;

/// Rights for certificates with a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateRule {
    /// A DNS name of the certificate, or the common name of its subject. Case is ignored.
    pub name: String,
    /// The rights.
    pub rights: Rights,
    /// `None` for the whole namespace, else the path of an entity.
    pub entity: Option<String>,
}

impl CertificateRule {
    fn is_for(&self, names: &[String]) -> bool {
        let mut names = names.iter();
        names.any(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

/// The rights at `path` of a certificate with these names.
pub(crate) fn rights(rules: &[CertificateRule], names: &[String], path: &str) -> Rights {
    let rules = rules.iter().filter(|rule| rule.is_for(names));
    rules
        .filter(|rule| scope::is_within(path, rule.entity.as_deref()))
        .fold(Rights::NONE, |sum, rule| sum.union(rule.rights))
}

impl Access {
    /// The credential of a verified certificate with these names, if there is a rule for one.
    #[must_use]
    pub fn log_in_by_certificate(&self, names: &[String]) -> Option<Credential> {
        let mut rules = self.certificate_rules().iter();
        let is_known = rules.any(|rule| rule.is_for(names));
        is_known.then(|| Credential::of_certificate(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccessRules;

    fn rule(name: &str, rights: Rights, entity: Option<&str>) -> CertificateRule {
        CertificateRule {
            name: name.to_owned(),
            rights,
            entity: entity.map(str::to_owned),
        }
    }

    #[test]
    fn rights_of_the_names_of_a_certificate_add_up_while_their_rules_are_there() {
        let send = Rights {
            send: true,
            ..Rights::NONE
        };
        let listen = Rights {
            listen: true,
            ..Rights::NONE
        };
        let of = |certificates| AccessRules {
            certificates,
            ..AccessRules::default()
        };
        let mut access = Access::new(of(vec![
            rule("shop.example", send, None),
            rule("worker", listen, Some("Orders")),
            rule("other", Rights::ALL, None),
        ]));
        let names = ["Shop.example".to_owned(), "worker".to_owned()];
        let credential = access.log_in_by_certificate(&names).unwrap();
        let both = send.union(listen);
        assert_eq!(access.rights(&credential, "orders/$deadletterqueue"), both);
        assert_eq!(access.rights(&credential, "orders2"), send);
        assert_eq!(access.rights(&credential, ""), send);
        access.replace(of(vec![rule("worker", listen, Some("orders"))]));
        assert_eq!(access.rights(&credential, "orders"), listen);
        assert_eq!(access.rights(&credential, "orders2"), Rights::NONE);
    }

    #[test]
    fn a_name_without_a_rule_is_no_credential() {
        let access = Access::new(AccessRules {
            certificates: vec![rule("worker", Rights::ALL, None)],
            ..AccessRules::default()
        });
        for names in [&[][..], &["work".to_owned()], &["a.worker".to_owned()]] {
            assert!(access.log_in_by_certificate(names).is_none(), "{names:?}");
        }
    }
}
